"""The figures of the fairness page: gradients as released, adversaries and probes, the frontier.

Each function draws one figure, from rows or tables of `claims`, and returns it.
"""

from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core.colours import CASE, INK, LOSS, METHOD, REFERENCE
from lgfed_core.evidence.printed import METHODS, METRICS
from lgfed_core.plotting import WIDTH, caption

from . import claims as adult_claims, run as adult

LOSSES = ("vanilla", "squared")
_APART = 0.7  # points of leakage: nearer neighbours on a line would have labels on each other
_SWEPT = ((CASE[3], "X"), (CASE[0], "v"), (CASE[2], "p"))  # ways of the sweep, in turn
_FLAGS = {"lg_fedavg_adv": "adv = 1", "lg_fedavg": "adv = 0"}  # of the released script
_JUDGES = {  # metric -> (marker, size, words)
    "adv_auc": ("o", 34, "the adversary of the game"),
    "probe_logistic": ("|", 60, METRICS["probe_logistic"]),
    "probe_trees": ("1", 50, METRICS["probe_trees"]),
    "probe_network": ("x", 30, METRICS["probe_network"]),
}


def released_steps(steps: pd.DataFrame) -> Figure:
    """What the released loop does with gradients, round by round; steps: one line per round, seed.

    Columns: method, round, seed, cos_adversary, share_local, adversary_norm, zero_gradient (part of
    all looks, 0 to 1). Left, the cosine between the adversary's gradient and what the adversary is
    moved by (as intended: 1); middle, the part of the adversary's push that reaches the local model
    (as intended: 1, backwards: -1); both where there is a gradient. Right, how far the adversary
    walks. Bands are one deviation over seeds.
    """
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.6))
    titles = {
        "cos_adversary": "Adversary: cosine of its\ngradient and its step",
        "share_local": "Local model: share of\nthe push that arrives",
        "adversary_norm": "Length of the\nadversary's weights",
    }
    for ax, (column, title) in zip(axes, titles.items(), strict=True):
        for method, words in _FLAGS.items():
            lines = steps[steps["method"] == method].groupby("round")[column]
            _band(ax, lines.mean(), lines.std(), *METHOD[method], words)
        ax.set(title=title, xlabel="round of the joint phase")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if column != "adversary_norm":
            ax.axhline(1, color=INK, linestyle=":", linewidth=1.2)
            ax.set_ylim(-1.15, 1.15)
    axes[0].annotate(
        "as intended",
        (0.03, 1),
        (0, -3),
        ("axes fraction", "data"),
        "offset points",
        va="top",
        fontsize=8,
    )
    axes[2].set_yscale("log")
    axes[2].legend(title="released script")
    zero = steps.groupby("method")["zero_gradient"].mean()
    none = " and ".join(f"{100 * zero[m]:.0f} % ({words})" for m, words in _FLAGS.items())
    # False if the gradients of a run made since were zero in another part of what was looked at.
    below = (
        "Round by round, what the released loop does with gradients beside what it "
        "intends; bands are one deviation over seeds. In single precision the adversary's "
        f"gradient is zero in {none} of what was looked at: cosine and share are of the rest."
    )
    return caption(figure, below, steps.set_index("seed"))


def judges(stored: pd.DataFrame) -> Figure:
    """Who finds out race and sex: the adversary that took part, and probes fitted afterwards.

    A panel per protocol and split; means over seeds at paper scale, race and sex averaged.
    """
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 3.6), sharex=True, sharey=True)
    names = [METHODS[m] for m in adult.METHODS]
    for row, protocol in zip(axes, ("as_released", "as_described"), strict=True):
        for ax, split in zip(row, adult.SPLITS, strict=True):
            for metric, (marker, size, words) in _JUDGES.items():
                found = [
                    adult_claims.cell(stored, metric, method, split, protocol).mean()
                    for method in adult.METHODS
                ]
                colours = [METHOD[m][0] for m in adult.METHODS]
                ax.scatter(found, range(3), s=size, marker=marker, c=colours, label=words, zorder=3)
            ax.axvline(50, color=INK, linestyle=":", linewidth=1.2)
            devices = {"iid": "i.i.d.", "noniid": "non-i.i.d."}[split]
            ax.set_title(f"{protocol.replace('_', ' ')}, {devices} devices")
            ax.set_yticks(range(3), names)
    axes[0, 0].set_ylim(2.5, -0.5)
    for ax in axes[1]:
        ax.set_xlabel("AUC for race and sex, mean, %")
    handles, words = axes[0, 0].get_legend_handles_labels()
    legend = figure.legend(handles, words, loc="outside lower center", ncols=4)
    for handle in legend.legend_handles:
        handle.set_color(INK)
    below = (
        "How well race and sex can be told from representations, by the adversary "
        "that took part and by fresh probes; means over stored runs at paper scale."
    )
    return caption(figure, below)


