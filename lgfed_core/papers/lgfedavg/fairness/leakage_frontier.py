"""The line that every method is measured against: the best accuracy on income at a given leak.

Whatever a representation is, income is in the end decided by one bit b of it, and a probe that sees
all of it guesses a group at least as well as one that sees b alone, whose AUC is
1/2 + |P(b=1 | group 1) - P(b=1 | group 0)| / 2. So no representation lies above the best bit. With
Lagrange multipliers mu_j for the two gaps, the best bit of the inputs x is

    b(x) = [ 2 P(y=1|x) - 1 > sum_j mu_j (P(g_j=1|x)/P(g_j=1) - P(g_j=0|x)/P(g_j=0)) ]

(Menon & Williamson 2018, "The cost of fairness in binary classification"). Boosted trees stand for
the probabilities, so the computed line lies below the true one: it is reached, not only a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lgfed_core.data import Split
from lgfed_core.data.adult import GROUPS
from lgfed_core.errors import SettingsError

LEVELS = (50.5, 51.0, 51.5, 52.0, 53.0, 54.0, 55.0, 56.0, 100.0)  # AUC, %; the last binds nobody
_GRID = np.linspace(-0.1, 0.5, 31)  # multipliers


def best_bits(
    train: Split, test: Split, levels: Sequence[float] = LEVELS, folds: int = 2
) -> pd.DataFrame:
    """The most accurate bit of x whose leak, the mean AUC for race and sex, is at most a level.

    Fitted and chosen on ``train`` (probabilities of rows that a fit has not seen, by ``folds``),
    judged on ``test``. A line per level; columns accuracy, leak, race, sex, all in percent. Raises
    SettingsError for a level below 50, which no code is at.
    """
    if min(levels) < 50:
        raise SettingsError(f"levels are {list(levels)}; an AUC of 50 % is chance, and the least")
    out, chances = _probabilities(train, test, folds), {}
    for name, (split, (income, groups)) in {
        "train": (train, out[0]),
        "test": (test, out[1]),
    }.items():
        shares = train.groups.double().mean(0).numpy()  # [g]
        pull = groups / shares - (1 - groups) / (1 - shares)  # [n, g]
        chances[name] = split.y.numpy(), split.groups.numpy(), 2 * income - 1, pull
    mus = np.stack(np.meshgrid(_GRID, _GRID, indexing="ij"), -1).reshape(-1, len(GROUPS))
    seen = np.array([_judged(mu, *chances["train"]) for mu in mus])  # [m, 1 + g]
    leak, lines = seen[:, 1:].mean(1), {}
    for level in levels:
        allowed = np.flatnonzero(leak <= max(level, leak.min()))
        mu = mus[allowed[seen[allowed, 0].argmax()]]
        accuracy, *areas = _judged(mu, *chances["test"])
        lines[level] = dict(accuracy=accuracy, leak=np.mean(areas)) | dict(
            zip(GROUPS, areas, strict=True)
        )
    return pd.DataFrame(lines).T.rename_axis("level")


def at_leak(line: pd.DataFrame, leak: float) -> float:
    """The accuracy of the line at ``leak``, in percent: of the best bit that leaks no more."""
    below = line.loc[line["leak"] <= max(leak, line["leak"].min()), "accuracy"]
    return float(below.max())


def _probabilities(train: Split, test: Split, folds: int) -> list[tuple[NDArray, NDArray]]:
    """P(income) [n] and P(groups) [n, g] of the rows of ``train``, held out, and of ``test``."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from sklearn.model_selection import cross_val_predict

    x, new = train.x.numpy(), test.x.numpy()
    targets = [train.y.numpy(), *train.groups.T.numpy()]
    held, fresh = [], []
    for target in targets:
        trees = HistGradientBoostingClassifier(
            max_iter=60, learning_rate=0.15, max_leaf_nodes=15, early_stopping=False
        )
        held.append(cross_val_predict(trees, x, target, cv=folds, method="predict_proba")[:, 1])
        fresh.append(trees.fit(x, target).predict_proba(new)[:, 1])
    return [(found[0], np.stack(found[1:], 1)) for found in (held, fresh)]


def _judged(mu: NDArray, y: NDArray, groups: NDArray, margin: NDArray, pull: NDArray) -> list:
    """Percent: accuracy of the bit with multipliers ``mu`` [g], and its AUC for each group."""
    bit = margin > pull @ mu  # [n]
    gaps = [bit[g == 1].mean() - bit[g == 0].mean() for g in groups.T]
    return [100 * (bit == y).mean(), *(50 + 50 * abs(gap) for gap in gaps)]
