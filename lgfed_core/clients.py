"""Simulated clients whose features differ (Rieger et al., 2020, Section 3.3).

Embeddings are projected on the first two principal components of the training rows. In each
class, k-means puts the training rows in K clusters; cluster k of every class belongs to client k,
and every other row goes to the nearest centroid of its class. Which clusters of different classes
meet at one client is arbitrary, as in the released code. A class with fewer training rows than
clients has no K clusters: its rows are dealt at random, also as released.

Shuffling a proportion p draws int(p n) of all n rows and permutes their client numbers among
themselves. Clients keep their sizes, and p = 1 is a random permutation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .data import Dataset
from .errors import PartitionError
from .rows import Partition, Rows
from .streams import Purpose, stream


@dataclass(frozen=True, eq=False)
class Clients:
    """Which client each row belongs to, for a data set and a choice of validation rows.

    train: client of each training row [n], validation rows included; test: of each test row [m];
    held: which training rows are for validation, bool [n]; plane: the two principal components of
    all rows, training first, [n + m, 2]; random: classes that were dealt at random.
    """

    train: NDArray
    test: NDArray
    held: NDArray
    plane: NDArray
    random: tuple[int, ...]
    clients: int

    @property
    def all(self) -> NDArray:
        """The client of every row [n + m], training rows first."""
        return np.concatenate([self.train, self.test])

    def shuffled(self, proportion: float, seed: int) -> "Clients":
        """A ``proportion`` of all rows exchange their clients at random; sizes stay."""
        if not 0 <= proportion <= 1:
            raise PartitionError(f"shuffle proportion is {proportion}; it must lie in [0, 1]")
        rng = stream(seed, Purpose.SHUFFLED_CLIENTS)
        both = self.all.copy()
        drawn = rng.permutation(len(both))[: int(proportion * len(both) + 1e-9)]
        both[drawn] = both[rng.permutation(drawn)]
        n = len(self.train)
        return Clients(both[:n], both[n:], self.held, self.plane, self.random, self.clients)

    def partition(self) -> Partition:
        """As a `Partition`: validation and test rows of a client may be none, training rows not."""

        def rows(client: NDArray, of: NDArray) -> Rows:
            return Rows.from_lists(
                [np.flatnonzero((client == k) & of) for k in range(self.clients)]
            )

        train = rows(self.train, ~self.held)
        if (train.size == 0).any():
            raise PartitionError(
                f"client {int((train.size == 0).nonzero()[0])} has no training rows; "
                "use fewer clients or more rows"
            )
        every = np.ones(len(self.test), dtype=bool)
        return Partition(f"{self.clients} simulated clients", train,
                         rows(self.train, self.held), rows(self.test, every))  # fmt: skip


def simulate(data: Dataset, clients: int, validation: float, seed: int) -> Clients:
    """Clients from the embeddings ``data.train.x`` [n, d] and ``data.test.x`` [m, d].

    validation: share of the training rows set aside, drawn class by class. PCA and k-means see
    the remaining training rows only.

    Raises PartitionError for fewer than one client, more clients than training rows, a validation
    share outside [0, 1), fewer than two dimensions, or a test class without training rows.
    """
    from sklearn.cluster import KMeans  # slow to import
    from sklearn.decomposition import PCA

    x = np.concatenate([data.train.x.numpy(), data.test.x.numpy()]).astype(np.float64)
    y = np.concatenate([data.train.y.numpy(), data.test.y.numpy()])
    n = len(data.train)
    _checked(x, y, n, clients, validation)
    held = _held(y[:n], validation, seed)
    fit = np.concatenate([~held, np.zeros(len(y) - n, dtype=bool)])  # [n + m]
    rng = stream(seed, Purpose.CLIENTS)
    plane = PCA(2, svd_solver="full").fit(x[fit]).transform(x)  # [n + m, 2]
    who, dealt = np.full(len(y), -1), []
    for label in np.unique(y):
        mine = y == label
        state = int(rng.integers(2**31))  # drawn for every class, so that classes do not interfere
        points = plane[mine & fit]
        if len(points) < clients or len(np.unique(points, axis=0)) < clients:
            dealt.append(int(label))
            who[mine] = rng.integers(clients, size=mine.sum())
        else:
            means = KMeans(clients, n_init=10, random_state=state).fit(points)
            who[mine] = means.predict(plane[mine])
    return Clients(who[:n], who[n:], held, plane, tuple(dealt), clients)


def _held(y: NDArray, share: float, seed: int) -> NDArray:
    """Validation rows, bool [n]: the rounded ``share`` of each class, never all of a class."""
    out, rng = np.zeros(len(y), dtype=bool), stream(seed, Purpose.VALIDATION)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        out[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return out


def _checked(x: NDArray, y: NDArray, n: int, clients: int, validation: float) -> None:
    if not isinstance(clients, int | np.integer) or clients < 1:
        raise PartitionError(f"clients is {clients!r}; it must be a whole number of at least 1")
    if not 0 <= validation < 1:
        raise PartitionError(f"validation share is {validation}; it must lie in [0, 1)")
    if clients > n:
        raise PartitionError(f"{clients} clients, but only {n} training rows; each needs one")
    if x.ndim != 2 or x.shape[1] < 2:
        raise PartitionError(f"embeddings of shape {x.shape}; expected [n, d] with d of at least 2")
    if missing := sorted(set(y[n:].tolist()) - set(y[:n].tolist())):
        raise PartitionError(f"test rows of class {missing}, which has no training rows")
