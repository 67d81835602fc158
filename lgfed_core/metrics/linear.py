"""What can be read off a representation by a linear classifier, fitted to it afterwards."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lgfed_core.errors import SettingsError

from .fairness import auc


def linear_probe(
    h: ArrayLike, y: ArrayLike, judged: ArrayLike, truth: ArrayLike
) -> tuple[float, float]:
    """(accuracy, AUC) on ``judged`` [m, d], ``truth`` [m], of a classifier fitted to h [n, d].

    Least squares on the classes' indicators of y [n], with a ridge penalty of a thousandth of the
    rows, on coordinates of mean 0 and deviation 1 over h. It has a closed form, so that it does not
    depend on where a search began or ended. Both from 0 to 1. The AUC, of two classes, is that of
    the second in order; it is NaN of more, and both are where h or ``judged`` is not finite on
    these coordinates. Raises SettingsError for other shapes, and unless y has two classes or more,
    and, where it has two, ``truth`` no others (rows of a class that was not fitted to are wrong
    otherwise).
    """
    from sklearn.linear_model import RidgeClassifier  # slow to import

    h, y, judged, truth = map(np.asarray, (h, y, judged, truth))
    same = h.ndim == judged.ndim == 2 and h.shape[1] == judged.shape[1] and len(truth)
    if not same or (y.shape, truth.shape) != (h.shape[:1], judged.shape[:1]):
        raise SettingsError(
            f"a probe is fitted to {list(h.shape)} and {list(y.shape)}, judged on "
            f"{list(judged.shape)} and {list(truth.shape)}; they must be [n, d], [n], [m, d], [m]"
        )
    classes = len(np.unique(y))
    if classes < 2:
        raise SettingsError(f"a probe needs rows of two classes; all {len(y)} have one")
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = h.mean(0), h.std(0)
        alive = deviation > 1e-6 * np.abs(h).max(0)  # by more than rounding
        scale = np.where(alive, deviation, np.inf)  # a dead unit is zero
        h, judged = (h - mean) / scale, (judged - mean) / scale
    if not all(np.isfinite(values).all() for values in (h, judged, deviation)):
        return float("nan"), float("nan")  # of a network that has diverged, or is about to
    unknown = sorted({*np.unique(truth).tolist()} - {*np.unique(y).tolist()})
    if unknown and classes == 2:
        raise SettingsError(f"rows to judge have labels {unknown}, of which none was fitted to")
    model = RidgeClassifier(alpha=len(h) / 1000).fit(h, y)
    scores = model.decision_function(judged)  # [m], or [m, classes]
    said = model.classes_[scores.argmax(1) if classes > 2 else (scores > 0).astype(int)]
    ones = np.asarray(truth == model.classes_[-1], int)
    area = float(auc(scores, ones)) if classes == 2 else float("nan")
    return float((said == truth).mean()), area
