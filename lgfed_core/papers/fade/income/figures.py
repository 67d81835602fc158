"""Figures of the FADE chapter on incomes: Figure 3a of Hong et al. (2021), and what z tells."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core.colours import INK, LOSS
from lgfed_core.evidence.verdict import reach_of
from lgfed_core.plotting import WIDTH, caption, room

from .settings import in_words

AREAS = (9, 70)  # of marks, from the fewest male users to the most, points^2
PRACTICE = {"logistic": "x", "thresholds": "+", "reduction": "*"}


def figure3a(gap: pd.DataFrame, acc: pd.DataFrame, practice: pd.DataFrame | None = None) -> Figure:
    """Delta EO by number of male users, and the plane of delta EO and accuracy; 95 % intervals.

    In the plane a mark is the larger the more male users there are: numbers would lie over each
    other.

    gap, acc: lines by seed, columns (loss, males). practice: a line per method, columns delta_eo
    and acc, drawn in the plane.
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    for loss in [x for x in LOSS if x in gap]:
        colour, mark = LOSS[loss]
        x, low = mean_and_reach(gap[loss])
        y, reach = mean_and_reach(acc[loss])
        left.errorbar(x.index, x, low, color=colour, marker=mark, capsize=2, label=in_words(loss))
        right.errorbar(
            x, y, reach, low, color=colour, marker=mark, ms=3, elinewidth=0.7, label=in_words(loss)
        )
        sizes = np.linspace(*AREAS, len(x)) if len(x) > 1 else AREAS[1]
        right.scatter(x, y, sizes, color=colour, marker=mark, zorder=3)
    if practice is not None:
        for name, line in practice.iterrows():
            at = line["delta_eo"], line["acc"]
            right.plot(*at, PRACTICE[name], color=INK, label=name, ls="", ms=7)
    left.set_xscale("log", base=2)
    left.xaxis.set_major_formatter("{x:g}")
    left.set(xlabel="male users", ylabel="ΔEO", ylim=(0, None))
    right.set(xlabel="ΔEO", ylabel="accuracy, %", xlim=(0, None))
    room(right, above=0.1, below=0.5)
    right.legend(fontsize=7, ncols=2, loc="lower right")
    words = "Delta EO by the number of male users, and accuracy against delta EO, a line per loss "
    words += (
        "of D, a mark the larger the more male users; bars are 95 % intervals, from stored runs "
    )
    words += "at paper scale."
    return caption(fig, words, gap)


def leaks(adversary: pd.DataFrame, probe: pd.DataFrame) -> Figure:
    """What guesses sex from z, by number of male users: the own adversary, and a fresh probe.

    Both: AUC in percent, lines by seed, columns (loss, males).
    """
    fig, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.5), sharey=True)
    for ax, table, title in zip(
        axes, (adversary, probe), ("own adversary", "fresh probe, the best of three"), strict=True
    ):
        for loss in [x for x in LOSS if x in table]:
            mean, reach = mean_and_reach(table[loss])
            colour, mark = LOSS[loss]
            ax.errorbar(
                mean.index, mean, reach, color=colour, marker=mark, capsize=2, label=in_words(loss)
            )
        ax.axhline(50, color=INK, lw=0.8, ls=":")
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set(title=title, xlabel="male users")
    axes[0].set_ylabel("AUC for sex, %")
    axes[1].legend(loc="center")  # between what probes find and guessing
    words = (
        "How well sex can be guessed from z, by D itself and by the best of fresh probes, by the "
    )
    words += "number of male users; bars are 95 % intervals, from stored runs at paper scale."
    return caption(fig, words, adversary)


def by_round(curves: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Delta EO on validation rows over rounds: fewest male users solid, most dashed."""
    ax = ax or plt.gca()
    males = sorted(curves["males"].unique())
    for loss in [x for x in LOSS if x in set(curves["loss"])]:
        for m, style in zip(dict.fromkeys((males[0], males[-1])), ("-", "--"), strict=False):
            mine = curves[(curves["loss"] == loss) & (curves["males"] == m)]
            mean = mine.groupby("round")["validation_delta_eo"].mean()
            ax.plot(
                mean.index, mean, style, color=LOSS[loss][0], label=f"{in_words(loss)}, {m:g} male"
            )
    ax.set(xlabel="round", ylabel="ΔEO, validation rows", ylim=(0, None))
    ax.legend(fontsize=7, ncols=3)
    words = "Delta EO on validation rows by round: fewest male users solid, most dashed."
    caption(ax.get_figure(), words, curves)
    return ax


def mean_and_reach(table: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Mean over seeds and half its 95 % interval (0 of one seed), by column."""
    n = table.count()
    reach = pd.Series(reach_of(table.std() / np.sqrt(n), n - 1), table.columns)
    return table.mean(), reach.fillna(0)
