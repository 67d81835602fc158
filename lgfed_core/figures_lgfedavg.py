"""The figures of the LG-FedAvg pages: where a published gap comes from, and Figure 2c.

`decomposition` and `advantage` compute from stored rows, `gap_by_parts` and `by_classes` draw
what they return. All gaps are in points of accuracy, paired over seeds.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from . import published, verdict
from .experiments.lgfedavg_comparisons import CLASSES, FULL, LOCAL, READINGS, SOUND, WORDS, lg
from .experiments.lgfedavg_rows import PRINTED, by_seed
from .figures import PROTOCOL, WIDTH
from .published import METRICS

TESTS = ("local_test_acc", "new_test_acc")
PARTS = {  # part of a published gap -> (colour, words); each ends where the next begins
    "method": ("#0072B2", "method: as described, last round"),
    "settings": ("#56B4E9", "settings of the released code, last round"),
    "selection": ("#D55E00", "choosing on test rows"),
    "rest": ("#BBBBBB", "not explained"),
}
_LEVELS = ("as described, last round", "as released, last round", "as released, best on test")
_MISSING = verdict.NOT_RUN


def decomposition(
    stored: pd.DataFrame, datasets: Iterable[str] = ("cifar10", "mnist"), classes: int = 2
) -> pd.DataFrame:
    """The published gaps LG-FedAvg minus FedAvg as sums of four parts, in points.

    stored: rows of `results.load`. One line per data set, test, budget that has been run under both
    protocols, and part of `PARTS`: start, end (of the bar), value = end - start, the 95 % interval
    (low, high) of the gap at its end, seeds, and paper, the published gap, which the four values
    sum up to. ``validated`` is the gap as described and chosen on validation rows.
    """
    lines, numbers = [], by_seed(stored)
    for dataset in datasets:
        printed = _printed(dataset, classes)
        for test in TESTS:
            for budget in _budgets(printed):
                levels = [_gap(numbers, dataset, classes, budget, test, r) for r in _LEVELS]
                if any(np.isnan(level["mean"]) for level in levels):
                    continue
                paper = printed[lg(budget), test] - printed[FULL[dataset], test]
                levels.append({"mean": paper, "low": np.nan, "high": np.nan, "seeds": 0})
                sound = _gap(numbers, dataset, classes, budget, test, SOUND)
                start = 0.0
                for part, level in zip(PARTS, levels, strict=True):
                    lines.append({
                        "dataset": dataset, "test": test, "budget": budget, "part": part,
                        "start": start, "end": level["mean"], "value": level["mean"] - start,
                        "low": level["low"], "high": level["high"], "seeds": level["seeds"],
                        "paper": paper, "validated": sound["mean"],
                    })  # fmt: skip
                    start = level["mean"]
    columns = ["dataset", "test", "budget", "part", "start", "end", "value", "low", "high", "seeds",
               "paper", "validated"]  # fmt: skip
    return pd.DataFrame(lines, columns=columns)


def gap_by_parts(gaps: pd.DataFrame, datasets: Iterable[str] = ("cifar10", "mnist")) -> Figure:
    """Waterfalls of `decomposition`: a column of panels per test, a row of them per data set.

    Bars run from where the last part ended; black lines are 95 % intervals of the gap there, the
    hollow dot is the paper's gap, the blue bar's diamond the gap chosen on validation rows.
    """
    datasets = list(datasets)
    tall = [max(1, gaps.loc[gaps["dataset"] == d, "budget"].nunique()) for d in datasets]
    figure, grid = plt.subplots(
        len(datasets), 2, figsize=(WIDTH, 1.1 + 1.05 * sum(tall)), squeeze=False,
        height_ratios=tall,
    )  # fmt: skip
    for row, dataset in zip(grid, datasets, strict=True):
        for ax, test in zip(row, TESTS, strict=True):
            panel = gaps[(gaps["dataset"] == dataset) & (gaps["test"] == test)]
            ax.set_title(f"{WORDS[dataset]}, {METRICS[test]}")
            ax.grid(axis="y", visible=False)
            if panel.empty:
                ax.text(0.5, 0.5, _MISSING, ha="center", va="center", transform=ax.transAxes)
                ax.set(xticks=[], yticks=[])
                continue
            _waterfalls(ax, panel)
            ax.tick_params(axis="y", length=0)
            if ax is row[1]:
                ax.set_yticklabels([])
    for ax in grid[-1]:
        ax.set_xlabel("LG-FedAvg minus FedAvg, points")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour, _ in PARTS.values()]
    handles += [
        plt.Line2D([], [], marker="D", linestyle="", color="white", markeredgecolor="#222222"),
        plt.Line2D([], [], marker="o", linestyle="", color="white", markeredgecolor="#222222"),
    ]
    words = [words for _, words in PARTS.values()]
    words += ["as described, best on validation", "the paper's gap"]
    figure.legend(handles, words, loc="outside lower center", ncols=2)
    return figure


def _waterfalls(ax, panel: pd.DataFrame) -> None:
    """One waterfall per budget; y counts bars, with a gap between budgets."""
    budgets, step = list(dict.fromkeys(panel["budget"])), len(PARTS) + 1.2
    reach = panel[["start", "end", "low", "high"]].to_numpy(float)
    span = max(np.nanmax(reach), 0.0) - min(np.nanmin(reach), 0.0)
    for n, budget in enumerate(budgets):
        lines = panel[panel["budget"] == budget]
        for m, line in enumerate(lines.itertuples()):
            y = n * step + m
            ax.barh(y, line.value, left=line.start, height=0.78, color=PARTS[line.part][0])
            if m:
                ax.plot([line.start] * 2, [y - 1.39, y + 0.39], color="#555555", linewidth=0.6)
            if line.low < line.high:
                ax.plot([line.low, line.high], [y, y], color="#222222", linewidth=1.1)
            right = np.nanmax([line.start, line.end, line.high]) + 0.02 * span * (
                m == len(PARTS) - 1
            )
            ax.text(right + 0.02 * span, y, f"{line.value:+.2f}", va="center", fontsize=7)
        first = lines.iloc[0]
        look = {"color": "white", "markeredgecolor": "#222222", "markersize": 4.5, "zorder": 4}
        ax.plot(first["validated"], n * step, "D", **look)
        ax.plot(first["paper"], n * step + len(PARTS) - 1, "o", **look)
    ax.axvline(0, color="#222222", linewidth=0.8)
    low, high = min(np.nanmin(reach), 0.0), max(np.nanmax(reach), 0.0)
    ax.set_xlim(low - 0.06 * span, high + 0.2 * span)
    ax.set_yticks(
        [n * step + (len(PARTS) - 1) / 2 for n in range(len(budgets))],
        [f"{budget}+100" for budget in budgets],
    )
    ax.set_ylim((len(budgets) - 1) * step + len(PARTS) - 0.4, -0.6)


def advantage(stored: pd.DataFrame, budget: int = 1800, dataset: str = "cifar10") -> pd.DataFrame:
    """Figure 2c: local test of LG-FedAvg minus FedAvg's, and minus local only's, in points.

    One line per rival, number of classes and reading of `READINGS`: mean, low, high (95 % over
    paired seeds), seeds (0: not run, mean NaN), and paper, the difference of the printed means.
    """
    lines, numbers = [], by_seed(stored)
    for rival, who in (("fedavg", FULL[dataset]), ("local_only", LOCAL)):
        for classes in CLASSES:
            printed = _printed(dataset, classes)
            paper = printed[lg(budget), TESTS[0]] - printed[who, TESTS[0]]
            for reading in READINGS:
                found = _gap(numbers, dataset, classes, budget, TESTS[0], reading, who)
                lines.append({"rival": rival, "classes": classes, "reading": reading,
                              "paper": paper, **found})  # fmt: skip
    return pd.DataFrame(lines)


def by_classes(table: pd.DataFrame, readings: Iterable[str] | None = None) -> Figure:
    """`advantage` against the number of classes per device, the paper's beside ours."""
    chosen = list(readings or (SOUND, "as released, best on test"))
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    rivals = {"fedavg": "over FedAvg", "local_only": "over local only"}
    at = {classes: n for n, classes in enumerate(CLASSES)}
    for ax, (rival, words) in zip(axes, rivals.items(), strict=True):
        block = table[table["rival"] == rival]
        paper = block.drop_duplicates("classes")
        ax.plot(paper["classes"].map(at), paper["paper"], ":", marker="o", color="#222222",
                markerfacecolor="white", label="paper, Table 8")  # fmt: skip
        for n, reading in enumerate(chosen):
            colour, marker = PROTOCOL[READINGS[reading][0]]
            lines = block[(block["reading"] == reading) & (block["seeds"] > 0)]
            x = lines["classes"].map(at) + 0.12 * (n - (len(chosen) - 1) / 2)
            bars = np.nan_to_num((lines[["low", "high"]].sub(lines["mean"], axis=0)).abs().T)
            seeds = "-".join(str(s) for s in sorted({*lines["seeds"].agg(["min", "max"])})) if len(
                lines) else "0"  # fmt: skip
            ran = f"{seeds} seeds" if len(lines) else _MISSING
            ax.errorbar(x, lines["mean"], bars, fmt=marker, color=colour, elinewidth=1.1,
                        label=f"ours, {reading} ({ran})")  # fmt: skip
        ax.axhline(0, color="#222222", linewidth=0.8)
        ax.set_xticks(list(at.values()), [*map(str, CLASSES[:-1]), "10\n(i.i.d.)"])
        ax.set(title=f"LG-FedAvg {words}", xlabel="classes per device", xlim=(-0.4, 4.4))
    axes[0].set_ylabel("local test, points")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=1)
    return figure


def _gap(numbers, dataset, classes, budget, test, reading, who=None) -> dict:
    """LG-FedAvg minus another (FedAvg), paired over seeds: mean, low, high, seeds."""
    ours, theirs = (
        numbers.get((dataset, classes, one, test, READINGS[reading]), pd.Series(dtype=float))
        for one in (lg(budget), who or FULL[dataset])
    )
    ours, theirs = ours.align(theirs, join="inner")
    found = verdict.greater(ours.to_numpy(), theirs.to_numpy())
    return {"mean": found.estimate, "low": found.low, "high": found.high, "seeds": len(ours)}


def _printed(dataset: str, classes: int) -> dict[tuple, float]:
    """(who, test) -> the paper's mean, for one number of classes."""
    cells = published.cells(published.find(PRINTED[dataset][0]))
    cells = cells[cells["classes_per_device"].astype(int) == classes]
    return {((c.method, int(c.fedavg_rounds)), c.metric): c.paper for c in cells.itertuples()}


def _budgets(printed: dict[tuple, float]) -> list[int]:
    return sorted({who[1] for who, _ in printed if who[0] == "lg_fedavg"})
