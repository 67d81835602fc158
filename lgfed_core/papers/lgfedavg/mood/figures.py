"""Figures of the page on mood: accuracy by share (Figure 2d), the theory's mixture, the rounds."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import CORRECTED, MEASURED, METHOD, SHADES
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import reach_of
from lgfed_core.plotting import WIDTH, caption

from . import linear, stand_in_people
from .claims import SHARED, sources, wide
from .settings import ALPHAS, Settings
from .stand_in_people import SOURCES

STYLES = (":", "--", "-.", (0, (1, 4)))  # of what needs no network


def by_share(rows: pd.DataFrame, rules: dict[str, pd.Series] | None = None) -> Figure:
    """Test accuracy against the share of layers that is shared, a panel per source that has run.

    Thin lines are seeds, bars 95 % intervals of their mean, wider where seeds split the same texts
    (`claims.SHARED`). rules: by source, percent of what needs no network (means of `tables.alone`,
    `linear.accuracies`), as black lines.
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
        n, mean = table.count(), table.mean()
        error = table.std() * np.sqrt(1 / n + SHARED.get(source, 0.0))
        reach = np.nan_to_num(reach_of(error, n - 1))
        ax.errorbar(table.columns, mean, reach, color=colour, marker=marker, capsize=2)
        own = (rules or {}).get(source, pd.Series(dtype=float))
        for style, (name, value) in zip(STYLES, own.items(), strict=False):
            ax.axhline(value, color=MEASURED, lw=0.8, ls=style, label=name)
        if len(own):
            low, high = ax.get_ylim()
            ax.set_ylim(low, high + 0.2 * (high - low))  # room for their names
            ax.legend(fontsize=6.5, loc="upper left", ncols=2)
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


def mixtures(seeds: Sequence[int] = linear.SEEDS) -> Figure:
    """The theory on made-up texts: error against the global weight, measured and predicted."""
    figure, axes = plt.subplots(1, len(stand_in_people.RHOS), figsize=(WIDTH, 2.3))
    grid = np.linspace(0, 1, 21)
    for ax, rho in zip(axes, stand_in_people.RHOS.values(), strict=True):
        terms = linear.predicted(rho)
        ax.plot(grid, terms.error(1 - grid), color=CORRECTED, label="predicted")
        mean = linear.errors(rho, grid, seeds).mean(0)
        ax.plot(grid, mean, "o", ms=3, color=MEASURED, label="measured")
        ax.axvline(1 - terms.best_weight, color=CORRECTED, lw=0.8, ls=":")
        ax.set(title=f"rho {rho:g}", xlabel="weight of the global model", yscale="log")
    axes[0].set_ylabel("squared error")
    axes[0].legend()
    below = (
        "Error against the weight of the global model on made-up texts, measured and "
        "predicted by the theory; live run."
    )
    return caption(figure, below)


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
            own = curves[curves["stand_in"].eq(title) & curves["metric"].eq(f"{part}_acc")]
            for alpha, lines in own.groupby(own["alpha"].astype(float)):
                mean = lines.groupby(lines["round"].astype(int))["value"].mean()
                ax.plot(mean.index, mean, color=SHADES(alpha), label=f"{alpha:g}")
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
