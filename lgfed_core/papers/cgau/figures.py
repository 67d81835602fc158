"""Figures of the CGAU chapter: the unit, XOR's maps, simulated clients, gains over shuffling."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core import plotting
from lgfed_core.colours import GROUP, INK, LABEL, PALE, REFERENCE, SIGNED, UNIT
from lgfed_core.evidence.printed import METHODS
from lgfed_core.partition.feature_clusters import Clients
from lgfed_core.plotting import WIDTH, caption

from . import federated
from .printed import accuracies
from .xor import run as cgau_xor

_CLIENT_MARKS = "os^vD<>pPX"


def unit(ax: Axes | None = None) -> Axes:
    """Figure 1: input and client, filter and gate, and what they become."""
    ax = ax or plt.gca()
    ax.set_axis_off()
    ax.set(xlim=(-0.6, 10.2), ylim=(-0.6, 4.6))

    def box(x: float, y: float, text: str, colour: str = "white") -> None:
        style = {"boxstyle": "round,pad=.35", "facecolor": colour, "edgecolor": INK}
        ax.text(x, y, text, ha="center", va="center", bbox=style, fontsize=9)

    def arrow(x: float, y: float, to_x: float, to_y: float) -> None:
        ends = {"arrowstyle": "-|>", "color": INK, "shrinkA": 14, "shrinkB": 14}
        ax.annotate("", (to_x, to_y), (x, y), arrowprops=ends)

    for y, client_y, name, act in ((3.6, 2.7, "f", "tanh"), (0.4, 1.3, "g", r"$\sigma$")):
        arrow(0, 2.6, 2.4, y)
        arrow(0, 1.4, 2.4, client_y)
        arrow(2.4, y, 5.0, y)
        arrow(2.4, client_y, 5.0, y)
        arrow(5.0, y, 6.9, y)
        arrow(6.9, y, 8.6, 2)
        box(2.4, y, f"$W_{name}$", UNIT["shared"])
        box(2.4, client_y, f"$V_{name}$", UNIT["client"])
        box(5.0, y, "+")
        box(6.9, y, act, PALE)
    arrow(8.6, 2, 9.9, 2)
    for x, y, text in ((0, 2.6, "$x$"), (0, 1.4, "$h$"), (8.6, 2, r"$\times$"), (9.9, 2, "$z$")):
        box(x, y, text)
    ax.text(4.1, 4.35, "modulation: what the feature is", fontsize=8, ha="center")
    ax.text(4.1, -0.45, "expression: whether it is active", fontsize=8, ha="center")
    caption(ax.get_figure(), "One unit: filter and gate see the input and the client.")
    return ax


def xor(mlp: cgau_xor.MLP, net: cgau_xor.OneUnit, cfg: cgau_xor.Settings) -> Figure:
    """Figure 3, a to h: decisions of both networks, filter and gate, and parts switched off."""
    import torch

    ticks, x, client = cgau_xor.grid()
    points, y, _ = cgau_xor.points(cfg)
    nobody = cgau_xor.SWITCHES
    with torch.no_grad():
        plain, full = net.parts(x, client, nobody), net.parts(x, client)
        panels = [
            ("a  MLP", torch.sigmoid(mlp(x, client))),
            ("b  CGAU", torch.sigmoid(net(x, client))),
            ("c  filter, no client", plain[0]),
            ("d  gate, no client", plain[1]),
            ("e  filter, with client", full[0]),
            ("f  gate, with client", full[1]),
            ("g  without modulation", torch.sigmoid(net(x, client, ("modulation",)))),
            ("h  without expression", torch.sigmoid(net(x, client, ("expression",)))),
        ]
    figure, axes = plt.subplots(2, 4, figsize=(WIDTH, 3.9), sharex=True, sharey=True)
    order = [0, 2, 4, 6, 1, 3, 5, 7]  # the paper's columns: a over b, c over d, ...
    for ax, number in zip(axes.flat, order, strict=True):
        title, values = panels[number]
        low = -1.0 if "filter" in title else 0.0
        look = dict(origin="lower", cmap=SIGNED, extent=(ticks[0], ticks[-1]) * 2, alpha=0.6)
        ax.imshow(values.reshape(len(ticks), -1), vmin=low, vmax=1, **look)
        for label, colour, mark in zip((0, 1), LABEL, "s^", strict=True):
            mine = points[y == label]
            look = dict(color=colour, marker=mark, linewidths=0.3, edgecolors="w")
            ax.scatter(*mine.T, s=9, label=cgau_xor.CLASSES[label], **look)
        ax.axhline(0, color=INK, linewidth=0.6, linestyle=":")
        ax.set_title(title, fontsize=8)
        ax.grid(visible=False)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=2, markerscale=2)
    figure.supxlabel("$x_1$", fontsize=9)
    figure.supylabel("$x_2$  (down client below 0, up client above)", fontsize=9)
    words = (
        "Decisions of both networks, filter and gate, and parts switched off; live run. Brown (the "
        "paper's red): same sign, a filter at -1, a gate that is shut. Teal (its blue): opposite "
        "signs, a filter at 1, an open gate."
    )
    return caption(figure, words)


def clients(found: list[tuple[str, Clients]], y: np.ndarray) -> Figure:
    """Where clients lie in the plane of two components: a column per (title, clients), a row per
    class; y [n] of all rows."""
    labels = np.unique(y)
    size = (WIDTH, 2.3 * len(labels))
    alike = dict(sharex=True, sharey=True, squeeze=False)
    figure, axes = plt.subplots(len(labels), len(found), figsize=size, **alike)
    for column, (title, these) in zip(axes.T, found, strict=True):
        for ax, label in zip(column, labels, strict=True):
            for k in range(these.clients):
                mine = (these.client == k) & (y == label)
                mark = _CLIENT_MARKS[k % len(_CLIENT_MARKS)]
                look = dict(s=11, color=GROUP[k % len(GROUP)], marker=mark, alpha=0.8, linewidths=0)
                ax.scatter(*these.plane[mine].T, **look)
            ax.grid(visible=False)
            if ax in axes[:, 0]:
                ax.set_ylabel(f"class {label}\ncomponent 2")
        column[0].set_title(title)
        column[-1].set_xlabel("component 1")
    where = "Where the clients' rows lie in the plane of two principal components"
    return caption(figure, f"{where}, a mark per client.")


def shuffling(rows: pd.DataFrame, metric: str, ax: Axes | None = None, shared: float = 0.0) -> Axes:
    """Figure 2: ``metric`` over the shuffle proportion, a line per method, 95 % bands over seeds,
    cut at 100.

    rows: tidy rows with shuffle_proportion, method, seed, metric, value. shared: of
    `verdict.greater`.
    """
    mine = rows[rows["metric"] == metric]
    mine = mine.assign(shuffle_proportion=mine["shuffle_proportion"].astype(float))
    ax = plotting.curves(
        _in_order(mine), "shuffle_proportion", "value", "method", ax, shared, most=100.0
    )
    ax.set(xlabel="share of rows whose clients are shuffled")
    return ax


def figure2b(rows: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Figure 2b: accuracy over the shuffle proportion; rows: as for `shuffling`.

    The two values that the paper's text prints stand in words: on the axis they would flatten ours.
    """
    ax = shuffling(rows, "test_acc", ax)
    said = (f"{p:.1f} ({METHODS[name.removesuffix('_kept')]})" for name, p in accuracies().items())
    ax.set_title(f"paper, at 1: {', '.join(said)}", fontsize=8, color=REFERENCE)
    ax.set(ylabel="accuracy, %", xlim=(-0.05, 1.05))
    return ax


def gains(gain: pd.DataFrame, ax: Axes | None = None, shared: float = 0.0) -> Axes:
    """Gain over the baseline by shuffle proportion, with 95 % bands; gain: columns
    shuffle_proportion, method, seed, gain; shared: of `verdict.greater`."""
    ax = plotting.curves(_in_order(gain), "shuffle_proportion", "gain", "method", ax, shared)
    ax.axhline(0, color=REFERENCE, linewidth=0.8)
    ax.set(xlabel="share of rows whose clients are shuffled")
    return ax


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by method, as `federated` has them: panels of one figure name them alike."""
    place = {name: n for n, name in enumerate(federated.METHODS)}
    return rows.sort_values("method", key=lambda names: names.map(place), kind="stable")
