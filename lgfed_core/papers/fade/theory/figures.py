"""The figures of FADE's theory page: what is right solid, what is printed dashed.

Each function draws one figure from the exact values of `closed_form`, `squared_loss`,
`user_collapse` and `attack`, and returns it.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from numpy.typing import NDArray

from lgfed_core.colours import CASE, CORRECTED, FAINT, LOSS as LOOKS, MEASURED, PRINTED, REFERENCE
from lgfed_core.plotting import WIDTH, caption

from . import attack, closed_form as theory_fade, squared_loss, user_collapse
from .squared_loss import BATCH_MEAN, PER_SAMPLE, VANILLA

LOSS = {  # loss -> (colour, dashes, marker)
    VANILLA: (LOOKS["vanilla"][0], "-", "o"),
    BATCH_MEAN: (LOOKS["squared"][0], "-", "s"),
    PER_SAMPLE: (LOOKS["squared"][0], "--", "^"),
}
CONDITION = CASE  # as `user_collapse.CONDITIONS`
NAMES = {"noise": "noise on each coefficient of D", "absent": "probability to stay away"}


def minima(p1: NDArray, p2: NDArray, pairs: Sequence[tuple[float, float]]) -> Figure:
    """Theorem 4.1: D~ on the way from p1 to p2 and past it, beside both versions of its minimum."""
    way = np.linspace(0, 1.5, 121)
    way = way[[(p1 + s * (p2 - p1)).min() >= 0 for s in way]]
    figure, axes = plt.subplots(1, len(pairs), figsize=(WIDTH, 2.6))
    for ax, a in zip(axes, pairs, strict=True):
        values = [theory_fade.discrepancy(p1 + s * (p2 - p1), p2, *a) for s in way]
        ax.plot(way, values, color=MEASURED, label="D~, best D")
        for formula, style, colour, label in (
            (theory_fade.minimum, "-", CORRECTED, "minimum, corrected"),
            (theory_fade.printed_minimum, "--", PRINTED, "minimum, as printed"),
        ):
            ax.axhline(formula(*a), linestyle=style, color=colour, label=label, zorder=1)
        ax.set_title(f"α₁ = {a[0]:g}, α₂ = {a[1]:g}")
        ax.set_xticks([0, 1], ["p₁ as given", "p₁ = p₂"])
    axes[0].set_ylabel("nats")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    below = (
        "D~ on the way from p1 to p2 and past it, at the best D, beside its minimum "
        "as printed and as corrected; exact values."
    )
    return caption(figure, below)


def orders(eps: Sequence[float] = (0.1, 0.5)) -> Figure:
    """Theorem 4.2: D~ and its excess for the pairs of laws that are furthest apart under eps.

    Left, divided by a1 eps, as a1 goes to 0: a value of that order stays flat. Right, the excess
    against eps at a1 = 0.01.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8))
    a1 = np.geomspace(1e-6, 0.3, 60)
    for e, style in zip(eps, ("-", ":"), strict=True):
        law = theory_fade.two_point(e)
        for value, colour, label in (
            (theory_fade.discrepancy, PRINTED, "|D~|"),
            (theory_fade.excess, CORRECTED, "excess"),
        ):
            ratio = [abs(value(*law, a, 1 - a)) / (a * e) for a in a1]
            left.loglog(a1, ratio, style, color=colour, label=f"{label}, ε = {e:g}")
    left.axhline(1, color=FAINT, linewidth=1, zorder=0)
    left.annotate(
        "constant of the proof", (a1[0], 1), (0, 3), textcoords="offset points", fontsize=7
    )
    left.set(xlabel="weight α₁ of the rare group", ylabel="divided by α₁ε")
    left.set(ylim=(0.02, 2e4), title="Only the excess is of the order α₁ε")
    left.legend(ncols=2)
    a, fine = 0.01, np.geomspace(0.01, 10, 60)
    right.loglog(fine, a * fine, "--", color=PRINTED, label="α₁ε, the paper's order")
    bound = [theory_fade.excess_bound(a, 1 - a, e) for e in fine]
    right.loglog(fine, bound, color=REFERENCE, linewidth=3, alpha=0.4, label="α₁ε tanh(ε/2)")
    worst = [theory_fade.excess(*theory_fade.two_point(e), a, 1 - a) for e in fine]
    right.loglog(fine, worst, color=CORRECTED, label="largest excess")
    right.set(xlabel="largest log ratio ε", ylabel="nats")
    right.set_title("... and of α₁ε² for small ε")
    right.legend()
    below = (
        "D~ and its excess for the laws that are furthest apart, divided by the "
        "printed order (left), and against the largest log ratio (right); exact "
        "values."
    )
    return caption(figure, below)