def frontier(
    table: pd.DataFrame,
    points: dict[str, tuple[float, float]],
    base_rate: float,
    bits: pd.DataFrame | None = None,
    swept: dict[str, tuple[float, float]] | None = None,
) -> Figure:
    """Leakage to the best probe against accuracy, along lambda; up and to the left is better.

    table: of `claims.frontier`; points: method -> (leakage, accuracy), e.g. FedAvg's;
    base_rate: accuracy of saying "no" to everyone, who leaks nothing; bits: of
    `best_bit.best_bits`; swept: words -> (leakage, accuracy) of the sweep. All in percent.
    """
    figure, ax = plt.subplots(figsize=(WIDTH, 4.2))
    ax.axhline(base_rate, color=REFERENCE, linestyle=":", linewidth=1.2)
    ax.plot(50, base_rate, marker="s", color=REFERENCE, linestyle="", label='"no" to everyone')
    for loss in LOSSES:
        colour, marker = LOSS[loss]
        if len(table) and loss in table.index.get_level_values(0):
            _path(ax, table.loc[loss], colour, marker, f"{loss} loss, by λ")
    for method, (leak, accuracy) in points.items():
        colour, marker = METHOD[method]
        ax.plot(
            leak,
            accuracy,
            marker=marker,
            color=colour,
            markersize=8,
            linestyle="",
            markeredgecolor="white",
            label=f"{METHODS[method]}, Table 4",
        )
    for (words, point), (colour, marker) in zip((swept or {}).items(), cycle(_SWEPT)):
        look = dict(markersize=8, linestyle="", markeredgecolor="white", markeredgewidth=0.6)
        ax.plot(*point, marker=marker, color=colour, label=words, **look)
    if bits is not None:
        line = bits.sort_values("leak")
        best = line["accuracy"].cummax()
        far = max(ax.get_xlim()[1], line["leak"].max())  # who may leak more is no worse
        ax.step([*line["leak"], far], [*best, best.iloc[-1]], where="post", color=CASE[1])
        ax.plot([], [], color=CASE[1], label="the best bit found")
    ax.set(
        xlabel="leakage: AUC of the best probe, mean of race and sex, %",
        ylabel="accuracy on income, %",
    )
    ax.set_xlim(left=49)
    marks = zip(*ax.get_legend_handles_labels(), strict=True)
    marks = sorted(marks, key=lambda mark: mark[1] in (swept or {}))  # long names in one column
    figure.legend(*zip(*marks, strict=True), loc="outside lower center", ncols=2)
    below = (
        "Leakage to the best probe against accuracy along lambda, under two losses of "
        "the adversary; bars are one deviation over seeds; up and to the left is better."
    )
    return caption(figure, below)


def _path(ax: Axes, table: pd.DataFrame, colour: str, marker: str, words: str) -> None:
    x, y = (table[metric, "mean"] for metric in ("probe_best", "class_acc"))
    reach = [table[metric, "std"].fillna(0) for metric in ("probe_best", "class_acc")]
    ax.errorbar(x, y, reach[1], reach[0], color=colour, marker=marker, elinewidth=0.7, label=words)
    below = marker == LOSS["vanilla"][1]
    look = dict(fontsize=7, color=colour, textcoords="offset points")
    crowds = (x.diff().abs() > _APART).cumsum()  # those of a crowd share one label
    for _, at in x.groupby(crowds).groups.items():
        words = f"{at[0]:g}" if len(at) == 1 else f"{at[0]:g} to {at[-1]:g}"
        if below:
            ax.annotate(words, (x[at].min(), y[at].min()), (-4, -11), ha="right", **look)
        else:
            ax.annotate(words, (x[at].max(), y[at].max()), (3, 6), **look)


def _band(ax: Axes, mean: pd.Series, sd: pd.Series, colour: str, marker: str, words: str) -> None:
    ax.plot(mean.index, mean, color=colour, marker=marker, label=words)
    reach = np.nan_to_num(sd)
    ax.fill_between(mean.index, mean - reach, mean + reach, color=colour, alpha=0.18, linewidth=0)
