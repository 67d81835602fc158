"""What several pages draw: curves by method, and the paper's numbers beside ours."""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lgfed_core.colours import INK, METHOD, PALE, PROTOCOL, SPARE
from lgfed_core.evidence.printed import METHODS, METRICS
from lgfed_core.evidence.verdict import reach_of


def looks(methods: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each method; unknown ones take spare pairs in the order given."""
    spare = iter(SPARE * 4)
    return {m: METHOD.get(m) or next(spare) for m in dict.fromkeys(methods)}


def room(ax: Axes, above: float) -> None:
    """Make room for a legend: extend the y axis by this share of its height."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + above * (high - low))


def curves(
    history: pd.DataFrame,
    x: str = "round",
    y: str = "new_test_acc",
    by: str = "method",
    ax: Axes | None = None,
    shared: float = 0.0,
    most: float = np.inf,
) -> Axes:
    """Mean of ``y`` over seeds against ``x``, a line per value of ``by``, with its 95 % band.

    history: one line per seed and x (columns x, y, by, and seed where there are several). Student's
    t band; none where a point has one seed. Points without ``y`` (rounds that were not evaluated)
    are left out. shared: of `verdict.greater`, where seeds split the same few rows. most: what
    ``y`` cannot exceed; bands are cut there.
    """
    ax = ax or plt.gca()
    history = history.dropna(subset=y)
    for method, (colour, marker) in looks(history[by]).items():
        points = history[history[by] == method].groupby(x)[y].agg(["mean", "std", "count"])
        some = slice(None, None, max(1, len(points) // 8))
        look = dict(color=colour, marker=marker, markevery=some)
        ax.plot(points.index, points["mean"], label=METHODS.get(method, str(method)), **look)
        n = points["count"]
        reach = reach_of(points["std"] * np.sqrt(1 / n + shared), n - 1)
        if (n > 1).any():
            low, high = points["mean"] - reach, (points["mean"] + reach).clip(upper=most)
            ax.fill_between(points.index, low, high, color=colour, alpha=0.18, linewidth=0)
    if pd.api.types.is_integer_dtype(history[x]):
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel(x.replace("_", " "))
    ax.set_ylabel(METRICS.get(y, y.replace("_", " ")))
    if len(history):
        ax.legend()
    return ax


def paper_vs_ours(
    table: pd.DataFrame,
    metric: str,
    ax: Axes | None = None,
    xlim: tuple[float, float] | None = None,
) -> Axes:
    """The paper's value (hollow, with its deviation) over ours (filled, as released by half).

    table: of `report.table`, lines of one metric are drawn; per protocol its first selection.
    The shaded band is the margin within which a number counts as reproduced. Values outside
    ``xlim`` are written at the edge on their side.
    """
    ax = ax or plt.gca()
    lines = table[table["metric"] == metric]
    names = list(dict.fromkeys(lines["row"]))
    lines = lines.assign(y=lines["row"].map(names.index)).drop_duplicates(["row", "protocol"])
    if xlim:
        ax.set_xlim(*xlim)
    rows, band = lines.drop_duplicates("row"), dict(height=0.84, color=PALE, linewidth=0, zorder=0)
    ax.barh(rows["y"], 2 * rows["margin"], left=rows["paper"] - rows["margin"], **band)
    used = [p for p in PROTOCOL if (lines.loc[lines["seeds"] > 0, "protocol"] == p).any()]
    steps = np.linspace(-0.26, 0.26, 1 + len(used)) if used else [0.0]
    hollow = {"marker": "o", "markerfacecolor": "white"}
    _dots(ax, rows, "paper", steps[0], hollow, "paper")
    for protocol, step in zip(used, steps[1:], strict=True):
        run = lines[(lines["protocol"] == protocol) & (lines["seeds"] > 0)]
        seeds = "-".join(str(s) for s in sorted({run["seeds"].min(), run["seeds"].max()}))
        label = f"ours, {protocol.replace('_', ' ')} ({seeds} seed{'s' * (seeds != '1')})"
        _dots(ax, run, "ours", step, PROTOCOL[protocol] | {"linestyle": ""}, label)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(METRICS.get(metric, metric))
    return ax


def _dots(ax, cells, value, step, mark, label) -> None:
    """Dots with deviation; a dot beyond fixed limits becomes its number, written at the edge."""
    low, high = ax.get_xlim() if not ax.get_autoscalex_on() else (-np.inf, np.inf)
    inside = cells[cells[value].between(low, high)]
    look = {"linestyle": "", "color": INK, "elinewidth": 1.1, "label": label} | mark
    spread = inside[f"{value}_sd"].fillna(0)
    ax.errorbar(inside[value], inside["y"] + step, xerr=spread, **look)
    for cell in cells[~cells[value].between(low, high)].itertuples():
        found = getattr(cell, value)
        at, side, arrow = (low, "left", "← {:.1f}") if found < low else (high, "right", "{:.1f} →")
        look = dict(ha=side, va="center", fontsize=7, color=INK)
        ax.text(at, cell.y + step, arrow.format(found), **look)