def imbalance(far: float = 0.05) -> Figure:
    """What the three losses make of a rare group: D's sensitivity, the pull, and the distance.

    Left, d (1 - d) at matched groups; middle, the pull on the encoder near the match, relative to
    that of balanced groups, lines exact and marks from solved D; right, the pull at a1 = ``far``.
    """
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(WIDTH + 0.9, 3.0))
    a1, marks = np.geomspace(1e-5, 0.5, 50), np.geomspace(1e-5, 0.5, 6)
    delta, step = np.linspace(0.02, 5, 30), 0.05
    for loss, (colour, dashes, marker) in LOSS.items():
        d = np.array([squared_loss.matched_output(a, 1 - a, loss) for a in a1])
        left.loglog(a1, d * (1 - d), dashes, color=colour, label=loss.name)
        even = squared_loss.matched_pull(0.5, 0.5, loss)
        exact = [squared_loss.matched_pull(a, 1 - a, loss) / even for a in a1]
        middle.loglog(a1, exact, dashes, color=colour)
        solved = [squared_loss.pull(step, a, 1 - a, loss) / step / even for a in marks]
        middle.loglog(marks, solved, marker, color=colour, markersize=4)
        pulls = [squared_loss.pull(x, far, 1 - far, loss) for x in delta]
        right.plot(delta, pulls, dashes, color=colour)
    left.set(xlabel="weight α₁ of the rare group", ylabel="d (1 − d)")
    left.set_title("How D answers to log p₁")
    middle.set(xlabel="weight α₁ of the rare group", ylabel="pull, relative to balance")
    middle.set_title("Pull on the encoder")
    right.set(xlabel="distance δ of the groups", ylabel="pull", ylim=(0, None))
    right.set_title(f"... at α₁ = {far:g}")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    below = (
        "What three losses of D make of a rare group: its sensitivity, the pull on "
        "the encoder, and the pull by distance; lines are exact, marks come from "
        "solved D."
    )
    return caption(figure, below)


