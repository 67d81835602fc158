"""Where it pays to differ from FedAvg: five ways to do so, on every task, in one picture."""

from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import INK
from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Part, paired
from lgfed_core.papers.forest import NARROW
from lgfed_core.plotting import caption

from .claims import race
from .figures import LOOKS, OTHER
from .settings import METHODS
from .tables import WORDS, of

MEASURE = "local_test_acc"
BESIDE = ("lg_fedavg", "local_only", "fine_tuned", "ditto", "cgau")


def told(values: pd.DataFrame) -> dict[str, Told]:
    """For each task, by how many points each of `BESIDE` is ahead of FedAvg on devices' own rows,
    paired by seed, with Holm's correction over them. values: of `tables.chosen`."""
    claims = [
        race(task, MEASURE, "own rows", "points ahead of FedAvg", partial(_parts, task))
        for task in WORDS
        if len(of(values, task, "fedavg"))
    ]
    return {one.claim.id.split()[0]: one for one in answers.told(claims, values).values()}


def _parts(task: str, values: pd.DataFrame) -> list[Part]:
    base = of(values, task, "fedavg")[MEASURE]
    own = {METHODS[method]: of(values, task, method)[MEASURE].dropna() for method in BESIDE}
    return [paired(words, v, base, verdict.greater) for words, v in own.items() if len(v)]


def figure(values: pd.DataFrame, title: str) -> Figure:
    """A line of marks for each task, a colour for each method, bars for 95 % intervals."""
    looks = {METHODS[method]: LOOKS.get(method, OTHER) for method in BESIDE}
    fig, ax = plt.subplots(figsize=(NARROW, 3.6))
    ax.axvline(0, color=INK, lw=0.8)
    tasks = told(values)
    for row, one in enumerate(tasks.values()):
        for line in one.lines.itertuples():
            place = row + 0.14 * ([*looks].index(line.name) - 2)
            colour, mark, fill = looks[line.name]
            ax.plot([line.low, line.high], [place, place], color=colour, lw=1)
            ax.plot(line.estimate, place, color=colour, marker=mark, fillstyle=fill, ls="")
    for words, (colour, mark, fill) in looks.items():
        ax.plot([], [], color=colour, marker=mark, fillstyle=fill, ls="", label=words)
    ax.set_yticks(range(len(tasks)), [WORDS[task] for task in tasks])
    ax.invert_yaxis()
    ax.set(xlabel="points of accuracy on own rows,\nabove 0: ahead of FedAvg")
    ax.set_title(title, loc="left")
    ax.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.35, -0.25))
    below = "Accuracy on devices' own rows, against FedAvg. Bars are 95 % intervals."
    return caption(fig, below, values)
