"""What pages draw: where a published gap comes from; accuracy by classes (Figure 2c) and by bytes.

Gaps are in points of accuracy, paired over seeds: LG-FedAvg minus FedAvg, or minus local only.
"""

from collections.abc import Iterable
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import INK, PART
from lgfed_core.evidence import verdict
from lgfed_core.evidence.printed import METHODS, METRICS, cells
from lgfed_core.evidence.records import select
from lgfed_core.evidence.report import SELECTION
from lgfed_core.evidence.verdict import reach_of
from lgfed_core.plotting import WIDTH, caption

from .communication import BYTES, SYSTEMS
from .comparisons import CLASSES, FULL, LOCAL, READINGS, SOUND, WORDS, Read, lg, printed
from .printed import TABLES
from .records import PRINTED, by_seed

TESTS = ("local_test_acc", "new_test_acc")
PARTS = {  # part of a published gap, in words; each ends where the next begins
    "method": "method: as described, last round",
    "settings": "settings of the released code, last round",
    "selection": "choosing on test rows",
    "rest": "not explained",
}
_LINE = ["method", "classes", "paper", "mean", "low", "high", "seeds"]
ROW = ["method", "fedavg_rounds", "lg_rounds"]
_LEVELS = ("as described, last round", "as released, last round", "as released, best on test")


def decomposition(
    stored: pd.DataFrame,
    datasets: Iterable[str] = ("cifar10", "mnist"),
    classes: int = 2,
    rival: str = "fedavg",
) -> pd.DataFrame:
    """The published gaps LG-FedAvg minus its rival as sums of four parts, in points.

    stored: rows of `records.load`; rival: "fedavg" or "local_only". One line per data set, test,
    budget that has been run under both protocols, and part of `PARTS`: start, end (of the bar),
    value = end - start, the 95 % interval (low, high) of the gap at its end, seeds, and paper, the
    published gap, which the four values sum up to. ``validated`` is the gap as described and chosen
    on validation rows. All are of the same seeds: those that every reading has.
    """
    lines, numbers = [], by_seed(stored)
    reads = {name: Read(numbers, READINGS[name]) for name in (*_LEVELS, SOUND)}
    for dataset in datasets:
        who = FULL[dataset] if rival == "fedavg" else LOCAL
        paper = printed(dataset, classes)
        budgets = sorted({rounds for (method, rounds), _ in paper if method == "lg_fedavg"})
        for test, budget in product(TESTS, budgets):
            ours, theirs = (
                pd.DataFrame({n: r.get(dataset, classes, one, test) for n, r in reads.items()})
                for one in (lg(budget), who)
            )
            shared = (ours - theirs).dropna()  # [seeds, 4], of those that all have
            if shared.empty:
                continue
            target = paper[lg(budget), test] - paper[who, test]
            ends = [verdict.greater(shared[name]) for name in _LEVELS]
            ends.append(verdict.Evidence(target, np.nan, np.nan))
            more, start = (len(shared), target, shared[SOUND].mean()), 0.0
            for part, end in zip(PARTS, ends, strict=True):
                bar = part, start, end.estimate, end.estimate - start, end.low, end.high
                lines.append((dataset, test, budget, *bar, *more))
                start = end.estimate
    ids, bar = ["dataset", "test", "budget"], ["part", "start", "end", "value", "low", "high"]
    return pd.DataFrame(lines, columns=[*ids, *bar, "seeds", "paper", "validated"])


def gap_by_parts(
    parts: pd.DataFrame, datasets: Iterable[str] = ("cifar10", "mnist"), rival: str = "fedavg"
) -> Figure:
    """Waterfalls of `decomposition`: a column of panels per test, a row of them per data set.

    Bars run from where the last part ended; black lines are 95 % intervals of the gap there, the
    hollow dot is the paper's gap, the first bar's diamond the gap chosen on validation rows.
    """
    datasets = list(datasets)
    tall = [max(1, parts.loc[parts["dataset"] == d, "budget"].nunique()) for d in datasets]
    look = dict(figsize=(WIDTH, 1.1 + 1.05 * sum(tall)), height_ratios=tall)
    figure, grid = plt.subplots(len(datasets), 2, squeeze=False, **look)
    for row, dataset in zip(grid, datasets, strict=True):
        for ax, test in zip(row, TESTS, strict=True):
            panel = parts[(parts["dataset"] == dataset) & (parts["test"] == test)]
            ax.set_title(f"{WORDS[dataset]}, {METRICS[test]}")
            ax.grid(axis="y", visible=False)
            if panel.empty:
                ax.text(0.5, 0.5, verdict.NOT_RUN, ha="center", va="center", transform=ax.transAxes)
                ax.set(xticks=[], yticks=[])
                continue
            _waterfalls(ax, panel)
            ax.tick_params(axis="y", length=0)
            if ax is row[1]:
                ax.set_yticklabels([])
    for ax in grid[-1]:
        ax.set_xlabel(f"LG-FedAvg minus {METHODS[rival]}, points")
    handles = [plt.Rectangle((0, 0), 1, 1, color=PART[part]) for part in PARTS]
    hollow = dict(linestyle="", color="white", markeredgecolor=INK)
    handles += [plt.Line2D([], [], marker=marker, **hollow) for marker in "Do"]
    words = [*PARTS.values(), "as described, best on validation", "the paper's gap"]
    figure.legend(handles, words, loc="outside lower center", ncols=2)
    below = (
        f"Published gaps of LG-FedAvg over {METHODS[rival]} as sums of parts, in points of "
        "accuracy; black lines are 95 % intervals over paired seeds, stored at paper "
        "scale, hollow circles the published gap."
    )
    return caption(figure, below)


