"""Where it pays to differ from FedAvg: five ways to do so, on every task, in one picture."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import INK
from lgfed_core.papers.forest import NARROW
from lgfed_core.plotting import caption

from .claims import ahead_of
from .figures import LOOKS, OTHER
from .settings import METHODS
from .tables import WORDS

BESIDE = ("lg_fedavg", "local_only", "fine_tuned", "ditto", "cgau")


def figure(values: pd.DataFrame, title: str) -> Figure:
    """A line of marks for each task, a colour for each method, bars for 95 % intervals.

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
