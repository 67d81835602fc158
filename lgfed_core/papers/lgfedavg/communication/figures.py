"""The figures of the accounting page: accuracy against bytes sent, live and stored."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lgfed_core.colours import INK, METHOD
from lgfed_core.evidence.printed import METHODS
from lgfed_core.plotting import WIDTH, caption

TESTS = {"local_test_acc": "Each device's own classes", "new_test_acc": "New devices"}


def live(curves: pd.DataFrame, ends: pd.DataFrame) -> Figure:
    """A live run: accuracy against megabytes, on own classes (curves) and on new devices (ends).

    curves: of `bytes_sent.by_round`; ends: of `bytes_sent.ends`. Means over seeds. Local-only
    training sends nothing and stands at zero.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    for part, lines in curves.dropna(subset="local_test_acc").groupby("part", sort=False):
        method = lines["method"].iloc[0]
        mean = lines.groupby("round")[["megabytes", "local_test_acc"]].mean()
        if method == "fedavg":
            trunk = mean
        elif method == "lg_fedavg":  # a branch, from the FedAvg round it starts from
            mean = pd.concat([trunk[trunk["megabytes"] < mean["megabytes"].min()].tail(1), mean])
        colour, marker = METHOD[method]
        width = 1.1 if part.startswith("lg_") else 1.5
        left.plot(mean["megabytes"], mean["local_test_acc"], color=colour, linewidth=width)
        left.plot(*mean.iloc[-1], marker=marker, color=colour)
    fed = curves[curves["method"] == "fedavg"].dropna(subset="new_test_acc")
    fed = fed.groupby("round")[["megabytes", "new_test_acc"]].mean()
    right.plot(fed["megabytes"], fed["new_test_acc"], color=METHOD["fedavg"][0])
    for method, lines in ends.groupby("method", sort=False):
        mean = lines.groupby("megabytes")["new_test_acc"].mean()
        colour, marker = METHOD[method]
        right.plot(mean.index, mean, color=colour, marker=marker, linewidth=1.1, linestyle=":")
    for ax, (_, title) in zip((left, right), TESTS.items(), strict=True):
        ax.set(title=title, xlabel="megabytes sent, all devices")
        ax.margins(x=0.04)
    left.set_ylabel("test accuracy, %")
    figure.legend(handles=_marks(curves["method"]), loc="outside lower center", ncols=4)
    below = "Accuracy against megabytes sent, on own classes and on new devices; means over seeds."
    return caption(figure, below, curves)


def front(groups: Mapping[str, pd.DataFrame]) -> Figure:
    """Stored runs: accuracy against gigabytes, a row of panels per data set, a column per test.

    groups: title -> `bytes_sent.points`. Filled with a solid line: ours; hollow with a dotted line:
    the paper. Bars are 95 % intervals of the mean. A point far below the others is written at the
    edge.
    """
    size = (WIDTH, 0.6 + 2.2 * len(groups))
    figure, axes = plt.subplots(len(groups), 2, figsize=size, sharex="row", squeeze=False)
    for pair, (title, table) in zip(axes, groups.items(), strict=True):
        for ax, (metric, test) in zip(pair, TESTS.items(), strict=True):
            cells = table[table["metric"] == metric]
            low = _floor(cells)
            ax.set_ylim(low, _ceiling(cells))
            for who, lines in cells.groupby("who", sort=False):
                _series(ax, lines[lines["mean"] >= low], who)
            _below(ax, cells[cells["mean"] < low])
            ax.set_title(f"{title}: {test[0].lower()}{test[1:]}")
            if not (cells["who"] == "ours").any():
                ax.text(0.3, 0.55, "ours: not yet run", transform=ax.transAxes, ha="center")
            _name_ends(ax, cells[cells["method"] == "lg_fedavg"])
            ax.set_xlim(right=1.22 * cells["gigabytes"].max())
        pair[0].set_ylabel("test accuracy, %")
    for ax in axes[-1]:
        ax.set_xlabel("gigabytes sent in all rounds, all devices")
    methods = pd.concat(groups.values())["method"]
    hollow = Line2D([], [], color=INK, marker="o", markerfacecolor="white", linestyle=":")
    hollow.set_label("paper (hollow)")
    figure.legend(handles=[*_marks(methods), hollow], loc="outside lower center", ncols=5)
    below = (
        "Accuracy against gigabytes sent; filled: ours, stored at paper scale, with "
        "95 % intervals over seeds; hollow: the paper."
    )
    return caption(figure, below)


