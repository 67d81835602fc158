"""The figure of "which layers should be shared?": both tests against every cut of the network."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core.colours import INK, REFERENCE, SIDE
from lgfed_core.plotting import WIDTH, caption

from . import run as cuts, tables

SIDES = {"last": "last n layers shared", "first": "first n layers shared"}
_TESTS = {  # row of the figure -> [(metric, its line, marker filled)]
    "local test, %": [("local_test_acc", "-", True)],
    "new test, %": [("new_test_acc_outputs", "-", True), ("new_test_acc_weights", ":", False)],
}


def every_cut(values: dict[str, pd.DataFrame]) -> Figure:
    """Local and new test against the number of shared layers, from both ends of the network.

    values: per data set, of `tables.cell`. Both lines of a panel begin at n = 0
    (nothing is shared, devices fine-tune) and end at n = 5 (FedAvg goes on). Bars: 95 % intervals
    of the mean over seeds, where there are several. A ring marks the paper's cut, a grey line
    FedAvg's model at the start. New test: filled by averaged outputs, hollow by averaged weights.
    """
    figure, axes = plt.subplots(
        2, len(values), figsize=(WIDTH, 5.2), sharex="col", squeeze=False, layout="constrained"
    )
    for column, (data, cells) in zip(axes.T, values.items(), strict=True):
        column[0].set_title(cuts.TITLES[data] + ("" if len(cells) else ": not yet run"))
        for ax, (label, lines) in zip(column, _TESTS.items(), strict=True):
            ax.set_ylabel(label if ax in axes[:, 0] else "")
            ax.set_xlim(-0.25, 5.25)
            if not len(cells):
                ax.set_yticks([])
                continue
            for metric, style, filled in lines:
                _panel(ax, tables.table(cells)[metric], data, style, filled)
        _names_of_layers(column[1], data)
    handles = {}
    for ax in axes.flat:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3)
    below = (
        "Local and new test against the number of shared layers, from either end of "
        "the network; bars are 95 % intervals, rings the paper's cut."
    )
    return caption(figure, below, *values.values())


def _panel(ax: Axes, means: pd.DataFrame, data: str, style: str, filled: bool) -> None:
    """Both sides' lines of one metric, the start and the ring.

    A line joins neighbouring cuts alone; a side of which no cut of its own has run has none. The
    ends, which both sides have, are marked apart.
    """
    for side, words in SIDES.items():
        colour, marker = SIDE[side]
        line = means.reindex([("last" if n in (0, 5) else side, n) for n in range(6)])
        if line["mean"].iloc[1:5].isna().all():
            continue
        face, size = (colour, 5) if filled else ("white", 4)
        look = dict(color=colour, markerfacecolor=face, markersize=size, elinewidth=1.1)
        label = words + ("" if filled else " (averaged weights)")
        cut, reach = line.index.get_level_values(1), line["reach"].fillna(0)
        ax.errorbar(cut, line["mean"], reach, fmt=marker + style, label=label, **look)
    ends = means.reindex([("last", n) for n in tables.ENDS])["mean"]
    look = dict(color=INK, markerfacecolor=INK if filled else "white", markersize=5, zorder=3)
    label = "none or all shared" if filled else None
    ax.plot(list(tables.ENDS), ends, linestyle="none", marker="D", label=label, **look)
    if filled and ("start", 5) in means.index:
        label = "FedAvg, before any cut"
        ax.axhline(means.loc[("start", 5), "mean"], color=REFERENCE, linewidth=1, label=label)
    chosen = cuts.chosen(data)
    if filled and chosen in means.index:
        ring = dict(markersize=13, color=INK, markerfacecolor="none", linestyle="none")
        ax.plot(chosen[1], means.loc[chosen, "mean"], "o", label="the paper's cut", **ring)


def _names_of_layers(ax: Axes, data: str) -> None:
    """Below the axis: which layer each further n adds, from either end."""
    names = cuts.TASKS[data][0].settings().net().layers
    ax.set_xticks(np.arange(len(names) + 1))
    ax.set_xlabel("n, layers shared; each adds", labelpad=3)
    for line, side in enumerate(SIDES):
        order = names[::-1] if side == "last" else names
        where = dict(xycoords=("data", "axes fraction"), textcoords="offset points")
        look = dict(ha="center", va="top", color=SIDE[side][0], fontsize=7)
        for n, name in enumerate([side, *order]):
            ax.annotate(name, (n, 0), xytext=(0, -32 - 10 * line), **where, **look)
