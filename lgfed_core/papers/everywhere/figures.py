"""The figures of the page: beside FedAvg on every task, and accuracy against what is sent."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lgfed_core.colours import INK, METHOD, SPARE
from lgfed_core.papers.forest import NARROW
from lgfed_core.plotting import WIDTH, caption

from .claims import SUCCESSORS, ahead_of
from .settings import METHODS
from .tables import MEASURES, WORDS, of

HOLLOW = "none"
LOOKS = {  # method -> (colour, marker, how it is filled); one that builds on another is hollow
    **{m: (*METHOD[m], "full") for m in ("fedavg", "fedprox", "local_only", "mtl", "lg_fedavg")},
    "fine_tuned": (*METHOD["fedavg"], HOLLOW),
    "lg_fedavg_later": (*METHOD["lg_fedavg"], HOLLOW),
    "lg_fedavg_adv": (*METHOD["lg_fedavg_adv"], "full"),
    "cgau": (*SPARE[0], "full"),
    "lg_cgau": (*SPARE[0], HOLLOW),
    "fade": (*SPARE[1], "full"),
}
OTHER = (*SPARE[1], HOLLOW)  # of a method that has no look of its own
BESIDE = ("lg_fedavg", "local_only", "fine_tuned", "ditto", "cgau")


def beside_fedavg(values: pd.DataFrame, title: str) -> Figure:
    """Five ways to differ from FedAvg: a line of marks for each task, a colour for each
    method, bars for 95 % intervals.

    values: of `tables.chosen`.
    """
    looks = {METHODS[method]: LOOKS.get(method, OTHER) for method in BESIDE}
    fig, ax = plt.subplots(figsize=(NARROW, 3.6))
    ax.axvline(0, color=INK, lw=0.8)
    told = ahead_of(values, "fedavg", BESIDE)
    for row, one in enumerate(told):
        for line in one.lines.itertuples():
            place = row + 0.14 * ([*looks].index(line.name) - 2)
            colour, mark, fill = looks[line.name]
            ax.plot([line.low, line.high], [place, place], color=colour, lw=1)
            ax.plot(line.estimate, place, color=colour, marker=mark, fillstyle=fill, ls="")
    for words, (colour, mark, fill) in looks.items():
        ax.plot([], [], color=colour, marker=mark, fillstyle=fill, ls="", label=words)
    ax.set_yticks(range(len(told)), [WORDS[one.claim.id.split()[0]] for one in told])
    ax.invert_yaxis()
    ax.set(xlabel="points of accuracy on own rows,\nabove 0: ahead of FedAvg")
    ax.set_title(title, loc="left")
    ax.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.35, -0.25))
    below = "Accuracy on devices' own rows, against FedAvg. Bars are 95 % intervals."
    return caption(fig, below, values)


def against_bytes(values: pd.DataFrame) -> Figure:
    """Local test against megabytes sent, and as a tail below it the lowest decile of devices.

    values: of `tables.chosen`; means over seeds, of all methods but the `SUCCESSORS`. Tasks
    that have not run have no panel.
    """
    looks = {method: LOOKS.get(method, OTHER) for method in METHODS if method not in SUCCESSORS}
    there = set(values.index.get_level_values("task"))
    shown = [task for task in WORDS if task in there]
    columns = min(3, len(shown) + 1)
    lines = -(-(len(shown) + 1) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(WIDTH, 2.5 * lines), squeeze=False)
    for ax, task in zip(grid.flat, shown, strict=False):
        for method, (colour, marker, fill) in looks.items():
            if len(mine := of(values, task, method)):
                x, y, low = mine[["megabytes", "local_test_acc", "decile_acc"]].mean()
                ax.plot([x, x], [y, low], color=colour, linewidth=0.8)
                ax.plot(x, y, color=colour, marker=marker, fillstyle=fill, linestyle="")
        ax.set_xscale("symlog", linthresh=1)
        ax.set_xlim(-0.3, 2 * values["megabytes"].max())
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set(title=WORDS[task], xlabel=MEASURES["megabytes"])
    for ax in grid[:, 0]:
        ax.set_ylabel(MEASURES["local_test_acc"])
    rest = list(grid.flat)[len(shown) :]
    for ax in rest:
        ax.axis("off")
    look = dict(linestyle="")
    keys = [
        Line2D([], [], color=c, marker=m, fillstyle=f, label=words, **look)
        for words, (c, m, f) in ((METHODS[method], look) for method, look in looks.items())
    ]
    rest[0].legend(handles=keys, loc="upper left", fontsize=7)
    below = "Accuracy on devices' own test rows against what all of them send and receive."
    return caption(figure, f"{below} Tails end at the lowest decile of devices.", values)