def _series(ax: Axes, lines: pd.DataFrame, who: str) -> None:
    """Points with bars; the budgets of LG-FedAvg are joined."""
    ours = who == "ours"
    for method, cells in lines.groupby("method", sort=False):
        colour, marker = METHOD[method]
        cells = cells.sort_values("gigabytes")
        bars = [cells["mean"] - cells["low"], cells["high"] - cells["mean"]]
        look = dict(color=colour, marker=marker, elinewidth=1, linewidth=1.1, clip_on=False)
        if ours:
            look |= dict(markerfacecolor=colour, linestyle="-", markersize=5, zorder=3)
        else:
            look |= dict(markerfacecolor="white", linestyle=":", markersize=4.5, zorder=2)
        reach = [bar.fillna(0) for bar in bars]
        ax.errorbar(cells["gigabytes"], cells["mean"], reach, **look)


def _name_ends(ax: Axes, cells: pd.DataFrame) -> None:
    """FedAvg + LG rounds at the first and the last budget of LG-FedAvg, at our points if any."""
    who = "ours" if (cells["who"] == "ours").any() else "paper"
    cells = cells[cells["who"] == who].sort_values("gigabytes")
    for cell, shift, side in ((cells.iloc[0], -6, "right"), (cells.iloc[-1], 6, "left")):
        look = dict(va="center", fontsize=7, color=METHOD["lg_fedavg"][0])
        place, text = cell[["gigabytes", "mean"]], f"{cell['fedavg_rounds']}+{cell['lg_rounds']}"
        ax.annotate(text, place, (shift, 0), textcoords="offset points", ha=side, **look)


def _below(ax: Axes, cells: pd.DataFrame) -> None:
    for n, cell in enumerate(cells.sort_values("mean", ascending=False).itertuples()):
        text = f"↓ {cell.mean:.1f} {METHODS[cell.method]}, {cell.who}"
        look = dict(color=METHOD[cell.method][0], fontsize=7.5)
        look["ha"] = "right" if cell.gigabytes > 0 else "left"
        place = cell.gigabytes, ax.get_ylim()[0]
        ax.annotate(text, place, (0, 4 + 10 * n), textcoords="offset points", **look)


def _floor(cells: pd.DataFrame) -> float:
    """Below this a point is written, not drawn: far under the lowest of FedAvg and LG-FedAvg."""
    main = cells[cells["method"].isin(["fedavg", "lg_fedavg"])]
    spread = _ceiling(main) - main["mean"].min()
    near = cells[cells["mean"] > main["mean"].min() - max(0.4 * spread, 0.2)]
    low = np.nanmin(near[["mean", "low"]].to_numpy())
    written = (cells["mean"] < low).sum()  # each needs a line of its own
    return low - (0.12 + 0.05 * written) * (_ceiling(cells) - low)


def _ceiling(cells: pd.DataFrame) -> float:
    return min(100.0, np.nanmax(cells[["mean", "high"]].to_numpy()) * 1.0005)


def _marks(methods: pd.Series) -> list[Line2D]:
    """One legend entry per method, in the order given."""
    out = []
    for method in dict.fromkeys(methods):
        colour, marker = METHOD[method]
        out.append(Line2D([], [], color=colour, marker=marker, label=METHODS[method]))
    return out
