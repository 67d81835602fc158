"""Figures of the FADE chapter on digits: Figure 2 of Hong et al. (2021)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core.colours import INK, LOSS, REFERENCE
from lgfed_core.evidence.records import stand_in
from lgfed_core.plotting import WIDTH, caption, room

from .claims import DIRECTION

LOSSES = ("vanilla", "squared")


def figure2(end: pd.DataFrame, way: pd.DataFrame, reference: dict[str, dict[str, float]]) -> Figure:
    """A line of panels per direction: target accuracy by probability, then both losses by round.

    end: direction, loss, probability, seed, stand_in, value (target accuracy, %). way: direction,
    loss, probability, seed, round, metric (target_loss, target_adversarial), value; drawn for the
    smallest probability and one half. reference: direction -> {name: target accuracy}, as lines.
    """
    directions = [d for d in DIRECTION if d in set(end["direction"])]
    size = (WIDTH, 2.3 * len(directions))
    fig, axes = plt.subplots(len(directions), 3, figsize=size, squeeze=False)
    for (first, second, third), direction in zip(axes, directions, strict=True):
        _accuracy(end[end["direction"] == direction], first, reference.get(direction, {}))
        first.set_title(DIRECTION[direction].replace("USPS", stand_in(end) or "USPS"))
        mine = way[way["direction"] == direction]
        for ax, metric in ((second, "target_loss"), (third, "target_adversarial")):
            _by_round(mine[mine["metric"] == metric], ax)
        second.set_ylabel("target, task loss")
        third.set_ylabel("target, adversarial loss")
        third.axhline(np.log(2), color=INK, lw=0.8, ls=":")  # D cannot tell
    axes[0, 0].legend()
    room(axes[0, 2], above=0.75)
    axes[0, 2].legend(fontsize=7, loc="upper left", labelspacing=0.2)
    below = "Target accuracy by how often the target takes part (bars: the range over seeds), and "
    below += f"both of its losses by round, under two losses of D{_after(way)}."
    return caption(fig, below, end)


def _after(way: pd.DataFrame) -> str:
    """How many rounds the rows have; by direction, where that differs."""
    most = way.groupby("direction")["round"].max()
    if most.nunique() < 2:
        return f", after {most.max():,.0f} rounds" if len(most) else ""
    each = (f"{rounds:,.0f} rounds ({DIRECTION[direction]})" for direction, rounds in most.items())
    return f", after {' and '.join(each)}"


def _accuracy(end: pd.DataFrame, ax: Axes, reference: dict[str, float]) -> None:
    """Target accuracy by the target's probability: mean and range over seeds, a line per loss."""
    for loss in LOSSES:
        colour, mark = LOSS[loss]
        mine = end[end["loss"] == loss].groupby("probability")["value"]
        mean, look = mine.mean(), dict(color=colour, marker=mark, capsize=2, label=loss)
        ax.errorbar(mean.index, mean, [mean - mine.min(), mine.max() - mean], **look)
    for (name, value), style in zip(reference.items(), ("--", ":", "-."), strict=False):
        ax.axhline(value, color=REFERENCE, lw=1, ls=style, label=name)
    ax.set(xlabel="probability of the target", ylabel="target accuracy, %")


def _by_round(way: pd.DataFrame, ax: Axes) -> None:
    """One loss over rounds, mean over seeds: rarest target solid, balanced groups dashed."""
    p = sorted(way["probability"].unique())
    shown = dict.fromkeys([p[0], min(p, key=lambda q: abs(q - 0.5))])
    for loss in LOSSES:
        for q, style in zip(shown, ("-", "--"), strict=False):
            mine = way[(way["loss"] == loss) & (way["probability"] == q)]
            mean = mine.groupby("round")["value"].mean()
            ax.plot(mean.index, mean, style, color=LOSS[loss][0], label=f"{loss}, {q:g}")
    ax.set(xlabel="round")
