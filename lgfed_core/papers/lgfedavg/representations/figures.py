"""Figures of the page on representations: the panels' tasks, all ways side by side, few labels."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lgfed_core.colours import METHOD, PRETEXT
from lgfed_core.evidence.verdict import reach_of
from lgfed_core.methods.pretext import ANSWERS, rearranged
from lgfed_core.plotting import WIDTH, caption

from .settings import LABELS, WAYS
from .tables import TESTS, WORDS

LOOKS = {  # way -> (colour, marker)
    "plain": METHOD["lg_fedavg"],
    **PRETEXT,
    "adversarial": METHOD["lg_fedavg_adv"],
    "fedavg": METHOD["fedavg"],
}


def puzzles(x: Tensor, leaning: Tensor) -> Figure:
    """Pictures x [n, 784] as they are, as jigsaws, turned, and with the group that is to be hidden.

    leaning: [n], 1 where the writing leans.
    """
    rows = {"as it is": x}
    for task, answers in ANSWERS.items():
        rows[task] = rearranged(x, task, torch.arange(len(x)) * 7 % answers)
    figure, grid = plt.subplots(len(rows), len(x), figsize=(WIDTH, 0.7 * len(rows) + 0.25))
    for line, (name, pictures) in zip(grid, rows.items(), strict=True):
        for ax, picture in zip(line, pictures, strict=True):
            ax.imshow(picture.view(28, 28), cmap="gray_r")
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for ax, leans in zip(grid[0], leaning.tolist(), strict=True):
        ax.set_title("leans" if leans else "upright", fontsize=7, loc="center")
    below = (
        "Pictures as they are, with the group that is to be hidden, and as puzzles "
        "that need no label."
    )
    return caption(figure, below)


def panels(curves: pd.DataFrame) -> Figure:
    """Local test (above) and new test over rounds: a column per number of labels, a line per way.

    curves: columns way, labels, seed, round, metric, value in percent. Means over seeds.
    """
    many = sorted(curves["labels"].astype(int).unique(), key=lambda n: n or np.inf)
    tests = list(TESTS)[:2]
    figure, grid = plt.subplots(
        len(tests), len(many), figsize=(WIDTH, 4.6), sharex=True, sharey="row", squeeze=False
    )
    for row, metric in zip(grid, tests, strict=True):
        row[0].set_ylabel(f"{TESTS[metric]}, %")
        for ax, labels in zip(row, many, strict=False):
            mine = curves[(curves["labels"].astype(int) == labels) & (curves["metric"] == metric)]
            for way, (colour, marker) in LOOKS.items():
                line = mine[mine["way"] == way].groupby("round")["value"].mean()
                ax.plot(line.index, line, color=colour, marker=marker, label=WORDS[way])
    for ax, labels in zip(grid[0], many, strict=False):
        ax.set_title(f"{labels or 'all'} labels a device")
    for ax in grid[-1]:
        ax.set_xlabel("round")
        ax.xaxis.get_major_locator().set_params(integer=True)
    _legend(figure, grid)
    below = (
        "Local and new test by round, a column per number of labels, a line per way "
        "to learn; means over seeds."
    )
    return caption(figure, below, curves)


def few_labels(values: pd.DataFrame) -> Figure:
    """Three tests against the labels a device has, a line per way; bars are 95 % intervals.

    values: of `tables.chosen`. Intervals where there are several seeds. Empty panels say so.
    """
    figure, axes = plt.subplots(1, len(TESTS), figsize=(WIDTH, 3.5))
    for ax, (metric, title) in zip(axes, TESTS.items(), strict=True):
        ax.set_title(title + ("" if len(values) else ": not yet run"))
        for n, way in enumerate(WAYS if len(values) else ()):
            colour, marker = LOOKS[way]
            mine = values[values.index.get_level_values("way") == way][metric]
            line = mine.groupby(level="labels").agg(["mean", "std", "count"]).reindex(LABELS)
            reach = reach_of(line["std"] / line["count"] ** 0.5, line["count"] - 1)
            place = np.arange(len(LABELS)) + 0.06 * (n - len(WAYS) / 2)
            look = dict(color=colour, marker=marker, elinewidth=0.9, label=WORDS[way])
            ax.errorbar(place, line["mean"], np.nan_to_num(reach), **look)
        ax.set_xticks(range(len(LABELS)), [str(n or "all") for n in LABELS])
        ax.set_xlabel("labels a device")
    axes[0].set_ylabel("accuracy, %")
    _legend(figure, axes)
    below = (
        "Three tests against the number of labels that a device has, a line per way "
        "to learn; bars are 95 % intervals over seeds."
    )
    return caption(figure, below, values)


def _legend(figure: Figure, axes) -> None:
    handles: dict = {}
    for ax in np.ravel(axes):
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