def readings(steps: pd.DataFrame) -> Figure:
    """D trained as each formula of section 4.2 says; table as of `squared_loss.climb`."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.7))
    looks = zip(CASE, ("-", (0, (6, 2)), (3, (3, 5)), (0, (1, 2))), strict=True)
    for (name, lines), (colour, style) in zip(
        steps.groupby("reading", sort=False), looks, strict=True
    ):
        left.plot(lines["step"], lines["value"].abs(), linestyle=style, color=colour, label=name)
        right.plot(lines["step"], lines["right"], linestyle=style, color=colour)
    for ax in (left, right):
        ax.set_xscale("symlog", linthresh=1)
        ax.set(xlabel="step of D", xlim=(0, None))
    left.set(yscale="log", ylabel="|value|")
    left.set_title("What D is trained for")
    right.set(ylim=(0, 1), ylabel="guesses that are right")
    right.set_title("How well it guesses the group")
    handles = left.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, handlelength=3.5)
    below = (
        "D trained step by step as each formula of section 4.2 reads: its objective, "
        "and how often it guesses right; exact gradients, one start."
    )
    return caption(figure, below)


def collapse(ends: dict[user_collapse.Condition, tuple[NDArray, NDArray]]) -> Figure:
    """Section 4.3. First, the gap on the line of matched marginals; then where training ends.

    ends: condition -> starts and ends [runs, 2] as of `user_collapse.train`, a panel each.
    """
    figure, axes = plt.subplots(
        1, 1 + len(ends), figsize=(WIDTH + 0.9, 2.9), width_ratios=(1.35, *[1] * len(ends))
    )
    u = np.linspace(0, 1, 101)
    for condition, colour in zip(user_collapse.CONDITIONS, CONDITION, strict=True):
        gaps = [user_collapse.gap(user_collapse.line(x), condition) for x in u]
        style = (0, (1, 1.5)) if condition.predictions else "-"
        width = 3 if condition.predictions else 1.5
        axes[0].plot(u, gaps, linestyle=style, color=colour, linewidth=width, label=condition.name)
    axes[0].set_title("Excess, classes mixed by u")
    axes[0].set(xlabel="share u", ylabel="nats")
    axes[0].set_xticks([0, 0.5, 1], ["0\nright", "½\ncollapse", "1\nswapped"])
    for ax, (condition, (start, end)) in zip(axes[1:], ends.items(), strict=True):
        ax.plot([0, 1], [1, 0], color=FAINT, linewidth=1, zorder=0)
        colour = CONDITION[user_collapse.CONDITIONS.index(condition)]
        ax.plot(*np.stack([start, end]).transpose(2, 0, 1), color=FAINT, linewidth=0.6)
        ax.plot(*end.T, "o", color=colour, markersize=3.5, clip_on=False)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="q(1 | user 0)")
        ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        ax.set_yticks([0, 0.5, 1], ["0", "½", "1"])
        words = (
            "z alone" if condition.name == "nothing" else f"z and {condition.name.split(' (')[0]}"
        )
        ax.set_title(f"D sees {words}", fontsize=7.5)
    axes[1].set_ylabel("q(1 | user 1)")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=2,
        title="what D sees beside z",
        title_fontsize=8,
    )
    below = (
        "The gap of D when predictions are mixed (left), and where training from "
        "random starts ends (dots); live run."
    )
    return caption(figure, below)


def stolen(found: attack.Attack, careful: attack.Attack) -> Figure:
    """Section 4.5: what was stolen (seed 0), then the distance against noise and against absence.

    found: undefended, some with noise, some absent, at usual steps; careful: absent ones, at small
    steps. Dots are seeds, lines their medians after the last round.
    """
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH + 0.9, 2.9))
    axes[0].set(aspect="equal", xlim=(-3.4, 5.4), ylim=(-3, 5.4))
    _ellipse(axes[0], attack.MEAN, attack.COVARIANCE, MEASURED, "-", "victim")
    _ellipse(axes[0], np.zeros(2), np.eye(2), REFERENCE, ":", "start")
    shown = {"no defence": (0.0, 0.0), "noise": (0.1, 0.0), "absent": (0.0, 0.9)}
    for (name, pair), colour in zip(shown.items(), CASE[:3], strict=True):
        for d, defence in enumerate(found.defences):
            if (defence.noise, defence.absent) == pair:
                L = found.factors[-1, d, 0]
                words = name + f" {max(pair):g}" * (max(pair) > 0)
                _ellipse(axes[0], found.means[-1, d, 0], L @ L.T, colour, "--", words)
    axes[0].legend(fontsize=6.5, loc="upper left", handlelength=1.2, borderaxespad=0.1)
    axes[0].set_title("Two standard deviations")
    end = [t[t["round"] == t["round"].max()] for t in (found.table(), careful.table())]
    _distances(axes[1], end[0][end[0]["absent"] == 0], "noise", CASE[1], "300 rounds")
    axes[1].set_xscale("symlog", linthresh=0.01)
    axes[1].set(xlim=(-0.002, 1.3))
    axes[1].minorticks_off()
    axes[1].set_xticks([0, 0.01, 0.1, 1], ["0", "0.01", "0.1", "1"])
    _distances(axes[2], end[0][end[0]["noise"] == 0], "absent", CASE[2], "300 rounds")
    _distances(axes[2], end[1], "absent", CASE[3], f"{careful.rounds[-1]}, smaller steps")
    axes[1].set_title("By noise")
    axes[2].set_title("By absence")
    axes[1].set_ylabel("Fréchet distance left")
    axes[2].legend(fontsize=7)
    below = (
        "What the thief learns of the victim's distribution, undefended, under noise and "
        "under absence (left), and its distance from the truth; dots are seeds, lines "
        "medians, live run."
    )
    return caption(figure, below)


def _distances(ax: Axes, lines: pd.DataFrame, by: str, colour: str, label: str) -> None:
    ax.plot(lines[by], lines["distance"], ".", color=colour, markersize=3, alpha=0.5)
    median = lines.groupby(by)["distance"].median()
    ax.plot(median.index, median, color=colour, label=label)
    ax.axhline(attack.START, color=REFERENCE, linestyle=":", linewidth=1)
    ax.set(yscale="log", xlabel=NAMES[by])


def _ellipse(ax: Axes, mean, covariance, colour: str, style: str, label: str) -> None:
    values, vectors = np.linalg.eigh(covariance)
    width, height = 4 * np.sqrt(values.clip(0))  # two deviations on either side
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    ax.add_patch(
        Ellipse(
            mean,
            width,
            height,
            angle=angle,
            fill=False,
            color=colour,
            linestyle=style,
            linewidth=1.4,
            label=label,
        )
    )
