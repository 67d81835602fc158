"""What a simulated client's number says about the class of its rows: an observation of ours.

`feature_clusters.simulate` sends a row to the client of the nearest centroid *of its class*. So the
client's number, which a CGAU is given and a baseline is not, speaks of the label of training and of
test rows, and shuffling silences it. With ``within_classes=False`` or ``own_class=False`` the
number is a function of the features: it says nothing that these do not.
"""

import numpy as np
from numpy.typing import NDArray

from lgfed_core.errors import PartitionError
from lgfed_core.partition.feature_clusters import TEST, Clients


def told(who: Clients, y: NDArray) -> dict[str, float]:
    """Percent of test rows right by two principal components alone, and by these and the client.

    Each class counts alike, however many rows it has (balanced accuracy). Both ways take the class
    of the nearest centroid of ``who``, among all of them or among those of the row's client. y [n]
    are the labels; ``who`` may be shuffled. NaN where test rows are of a class that was dealt at
    random, as it has no centroids. Raises PartitionError for clients that were not made class by
    class.
    """
    if not (who.within_classes and who.own_class):
        raise PartitionError(
            "these clients were not made class by class, or rows went to the nearest centroid of "
            "any: no label sent a row to a client, and nothing can leak"
        )
    test = who.part == TEST
    y, labels = np.asarray(y), np.unique(y)
    if np.isin(who.random, y[test]).any():
        return dict.fromkeys(("plane", "plane and client"), float("nan"))
    y, at, client = y[test], who.plane[test], who.client[test]
    far = ((who.means[:, :, None] - at) ** 2).sum(-1)  # [C, K, n]
    far = np.where(np.isnan(far), np.inf, far)  # a class without centroids
    own = np.take_along_axis(far, client[None, None], 1)[:, 0]  # [C, n]
    said = {"plane": far.min(1).argmin(0), "plane and client": own.argmin(0)}
    right = {name: labels[c] == y for name, c in said.items()}
    return {
        name: 100 * float(np.mean([hit[y == label].mean() for label in np.unique(y)]))
        for name, hit in right.items()
    }
