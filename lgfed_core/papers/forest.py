"""A claim as a forest plot: a line for each setting, ours with its interval, the paper's hollow."""

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lgfed_core.colours import FAINT, INK, KIND, PALE, REFERENCE
from lgfed_core.evidence.answers import AGAINST, AS_CLAIMED, LEVEL, UNTOLD, Told
from lgfed_core.plotting import NARROW, WIDTH, caption

MARK = {  # outcome -> (colour, marker)
    AS_CLAIMED: (KIND["holds"][0], "o"),
    LEVEL: (INK, "s"),
    AGAINST: (KIND["fails"][0], "X"),
    UNTOLD: (REFERENCE, "d"),
}
OUTCOMES = {outcome: outcome for outcome in MARK}
RACE = OUTCOMES | {AS_CLAIMED: "ahead", AGAINST: "behind"}  # where a method is set beside others
_HIGH, _HEAD = 0.14, 1.05  # inches: a line of letters, and what stands above and below


def forest(
    told: Told | Sequence[Told],
    titles: str | Sequence[str],
    below: str = "",
    outcomes: Mapping[str, str] = OUTCOMES,
) -> Figure:
    """Each claim in a panel: a line for every comparison that has run, with the seeds beside it.

    Panels that are about as high stand in two columns.

    titles: what one sees, of each panel. below: what the caption says first; without it each
    claim's question and verdict. outcomes: what each is called in the legend.
    """
    claims = [told] if isinstance(told, Told) else list(told)
    titles = [titles] if isinstance(titles, str) else titles
    letters = [sum(name.count("\n") + 1.5 for name in _names(one)) for one in claims]  # some air
    columns = 2 if len(claims) > 1 and max(letters) < 1.5 * min(letters) else 1
    tall = [max(letters[n : n + columns]) for n in range(0, len(letters), columns)]
    heights = [_HIGH * max(2, lines) + _HEAD for lines in tall]
    size = (WIDTH if columns > 1 else NARROW, sum(heights) + 0.45)
    figure, axes = plt.subplots(
        len(tall), columns, figsize=size, squeeze=False, height_ratios=heights
    )
    for ax, one, title in zip(axes.flat, claims, titles, strict=False):
        _panel(ax, one, title)
    for ax in axes.flat[len(claims) :]:
        ax.remove()
    _legend(figure, claims, outcomes)
    if not below:
        said = [f"{one.claim.question} {one.words.capitalize()}." for one in claims]
        below = " ".join(said)
        below += " Hollow: the paper's difference." if _has(claims, "printed") else ""
    below += " Grey: within the margin." if _has(claims, "margin") else ""
    return caption(figure, f"{below} Bars are 95 % intervals, seeds at the right.")


def _has(claims: Sequence[Told], column: str) -> bool:
    """Whether some comparison that has run has such a number, which is drawn."""
    ran = (one.lines[one.lines["runs"] > 0] for one in claims)
    return any(lines[column].notna().any() for lines in ran)


def _names(told: Told) -> list[str]:
    """What has run, each name on as many lines as it needs."""
    ran = told.lines["name"][told.lines["runs"] > 0]
    return [textwrap.fill(name, 24, break_on_hyphens=False) for name in ran]


def _panel(ax: Axes, told: Told, title: str) -> None:
    lines = told.lines[told.lines["runs"] > 0].iloc[::-1]
    places = np.arange(len(lines))
    ax.axvline(0, color=INK, linewidth=0.8, zorder=1)
    margins = lines["margin"].dropna()
    if len(margins):
        ax.axvspan(-margins.max(), margins.max(), color=PALE, zorder=0)
    for y, line in zip(places, lines.itertuples(), strict=True):
        colour, marker = MARK[line.outcome]
        if not np.isnan(line.low):
            ax.plot([line.low, line.high], [y, y], color=colour, linewidth=1.4, zorder=2)
        ax.plot(line.estimate, y, marker, color=colour, zorder=3)
        if not np.isnan(line.printed):
            look = dict(markerfacecolor="white", markeredgecolor=INK, zorder=4)
            ax.plot(line.printed, y, "o", markersize=4, **look)
        right = ax.get_yaxis_transform()
        ax.text(1.01, y, str(line.runs), transform=right, va="center", fontsize=7, color=REFERENCE)
    ax.set_yticks(places, [*reversed(_names(told))])
    ax.set_ylim(-0.6, len(lines) - 0.4)
    ax.set_xlabel(textwrap.fill(told.claim.unit, 34, break_on_hyphens=False), fontsize=8)
    ax.set_title(textwrap.fill(title, 30, break_on_hyphens=False), loc="left", x=0.0, fontsize=9)
    ax.title.set_ha("left")
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_color(FAINT)


def _legend(figure: Figure, claims: Sequence[Told], outcomes: Mapping[str, str]) -> None:
    seen = {outcome for one in claims for outcome in one.lines["outcome"][one.lines["runs"] > 0]}
    marks = [
        Line2D([], [], color=colour, marker=marker, label=outcomes[outcome])
        for outcome, (colour, marker) in MARK.items()
        if outcome in seen
    ]
    if _has(claims, "printed"):
        hollow = dict(markerfacecolor="white", markeredgecolor=INK)
        marks.append(Line2D([], [], linestyle="", marker="o", label="the paper", **hollow))
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=7.5)
