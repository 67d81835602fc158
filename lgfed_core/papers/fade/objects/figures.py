"""Figures of the FADE chapter on objects: accuracy by method, of each user, and the plane."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
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
            x, (colour, mark) = i + 0.14 * (j - 2), style[method]
            ax.plot([x] * len(values), values, mark, color=colour, alpha=0.6)
            ax.plot([x - 0.05, x + 0.05], [values.mean()] * 2, color=colour, lw=2)
    for method, (colour, mark) in style.items():
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
    each = dict(list(stored_names(select(curves, task=task, **usual)).groupby("method")))
    each = {method: each[method] for method in METHODS if method in each}
    size = (WIDTH, 2.2)
    fig, axes = plt.subplots(1, max(1, len(each)), figsize=size, sharey=True, squeeze=False)
    for ax, (method, mine) in zip(axes[0], each.items(), strict=False):
        for user in (1, 2, 3):
            mean = select(mine, metric=f"user{user}_acc").groupby("round")["value"].mean()
            ax.plot(mean.index, mean, label=f"user {user}")
        ax.set(title=WORDS[method], xlabel="round")
    axes[0, 0].set_ylabel("accuracy, %")
    axes[0, 0].legend(loc="best")
    below = f"Accuracy of each target user by round, means over seeds, {task}."
    return caption(fig, below, *each.values())


def plane(features: dict[str, NDArray], label: NDArray, group: NDArray, shown: int = 6) -> Figure:
    """Features [n, d] in their first two principal components: a panel per name.

    label [n]: the first ``shown`` classes are drawn, a colour each. group [n]: 0 the source
    (crosses), and the number of the target's user (its digit).
    """
    fig, axes = plt.subplots(1, len(features), figsize=(WIDTH, 2.8), squeeze=False)
    some, colours = label < shown, np.array(GROUP)
    label, group = label[some], group[some]
    for ax, (name, z) in zip(axes[0], features.items(), strict=True):
        at = PCA(2).fit_transform(z[some])
        for g in np.unique(group):
            look = dict(marker=f"${g}$", s=14) if g else dict(marker="x", s=8)
            ax.scatter(*at[group == g].T, c=colours[label[group == g]], lw=0.6, **look)
        ax.set(title=name, xticks=[], yticks=[])
        ax.grid(False)
    below = (
        "Features in their first two principal components: crosses are the source's, digits the "
    )
    return caption(fig, below + f"target's users, colours the first {shown} classes; live run.")
