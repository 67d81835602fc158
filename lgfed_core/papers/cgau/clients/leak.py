"""What a simulated client's number says about the class of its rows: an observation of ours.

`feature_clusters.simulate` sends a row to the client of the nearest centroid *of its class*.
Whoever knows a row's place in the plane and its client can ask of every class: had the row been of
this class, to which client would it have gone? Only the classes that answer with the row's own
client are left. Where the answers of the other classes are like draws among K clients, that is
about 1 + (C - 1)/K of C classes. So the client's number, which a CGAU is given and a baseline is
not, speaks of the label of training and of test rows, and shuffling silences it.

With ``within_classes=False`` or ``own_class=False`` the number is a function of the features: it
says nothing that these do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lgfed_core.errors import PartitionError
from lgfed_core.partition.feature_clusters import TEST, Clients


def classes_left(who: Clients) -> NDArray:
    """Of how many classes each row could be, by its place in the plane and its client: int [n].

    ``who`` as simulated within classes, not shuffled; a class that was dealt at random cannot be
    ruled out. Raises PartitionError for clients that were not made class by class.
    """
    return _possible(who).sum(0)


def given_away(who: Clients, y: NDArray) -> dict[str, float]:
    """In percent: how often a class that is not the row's answers with the row's client, and of
    how many rows the own class alone does. y [n] are the labels; errors as for `classes_left`.

    Were the other classes' answers draws among K clients, the first would be 100/K.
    """
    possible = _possible(who)  # [C, n]
    other = np.unique(y)[:, None] != np.asarray(y)
    alone = ~(possible & other).any(0)
    return {
        "another class": 100 * float(possible[other].mean()),
        "alone": 100 * float(alone.mean()),
    }


def told(who: Clients, y: NDArray) -> dict[str, float]:
    """Percent of test rows right by two principal components alone, and by these and the client.

    Each class counts alike, however many rows it has (balanced accuracy). Both ways take the class
    of the nearest centroid of ``who``, among all of them or among those of the row's client. y [n]
    are the labels; ``who`` may be shuffled. NaN where test rows are of a class that was dealt at
    random, as it has no centroids. Errors as for `classes_left`.
    """
    _checked(who)
    test = who.part == TEST
    if np.isin(who.random, np.asarray(y)[test]).any():
        return dict.fromkeys(("plane", "plane and client"), float("nan"))
    at, client = who.plane[test], who.client[test]
    labels = np.unique(y)
    far = _distances(at, who.means)  # [C, K, n]
    own = np.take_along_axis(far, client[None, None], 1)[:, 0]  # [C, n]
    said = {"plane": far.min(1).argmin(0), "plane and client": own.argmin(0)}
    y = np.asarray(y)[test]
    right = {name: labels[c] == y for name, c in said.items()}
    return {
        name: 100 * float(np.mean([hit[y == label].mean() for label in np.unique(y)]))
        for name, hit in right.items()
    }


def _possible(who: Clients) -> NDArray:
    """Whether each class would have sent each row to the client it has: bool [C, n]."""
    _checked(who)
    far = _distances(who.plane, who.means)  # [C, K, n]
    unknown = np.isinf(far[:, 0])  # [C, n], of classes dealt at random
    return (far.argmin(1) == who.client) | unknown


def _distances(at: NDArray, means: NDArray) -> NDArray:
    """Squared distances from points [n, 2] to centroids [C, K, 2] -> [C, K, n]; inf for none."""
    squares = ((means[:, :, None] - at) ** 2).sum(-1)
    return np.where(np.isnan(squares), np.inf, squares)


def _checked(who: Clients) -> None:
    if not (who.within_classes and who.own_class):
        raise PartitionError(
            "these clients were not made class by class, or rows went to the nearest centroid of "
            "any: no label sent a row to a client, and nothing can leak"
        )
