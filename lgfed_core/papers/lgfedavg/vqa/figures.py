"""Figures of the page on questions about pictures: some rows, curves, bytes to the goal."""

from textwrap import fill

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import INK, METHOD as LOOKS, REFERENCE
from lgfed_core.data.questions import Asked
from lgfed_core.evidence import verdict
from lgfed_core.evidence.printed import METHODS, cells
from lgfed_core.plotting import WIDTH, caption

from ..communication.counts import BYTES, System
from ..printed import TABLES
from . import claims
from .run import METHOD, TABLE
from .tables import LINES, by_line, by_rate


def rows(asked: Asked, numbers: range) -> Figure:
    """Some training rows: the picture as the network sees it, its question and the answer."""
    figure, axes = plt.subplots(2, -(-len(numbers) // 2), figsize=(WIDTH, 3.4))
    for ax, n in zip(axes.flat, numbers, strict=True):
        row, y = asked.data.train.x[n], int(asked.data.train.y[n])
        ax.imshow(asked.picture(row))
        ax.set(xticks=[], yticks=[])
        ax.set_title(fill(asked.question(row), 18) + f"\n{asked.answers[y]}", fontsize=7)
        ax.grid(visible=False)
    below = (
        "Some training rows: the picture as the network sees it, the question and the "
        "answer (stand-in data)."
    )
    return caption(figure, below)


def ways(curves: pd.DataFrame, cfg, own: System, floor: float | None = None) -> Figure:
    """Local test against rounds, and against megabytes sent: a line per method and start.

    curves: of `Questions.progress` or `tables.curves`. Thick: means over seeds; thin: single ones.
    LG-FedAvg's line goes on from FedAvg's at ``cfg.start``; dashed: from the first weights. own:
    what a round sends. floor: accuracy, in percent, without looking at pictures.
    """
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.3), sharey=True)
    wide = by_line(curves)
    for line, table in wide.items():
        for ax, x in zip(axes, _sent(line, table.index, cfg, own), strict=True):
            _draw(ax, line, x, table)
    axes[0].xaxis.get_major_locator().set_params(integer=True)
    for ax in axes:
        ax.axhline(100 * cfg.goal, color=INK, linestyle=":", linewidth=1, label="goal")
        if floor is not None:
            ax.axhline(floor, color=REFERENCE, linestyle="-.", linewidth=1, label="no picture seen")
    missing = "" if wide else f": {verdict.NOT_RUN}"
    axes[0].set(xlabel="round", ylabel="local test accuracy, %", title=f"Rounds{missing}")
    axes[1].set(xlabel="megabytes sent, all devices", title=f"Bytes{missing}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    below = (
        "Accuracy on own classes by round and by megabytes sent; thick lines are means over seeds, "
        "thin ones single seeds, dashed from the first weights (stand-in data)."
    )
    return caption(figure, below, curves)


def levels(rows: pd.DataFrame, cfg) -> Figure:
    """Local test against rounds in all of longer runs: a panel per learning rate.

    rows: of `tables.longer`. Thick: means over seeds; thin: single ones; dashed: from the first
    weights.
    """
    rates = by_rate(rows, cfg.start)
    figure, axes = plt.subplots(
        1, max(1, len(rates)), figsize=(WIDTH, 2.9), sharey=True, squeeze=False
    )
    for ax, (lr, lines) in zip(axes.flat, rates.items(), strict=False):
        for line, table in lines.items():
            _draw(ax, line, list(table.index), table)
        ax.axvline(cfg.rounds, color=REFERENCE, linestyle=":", linewidth=1)
        ax.set(xlabel="round", title=f"Learning rate {lr:g}")
    axes[0, 0].set_ylabel("local test accuracy, %")
    if rates:
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    else:
        axes[0, 0].set_title(verdict.NOT_RUN)
    below = (
        "Accuracy on own classes by round of longer runs; thick lines are means over seeds, thin "
        "ones single seeds, dashed from the first weights; dotted: the budget of the runs above "
        "(stand-in data)."
    )
    return caption(figure, below, rows)


def to_goal(rows: pd.DataFrame) -> Figure:
    """Rounds until the goal, and parameters that LG-FedAvg has sent by then in percent of FedAvg's.

    rows: of `claims.stored`. Filled: ours, a mark per seed; hollow: the paper. A seed that does not
    get to the goal is an arrow at its last round; on the right one of LG-FedAvg's is missing, and
    where it is FedAvg's the mark is an arrow to the left, as the share is at most that.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 1.8))
    printed = cells(TABLES[TABLE]).set_index(["method", "metric"])["paper"]
    paper = dict(linestyle="", marker="o", color=INK, markerfacecolor="white", label="paper")
    methods = ("fedavg", "lg_fedavg")
    for y, method in enumerate(methods):
        colour, marker = LOOKS[method]
        rounds = claims.until_goal(rows, method)
        got = claims.at_goal(rows, method, "goal_reached") == 1
        for some, mark in ((rounds[got], marker), (rounds[~got], ">")):
            left.plot(some, [y] * len(some), linestyle="", marker=mark, color=colour)
        whole = printed[method, "fedavg_rounds"] + printed[method, "lg_rounds"]
        left.plot([whole], [y], **paper)
    left.set_yticks(range(len(methods)), [METHODS[method] for method in methods])
    left.set(ylim=(1.6, -0.6), xlabel="rounds to the goal", xlim=(0, None))
    ours, (colour, marker) = claims.shares(rows).dropna(), LOOKS["lg_fedavg"]
    look = dict(linestyle="", marker=marker, color=colour, label="ours, a seed each")
    most = ours.index.map(claims.at_goal(rows, "fedavg", "goal_reached")) != 1
    right.plot(ours[~most], [0] * (~most).sum(), **look)
    right.plot(ours[most], [0] * most.sum(), **(look | dict(marker="<", label="")))
    right.plot([claims.printed_share()], [0], **paper)
    right.axvline(100, color=LOOKS["fedavg"][0], linewidth=1, label="FedAvg")
    right.set(yticks=[], xlabel="LG-FedAvg has sent, % of FedAvg's", xlim=(0, None))
    left.set_title("" if len(rows) else f"ours: {verdict.NOT_RUN}")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    below = (
        "Rounds until the goal, and what LG-FedAvg has sent by then; filled: ours, a "
        "mark per seed, on stand-in data; hollow: the paper. An arrow to the right: a seed at its "
        "last round, short of the goal; to the left: at most that, as FedAvg's is one of these."
    )
    return caption(figure, below, rows)


def _draw(ax, line: str, x: list, table: pd.DataFrame) -> None:
    """One line of a method, thick, over those of its seeds; table: of `tables.by_line`."""
    colour, marker = LOOKS[METHOD[line]]
    look = dict(color=colour, linestyle="--" if line == "lg_scratch" else "-")
    if table.shape[1] > 1:
        ax.plot(x, table, linewidth=0.5, alpha=0.5, **look)
    marks = dict(marker=marker, markevery=0.12)  # of the panel: dashes are seen between them
    ax.plot(x, table.mean(axis=1), label=LINES[line], **marks, **look)


def _sent(line: str, rounds: pd.Index, cfg, own: System) -> tuple[list, list]:
    """Rounds in all, and megabytes by the papers' count, at each of a line's ``rounds``."""
    begin = cfg.start if line == "lg_fedavg" else 0
    pairs = [(int(r), 0) if line == "fedavg" else (begin, int(r)) for r in rounds]
    return [begin + int(r) for r in rounds], [own.papers(*p) * BYTES / 1e6 for p in pairs]
