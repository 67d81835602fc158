"""Figures of the page on the newcomer: its pictures, and both sides over rounds."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lgfed_core.colours import METHOD
from lgfed_core.data import mnist
from lgfed_core.evidence.printed import METHODS
from lgfed_core.plotting import WIDTH, caption

from .claims import SIDES

STYLES = {0.0: "--", 0.1: "-"}  # C
LINE = ["method", "finetune_fraction_C"]


def turned(x: Tensor, angles: tuple[float, ...]) -> Figure:
    """Some pictures x [n, 784], upright in the first row, then turned by each of ``angles``."""
    rows = {"upright": x} | {f"{angle:g}°": mnist.turned(x, angle) for angle in angles}
    figure, grid = plt.subplots(len(rows), len(x), figsize=(WIDTH, 0.65 * len(rows)))
    for line, (name, pictures) in zip(grid, rows.items(), strict=True):
        for ax, picture in zip(line, pictures, strict=True):
            ax.imshow(picture.view(28, 28), cmap="gray_r")
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    below = (
        "Pictures as the old devices have them (first row), and turned as a newcomer may have them."
    )
    return caption(figure, below)


def both_sides(curves: dict[str, pd.DataFrame]) -> Figure:
    """Accuracy against rounds with the newcomer: a row per split, old devices left, newcomer right.

    curves: by title, columns method, finetune_fraction_C, seed, round, metric, value (in %). Lines
    are means over seeds, thin ones single seeds. Dashed: C = 0, the newcomer trains alone.
    """
    shape = dict(figsize=(WIDTH, 0.6 + 2.3 * len(curves)), sharex=True, squeeze=False)
    figure, grid = plt.subplots(len(curves), 2, **shape)
    for row, (title, lines) in zip(grid, curves.items(), strict=True):
        for ax, (metric, side) in zip(row, SIDES.items(), strict=True):
            ax.set_title(f"{title}, {side}" + ("" if len(lines) else ": not yet run"))
            if len(lines):
                _side(ax, lines[lines["metric"] == metric])
        row[0].set_ylabel("accuracy, %")
    for ax in grid[-1]:
        ax.set_xlabel("round with the newcomer")
        ax.xaxis.get_major_locator().set_params(integer=True)
    handles = {}
    for ax in grid.flat:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    below = (
        "Accuracy by round with the newcomer: left the old devices, from before it came, "
        "right the newcomer; lines are means over seeds, thin ones single seeds, dashed C = 0."
    )
    each = (own for lines in curves.values() for _, own in lines.groupby(LINE))
    return caption(figure, below, *each)


def _side(ax: Axes, lines: pd.DataFrame) -> None:
    for (method, fraction), mine in lines.groupby(LINE, sort=False):
        colour, marker = METHOD[method]
        look = dict(color=colour, linestyle=STYLES[float(fraction)])
        wide = mine.pivot_table("value", "round", "seed")
        if wide.shape[1] > 1:
            ax.plot(wide.index, wide, linewidth=0.5, alpha=0.5, **look)
        label = f"{METHODS[method]}, C = {float(fraction):g}"
        ax.plot(wide.index, wide.mean(axis=1), label=label, marker=marker, markevery=0.15, **look)
