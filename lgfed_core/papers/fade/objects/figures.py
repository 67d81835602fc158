"""Figures of the FADE chapter on objects: accuracy by method, of each user, and the plane."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from lgfed_core.colours import GROUP, REFERENCE
from lgfed_core.evidence.printed import METHODS as WORDS
from lgfed_core.evidence.records import select
from lgfed_core.plotting import WIDTH, caption, looks

from . import stored
from .run import TRIED, stored_names
from .settings import METHODS
from .tables import USERS


def averages(found: pd.DataFrame) -> Figure:
    """Average accuracy of each method by kind of users: a dot per seed, a line for the mean."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.8))
    style, drawn = looks(METHODS), []
    for i, users in enumerate(USERS):
        mean = stored.average(stored.accuracy(found, users))
        for j, method in enumerate(m for m in METHODS if m in mean):
            values = mean[method].dropna()
            drawn.append(values.to_frame().assign(scale=found["scale"].iloc[0]))
            x = i + 0.14 * (j - 2)
            colour, mark = style[method]
            ax.plot([x] * len(values), values, mark, color=colour, alpha=0.6)
            ax.plot([x - 0.05, x + 0.05], [values.mean()] * 2, color=colour, lw=2)
    for method in METHODS:
        colour, mark = style[method]
        ax.plot([], [], mark, color=colour, label=WORDS[method])
    before = stored.average(stored.accuracy(found))
    for name, dash in (("source_only", "--"), ("source_only_norm", ":")):
        if name in before:
            words = WORDS.get(name, "source only, normalised")
            ax.axhline(before[name].mean(), color=REFERENCE, lw=1, ls=dash, label=words)
    ax.set_xticks(range(len(USERS)), list(USERS.values()))
    ax.set_ylabel("target accuracy, % (higher is better)")
    ax.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    below = "Average target accuracy over tasks by kind of users: a dot per seed, dashes for means."
    return caption(fig, below, *drawn)


def users_by_round(curves: pd.DataFrame, task: str) -> Figure:
    """Accuracy of each target user over rounds, mean over seeds: a panel per method.

    curves: method, task, target_users, metric (user1_acc, ...), round, value.
    """
    usual = dict.fromkeys(TRIED, "") | dict(protocol="as_described", target_users="noniid")
    mine = select(curves, task=task, **usual)
    mine = stored_names(mine)
    methods = [m for m in METHODS if m in set(mine["method"])]
    fig, axes = plt.subplots(
        1, max(1, len(methods)), figsize=(WIDTH, 2.2), sharey=True, squeeze=False
    )
    for ax, method in zip(axes[0], methods, strict=False):
        for user in (1, 2, 3):
            way = mine[(mine["method"] == method) & (mine["metric"] == f"user{user}_acc")]
            mean = way.groupby("round")["value"].mean()
            ax.plot(mean.index, mean, label=f"user {user}")
        ax.set(title=WORDS[method], xlabel="round")
    axes[0, 0].set_ylabel("accuracy, %")
    axes[0, 0].legend(loc="best")
    below = f"Accuracy of each target user by round, means over seeds, {task}."
    return caption(fig, below, *(mine[mine["method"] == method] for method in methods))


def plane(features: dict[str, NDArray], label: NDArray, group: NDArray, shown: int = 6) -> Figure:
    """Features [n, d] in their first two principal components: a panel per name.

    label [n]: the first ``shown`` classes are drawn, a colour each. group [n]: 0 the source
    (crosses), and the number of the target's user (its digit).
    """
    fig, axes = plt.subplots(1, len(features), figsize=(WIDTH, 2.8), squeeze=False)
    for ax, (name, z) in zip(axes[0], features.items(), strict=True):
        _plane(
            ax, PCA(2).fit_transform(z[label < shown]), label[label < shown], group[label < shown]
        )
        ax.set(title=name, xticks=[], yticks=[])
    below = (
        "Features in their first two principal components: crosses are the source's, digits the "
    )
    return caption(fig, below + f"target's users, colours the first {shown} classes; live run.")


def _plane(ax: Axes, at: NDArray, label: NDArray, group: NDArray) -> None:
    colours = np.array(GROUP)
    for g in np.unique(group):
        mark = "x" if g == 0 else f"${g}$"
        mine = group == g
        ax.scatter(*at[mine].T, c=colours[label[mine]], marker=mark, s=14 if g else 8, lw=0.6)
    ax.grid(False)
