"""Figures of the page on mood: accuracy by share (Figure 2d), and over rounds."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core.colours import MEASURED, METHOD, SHADES
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import reach_of
from lgfed_core.plotting import WIDTH, caption

from .claims import SHARED, sources, wide
from .settings import ALPHAS, SOURCES, Settings

STYLES = (":", "--", "-.", (0, (1, 4)))  # of what needs no network


def by_share(rows: pd.DataFrame, rules: dict[str, pd.Series] | None = None) -> Figure:
    """Test accuracy against the share of layers that is shared, a panel per source that has run.

    Thin lines are seeds, bars 95 % intervals of their mean, wider where seeds split the same texts
    (`claims.SHARED`). rules: by source, percent of what needs no network (means of
    `linear.accuracies`, `linear.alone`), as black lines.
    """
    found = {s: wide(rows, s, "test_acc").dropna(axis=1, how="all") for s in sources(rows)}
    found = {source: table for source, table in found.items() if len(table)}
    many = max(1, len(found))
    shape = dict(figsize=(WIDTH, 0.5 + 2.4 * -(-many // 2)), squeeze=False)
    figure, grid = plt.subplots(-(-many // 2), min(2, many), **shape)
    for ax in grid.flat[len(found) :]:
        ax.axis("off")
    for ax, (source, table) in zip(grid.flat, found.items(), strict=False):
        colour, marker = METHOD["lg_fedavg"]
        ax.plot(table.columns, table.T, color=colour, linewidth=0.5, alpha=0.5)
        n = table.count()
        error = table.std() * np.sqrt(1 / n + SHARED.get(source, 0.0))
        reach = np.nan_to_num(reach_of(error, n - 1))
        ax.errorbar(table.columns, table.mean(), reach, color=colour, marker=marker, capsize=2)
        _levels(ax, (rules or {}).get(source, pd.Series(dtype=float)))
        title = f"{SOURCES[source]} (stand-in)" if source in SOURCES else source
        ax.set(title=title, xticks=ALPHAS, xlim=(-0.05, 1.05))
        ax.set_xlabel("share of the layers that is shared")
    for row in grid:
        row[0].set_ylabel("test accuracy, %")
    below = (
        "Test accuracy against the share of layers that is shared, on stand-in data: "
        "thin lines are seeds, bars 95 % intervals of their mean, black lines what "
        "needs no network."
    )
    return caption(figure, below, rows)


def _levels(ax: Axes, rules: pd.Series) -> None:
    """A black line for each rule, with room above for their names."""
    for style, (name, value) in zip(STYLES, rules.items(), strict=False):
        ax.axhline(value, color=MEASURED, lw=0.8, ls=style, label=name)
    if len(rules):
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.2 * (high - low))
        ax.legend(fontsize=6.5, loc="upper left", ncols=2)


def over_rounds(curves: pd.DataFrame, lr: float = Settings.lr) -> Figure:
    """Accuracy on validation and test rows over rounds, at one rate of Adam.

    curves: columns stand_in, alpha, lr, seed, round, metric, value. Lines are means over restarts
    and seeds, a row of panels per source.
    """
    curves = select(curves, lr=lr) if len(curves) else curves
    titles = list(dict.fromkeys(curves["stand_in"]))
    shape = dict(figsize=(WIDTH, 0.7 + 1.9 * max(1, len(titles))), squeeze=False, sharex=True)
    figure, grid = plt.subplots(max(1, len(titles)), 2, **shape)
    for row, title in zip(grid, titles, strict=False):
        for ax, part in zip(row, ("validation", "test"), strict=True):
            mine = select(curves, stand_in=title, metric=f"{part}_acc")
            means = mine.astype({"alpha": float, "round": int})
            means = means.pivot_table("value", "round", "alpha")
            for alpha, mean in means.items():
                ax.plot(mean.dropna(), color=SHADES(alpha), label=f"{alpha:g}")
            ax.set_title(f"{title}: {part}")
        row[0].set_ylabel("accuracy, %")
    for ax in grid[-1]:
        ax.set_xlabel("round")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, title="shared")
    below = (
        "Accuracy on validation and test rows by round, a line per share of the "
        f"layers, means over restarts and seeds, rate {lr:g}, on stand-in data."
    )
    return caption(figure, below, curves)
