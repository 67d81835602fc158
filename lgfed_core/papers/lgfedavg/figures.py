"""Where a published gap of LG-FedAvg comes from: `decomposition` computes it, `gap_by_parts` draws.

Gaps are in points of accuracy, paired over seeds: LG-FedAvg minus FedAvg, or minus local only.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import INK, PART
from lgfed_core.evidence import verdict
from lgfed_core.evidence.printed import METHODS, METRICS
from lgfed_core.plotting import WIDTH, caption

from .comparisons import FULL, LOCAL, SOUND, WORDS, gaps, lg, printed
from .stored import by_seed

TESTS = ("local_test_acc", "new_test_acc")
PARTS = {  # part of a published gap, in words; each ends where the next begins
    "method": "method: as described, last round",
    "settings": "settings of the released code, last round",
    "selection": "choosing on test rows",
    "rest": "not explained",
}
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
    for dataset in datasets:
        who = FULL[dataset] if rival == "fedavg" else LOCAL
        paper = printed(dataset, classes)
        for test in TESTS:
            for budget in _budgets(paper):
                pair = dataset, classes, test, lg(budget), who
                found = [gaps(numbers, *pair, reading) for reading in (*_LEVELS, SOUND)]
                shared = pd.concat(dict(enumerate(found)), axis=1, join="inner")  # [seeds, 4]
                if shared.empty:
                    continue
                target = paper[lg(budget), test] - paper[who, test]
                ends = [verdict.greater(shared[n]) for n in range(len(_LEVELS))]
                ends.append(verdict.Evidence(target, np.nan, np.nan))
                seeds, validated, start = len(shared), shared[len(_LEVELS)].mean(), 0.0
                for part, end in zip(PARTS, ends, strict=True):
                    bar = part, start, end.estimate, end.estimate - start, end.low, end.high
                    lines.append((dataset, test, budget, *bar, seeds, target, validated))
                    start = end.estimate
    ids, bar = ["dataset", "test", "budget"], ["part", "start", "end", "value", "low", "high"]
    return pd.DataFrame(lines, columns=[*ids, *bar, "seeds", "paper", "validated"])


def waiting(parts: pd.DataFrame, dataset: str, classes: int = 2) -> list[str]:
    """The budgets of the paper's table ("1000+100") that `decomposition` had no runs for."""
    there = set(parts.loc[parts["dataset"] == dataset, "budget"])
    return [f"{b}+100" for b in _budgets(printed(dataset, classes)) if b not in there]


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
    span = max(np.nanmax(reach), 0.0) - min(np.nanmin(reach), 0.0)
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
    low, high = min(np.nanmin(reach), 0.0), max(np.nanmax(reach), 0.0)
    ax.set_xlim(low - 0.06 * span, high + 0.2 * span)
    middles = [n * step + (len(PARTS) - 1) / 2 for n in range(len(budgets))]
    seeds = panel.groupby("budget")["seeds"].first()
    ax.set_yticks(middles, [f"{budget}+100\nseeds: {seeds[budget]}" for budget in budgets])
    ax.set_ylim((len(budgets) - 1) * step + len(PARTS) - 0.4, -0.6)


def _budgets(paper: dict[tuple, float]) -> list[int]:
    return sorted({who[1] for who, _ in paper if who[0] == "lg_fedavg"})
