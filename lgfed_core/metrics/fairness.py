"""Is a classifier good, and good to whom? AUC, equalised odds and demographic parity.

All take numpy arrays over rows and return fractions, not percent. For two groups and decisions
d in {0, 1}, "difference" is the largest gap between groups:

* demographic parity: of P(d = 1 | group) (Agarwal et al. 2018, after Dwork et al. 2012);
* equalised odds: of P(d = 1 | y, group), the larger of the gaps at y = 0 (false alarms) and at
  y = 1 (hits) (Hardt, Price & Srebro 2016).

0 is fair, 1 as unfair as can be. `delta_eo` is the sum of the two gaps of equalised odds, as FADE
has it: from 0 to 2. The tests hold all of these against fairlearn.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from lgfed_core.errors import SettingsError


def auc(scores: ArrayLike, labels: ArrayLike) -> NDArray:
    """Area under the ROC curve: scores [..., n], labels {0, 1} [..., n] -> [...].

    The probability that a row of class 1 scores above one of class 0, ties counted half (Mann and
    Whitney). NaN where a class has no row. Raises SettingsError for other labels and shapes.
    """
    scores, labels = np.asarray(scores, float), _binary("labels", labels)
    if not scores.ndim or not labels.ndim or scores.shape[-1] != labels.shape[-1]:
        raise SettingsError(f"scores are {scores.shape}, labels {labels.shape}; give one for each")
    scores, labels = np.broadcast_arrays(scores, labels)
    ranks = rankdata(scores, axis=-1)  # ties share their mean rank
    ones = labels.astype(bool).sum(-1)
    zeros = labels.shape[-1] - ones
    above = (ranks * labels).sum(-1) - ones * (ones + 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((ones > 0) & (zeros > 0), above / (ones * zeros), np.nan)


def demographic_parity(decisions: ArrayLike, group: ArrayLike) -> float:
    """Largest gap between groups in the share of positive decisions; decisions, group [n].

    Raises SettingsError where all rows are of one group.
    """
    decisions, group = _rows(decisions=_binary("decisions", decisions), group=group)
    return _gap(decisions, group, np.ones(len(group), bool), "")


def equalised_odds(decisions: ArrayLike, labels: ArrayLike, group: ArrayLike) -> float:
    """The larger of two gaps between groups, in false alarms and in hits; all arguments [n].

    Raises SettingsError where a group has no row of one of the two classes, or all rows are of one
    group.
    """
    decisions, labels = _binary("decisions", decisions), _binary("labels", labels)
    decisions, labels, group = _rows(decisions=decisions, labels=labels, group=group)
    return max(_gap(decisions, group, labels == y, f"class {y} of ") for y in (0, 1))


def delta_eo(decisions: ArrayLike, labels: ArrayLike, group: ArrayLike) -> float:
    """|FPR_0 - FPR_1| + |FNR_0 - FNR_1| of groups 0 and 1; all arguments [n] of 0 and 1.

    Hong et al. (2021), eq. (9), for decisions: the gap in false alarms plus that in misses. Warns,
    and is NaN, where a group has no row of one of the two classes.
    """
    held = dict(decisions=decisions, labels=labels, group=group)
    decisions, labels, group = _rows(**{name: _binary(name, a) for name, a in held.items()})
    for y, g in product((0, 1), (0, 1)):
        if not ((labels == y) & (group == g)).any():
            said = f"no row of class {y} of group {g}: delta EO is not a number here"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
            return float("nan")
    return sum(_gap(decisions != labels, group, labels == y, f"class {y} of ") for y in (0, 1))


def label_leak(labels: ArrayLike, group: ArrayLike) -> float:
    """AUC of the true label as a guess of the group, or of its opposite: the larger one.

    What whoever knows the label knows about the group; a representation from which the label can
    be read without error leaks at least so much.
    """
    area = float(auc(labels, group))
    return max(area, 1 - area)


def _binary(name: str, values: ArrayLike) -> NDArray:
    """``values`` as an array. Raises SettingsError for what is neither 0 nor 1."""
    found = np.asarray(values)
    if not np.isin(found, (0, 1)).all():
        raise SettingsError(f"{name} are {np.unique(found)[:5]}; each must be 0 or 1")
    return found


def _rows(**arrays: ArrayLike) -> list[NDArray]:
    """The arrays, each [n]. Raises SettingsError where they are not, or without a row."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    shapes = {array.shape for array in found.values()}
    if len(shapes) > 1 or len(next(iter(shapes))) != 1 or (0,) in shapes:
        told = ", ".join(f"{name} {array.shape}" for name, array in found.items())
        raise SettingsError(f"shapes are {told}; each must be [n], of the same rows")
    return list(found.values())


def _gap(chosen: NDArray, group: NDArray, of: NDArray, what: str) -> float:
    """The largest gap between groups in the share of rows that are chosen, of some rows [n].

    Raises SettingsError for one group alone, and for a group without such a row.
    """
    if len(groups := np.unique(group)) < 2:
        raise SettingsError(f"all rows are of group {groups[0]}; a gap is between two groups")
    shares = []
    for g in groups:
        if not (mine := of & (group == g)).any():
            raise SettingsError(f"no row of {what}group {g}; a gap needs rows of each group")
        shares.append(float(chosen[mine].astype(float).mean()))
    return max(shares) - min(shares)
