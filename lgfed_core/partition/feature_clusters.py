"""Simulated clients whose features differ (Rieger et al., 2020, Section 3.3).

Embeddings are projected on the first two principal components of the training rows. In each
class, k-means puts the training rows in K clusters; cluster k of every class belongs to client k,
and every other row goes to the nearest centroid of its class. Which clusters meet at one client is
arbitrary; a class with fewer distinct training rows than clients is dealt at random. Both are as
released.

Shuffling a proportion p draws int(p n) of all n rows and permutes their client numbers among
themselves. Clients keep their sizes, and p = 1 is a random permutation.

Clients made in this way know about labels (`gains.leaked`). The text can be read in another way,
``own_class=False``: the clusters are of one class each, but a row, training or not, goes to the
nearest of all C K centroids, whatever its class. As a control, k-means can take the rows of all
classes together, ``within_classes=False``. In both a client is a region of the plane.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgfed_core.errors import PartitionError
from lgfed_core.seeds import Purpose

from .partition import ClientIndices, Partition, checked_stream, positive

TRAIN, VALIDATION, TEST = 0, 1, 2  # what a row is for


@dataclass(frozen=True, eq=False)
class Clients:
    """Which client each of n rows belongs to.

    client: [n]; part: `TRAIN`, `VALIDATION` or `TEST` of each row [n]; plane: two principal
    components [n, 2]; means: centroids in the plane [C, K, 2], NaN for a class that was dealt at
    random ([1, K, 2] if all classes were clustered together); random: those classes; clients: K;
    within_classes, own_class: as given to `simulate`.
    """

    client: NDArray
    part: NDArray
    plane: NDArray
    means: NDArray
    random: tuple[int, ...]
    clients: int
    within_classes: bool = True
    own_class: bool = True

    def shuffled(self, proportion: float, seed: int) -> Clients:
        """A ``proportion`` of all rows exchange their clients at random; sizes stay."""
        if not 0 <= proportion <= 1:
            raise PartitionError(f"shuffle proportion is {proportion}; it must lie in [0, 1]")
        rng, client = checked_stream(seed, Purpose.SHUFFLED_CLIENTS), self.client.copy()
        drawn = rng.permutation(len(client))[: int(proportion * len(client) + 1e-9)]
        client[drawn] = client[rng.permutation(drawn)]
        return replace(self, client=client)

    def partition(self) -> Partition:
        """As a `Partition` of one set of n rows, in which training and test rows both lie.

        A client may be without validation or test rows; raises PartitionError for one without
        training rows.
        """
        held, every = [], range(self.clients)
        for p in (TRAIN, VALIDATION, TEST):
            rows = [np.flatnonzero((self.client == k) & (self.part == p)) for k in every]
            held.append(ClientIndices.from_lists(rows))
        train, validation, test = held
        if (bare := train.size == 0).any():
            raise PartitionError(
                f"client {int(bare.nonzero()[0])} has no training rows; use fewer clients or more "
                "rows"
            )
        return Partition(f"{self.clients} simulated clients", train, validation, test)


def parts(y: ArrayLike, test: ArrayLike, validation: float, seed: int) -> NDArray:
    """What each row is for, [n]: test rows as given (bool [n]), and of each class of the others
    the rounded share ``validation``, but never all.

    Raises PartitionError for a share outside [0, 1), labels of other rows, or a ``test`` that is
    not bool: indices of rows would be taken for it.
    """
    if not 0 <= validation < 1:
        raise PartitionError(f"validation share is {validation}; it must lie in [0, 1)")
    y, test = np.asarray(y), np.asarray(test)
    if y.shape != test.shape:
        raise PartitionError(f"labels are {y.shape}, test {test.shape}; give one for each row")
    if test.dtype != bool:
        raise PartitionError(f"test is {test.dtype}; give True or False for each row")
    part, rng = np.where(test, TEST, TRAIN), checked_stream(seed, Purpose.VALIDATION)
    for label in np.unique(y[~test]):
        rows = rng.permutation(np.flatnonzero((y == label) & ~test))
        part[rows[: min(round(validation * len(rows)), len(rows) - 1)]] = VALIDATION
    return part


def simulate(
    x: ArrayLike,
    y: ArrayLike,
    part: ArrayLike,
    clients: int,
    seed: int,
    within_classes: bool = True,
    own_class: bool = True,
) -> Clients:
    """K = ``clients`` from embeddings x [n, d] of classes y [n]; part [n] as from `parts`.

    within_classes: cluster class by class, as the paper does; False: all rows at once.
    own_class: a row goes to the nearest centroid of its class, as released; False: of any class,
    and rows of a class that has no centroids as well. Without classes both are the same.

    PCA and k-means see training rows only. Raises PartitionError for fewer than one client, more
    clients than training rows, embeddings that are no matrix of finite numbers with two columns or
    more, labels or parts that are none, or a class without training rows.
    """
    from sklearn.cluster import KMeans  # slow to import
    from sklearn.decomposition import PCA

    x, y, part = np.asarray(x, np.float64), np.asarray(y), np.asarray(part)
    fit = part == TRAIN  # [n]
    _checked(x, y, part, clients)
    plane = PCA(2, svd_solver="covariance_eigh").fit(x[fit]).transform(x)  # [n, 2]
    rng, client = checked_stream(seed, Purpose.CLIENTS), np.full(len(y), -1)
    group = y if within_classes else np.zeros_like(y)
    labels, dealt = np.unique(group), []
    means = np.full((len(labels), clients, 2), np.nan)
    for c, label in enumerate(labels):
        mine = group == label
        state = int(rng.integers(2**31))
        points = plane[mine & fit]
        if len(np.unique(points, axis=0)) < clients:
            dealt.append(int(label))
            client[mine] = rng.integers(clients, size=mine.sum())
        else:
            found = KMeans(clients, n_init=10, random_state=state).fit(points)
            client[mine], means[c] = found.predict(plane[mine]), found.cluster_centers_
    if not own_class and len(dealt) < len(labels):
        client = _nearest(plane, means)
    return Clients(client, part, plane, means, tuple(dealt), clients, within_classes, own_class)


def _nearest(plane: NDArray, means: NDArray) -> NDArray:
    """Whose centroid is nearest: plane [n, 2], means [C, K, 2] -> clients [n]; NaN is no place."""
    from sklearn.metrics import pairwise_distances_argmin

    whose = np.broadcast_to(np.arange(means.shape[1]), means.shape[:2])  # [C, K]
    real = ~np.isnan(means[..., 0])
    return whose[real][pairwise_distances_argmin(plane, means[real])]


def _checked(x: NDArray, y: NDArray, part: NDArray, clients: int) -> None:
    fit = part == TRAIN
    positive(clients=clients)
    if x.ndim != 2 or x.shape[1] < 2 or not np.isfinite(x).all():
        raise PartitionError(
            f"embeddings of shape {x.shape}; expected finite numbers [n, d] with d of at least 2"
        )
    if not y.shape == part.shape == x.shape[:1]:
        raise PartitionError(f"{len(x)} rows, labels {y.shape}, parts {part.shape}; give one each")
    if not len(x):
        raise PartitionError("there are no rows; two components need 2 at least")
    whole = y.dtype.kind in "iub" and part.dtype.kind in "iu"
    if not (whole and part.min() >= TRAIN and part.max() <= TEST):
        raise PartitionError(
            f"labels are {y.dtype}, parts {part.dtype} from {part.min()} to {part.max()}; they "
            f"must be whole numbers, parts those of `parts`: {TRAIN}, {VALIDATION} and {TEST}"
        )
    if fit.sum() < 2:
        raise PartitionError(f"{fit.sum()} training rows; two components need 2 at least")
    if clients > fit.sum():
        raise PartitionError(
            f"{clients} clients, but only {fit.sum()} training rows; each needs one"
        )
    if missing := sorted(set(y.tolist()) - set(y[fit].tolist())):
        raise PartitionError(f"rows of class {missing}, which has no training rows")