def _waterfalls(ax, panel: pd.DataFrame) -> None:
    """One waterfall per budget; y counts bars, with a gap between budgets."""
    budgets, step = list(dict.fromkeys(panel["budget"])), len(PARTS) + 1.2
    reach = panel[["start", "end", "low", "high"]].to_numpy(float)
    low, high = min(np.nanmin(reach), 0.0), max(np.nanmax(reach), 0.0)
    span = high - low
    for n, budget in enumerate(budgets):
        lines = panel[panel["budget"] == budget]
        for m, line in enumerate(lines.itertuples()):
            y = n * step + m
            ax.barh(y, line.value, left=line.start, height=0.78, color=PART[line.part])
            if m:
                ax.plot([line.start] * 2, [y - 1.39, y + 0.39], color=INK, linewidth=0.6)
            if line.low < line.high:
                ax.plot([line.low, line.high], [y, y], color=INK, linewidth=1.1)
            gap = 0.04 if m == len(PARTS) - 1 else 0.02
            right = np.nanmax([line.start, line.end, line.high]) + gap * span
            ax.text(right, y, f"{line.value:+.2f}", va="center", fontsize=7)
        first = lines.iloc[0]
        look = {"color": "white", "markeredgecolor": INK, "markersize": 4.5, "zorder": 4}
        ax.plot(first["validated"], n * step, "D", **look)
        ax.plot(first["paper"], n * step + len(PARTS) - 1, "o", **look)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_xlim(low - 0.06 * span, high + 0.2 * span)
    middles = [n * step + (len(PARTS) - 1) / 2 for n in range(len(budgets))]
    seeds = panel.groupby("budget")["seeds"].first()
    ax.set_yticks(middles, [f"{budget}+100\nseeds: {seeds[budget]}" for budget in budgets])
    ax.set_ylim((len(budgets) - 1) * step + len(PARTS) - 0.4, -0.6)


def accuracies(stored: pd.DataFrame) -> pd.DataFrame:
    """CIFAR-10, local test of FedAvg, local only and LG-FedAvg at each number of classes, percent.

    stored: rows of `records.load`; as described, chosen on validation rows. One line per method and
    number of classes: mean, low, high (95 %), seeds (0: not run, mean NaN), and paper, the printed
    mean.
    """
    read, lines = Read(by_seed(stored), READINGS[SOUND]), []
    for who, classes in product((FULL["cifar10"], LOCAL, lg(1800)), CLASSES):
        mine = read.local("cifar10", classes, who)
        found = verdict.greater(mine.to_numpy())
        paper = printed("cifar10", classes)[who, "local_test_acc"]
        lines.append((who[0], classes, paper, found.estimate, found.low, found.high, len(mine)))
    return pd.DataFrame(lines, columns=_LINE)


def points(stored: pd.DataFrame, dataset: str, classes: int, protocol: str) -> pd.DataFrame:
    """Every budget at paper scale, the papers' points and ours, one line per row and test.

    stored: rows of `records.load`; ours are those at the protocol's own selection, on the paper's
    own data. Bytes are those of a deployed system's rounds (`System.deployed`), as float32; MTL is
    counted as its objective needs it. Columns: method, fedavg_rounds, lg_rounds, gigabytes, metric,
    who ("paper", "ours"), mean, low, high (95 % interval of the mean; NaN with one run), seeds (NaN
    for the paper's).
    """
    where = dict(scale="paper", protocol=protocol, selection=SELECTION[protocol], stand_in="")
    ours = select(stored, table=PRINTED[dataset], columns=ROW, metric=TESTS, **where)
    ours = select(ours, classes_per_device=classes).groupby([*ROW, "metric"])["value"]
    ours = ours.agg(["mean", "std", "count"]).reset_index().rename(columns={"count": "seeds"})
    ours = ours.assign(who="ours", runs=ours["seeds"])
    papers = []
    for spec in (TABLES[name] for name in PRINTED[dataset] if name in TABLES):
        found = select(cells(spec), metric=TESTS)
        of_all = found.get("classes_per_device", pd.Series(2, found.index))  # Table 1 has two
        found = found[of_all == classes].rename(columns={"paper": "mean"})
        sample = found["paper_sd"] * np.sqrt(spec.runs / (spec.runs - 1))  # of a population's
        papers.append(found.assign(who="paper", runs=spec.runs, std=sample))
    table = pd.concat([*papers, ours], ignore_index=True)
    table = table.astype(dict.fromkeys(ROW[1:], int)).drop_duplicates([*ROW, "metric", "who"])
    reach = reach_of(table["std"] / np.sqrt(table["runs"]), table["runs"] - 1)
    sent = [SYSTEMS[dataset].deployed(*pair) for pair in table[ROW[1:]].itertuples(index=False)]
    ends = dict(low=table["mean"] - reach, high=table["mean"] + reach)
    return table.assign(**ends, gigabytes=np.array(sent, float) * BYTES / 1e9)
