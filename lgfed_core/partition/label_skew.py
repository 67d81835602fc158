"""Which device holds which rows of a data set.

Every scheme takes the labels of the training and the test set, draws with its own stream of
random numbers, and gives a `Partition`. The same arguments give the same partition, always.

====================  ===============================================  ===================
scheme                a device gets                                    source
====================  ===============================================  ===================
`label_shards`        some shards of the label-sorted rows             LG-FedAvg, v1
`classes_per_device`  shards of at most s classes, same for its test   LG-FedAvg, v2
`iid`                 a random share of all rows                       LG-FedAvg, v2
`dirichlet`           a random share of each class, same for its test  Yurochkin 2019
====================  ===============================================  ===================

A request that cannot be met raises PartitionError; no scheme leaves a device without rows.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from lgfed_core.errors import PartitionError
from lgfed_core.seeds import Purpose

from .partition import ClientIndices, Partition, checked_stream, positive


def label_shards(
    train_y: ArrayLike, test_y: ArrayLike, devices: int, shards_per_device: int, seed: int
) -> Partition:
    """Label-sorted rows cut in devices * shards_per_device shards; a device gets some at random.

    The scheme of LG-FedAvg v1 (after McMahan et al., 2017). Shards differ by one row at most.
    Training and test set use the same shard *numbers*: a device is tested on the classes it has
    trained on only where both sets are equally balanced, which those of MNIST are not.
    Every row is used exactly once.
    """
    train_y, test_y = _labels(train_y, test_y)
    positive(devices=devices, shards_per_device=shards_per_device)
    shards = devices * shards_per_device
    for what, y in (("training", train_y), ("test", test_y)):
        if shards > len(y):
            raise PartitionError(
                f"{devices} devices x {shards_per_device} shards = {shards} shards, but the {what} "
                f"set has {len(y)} rows; use fewer devices or shards"
            )
    numbers = checked_stream(seed, Purpose.LABEL_SHARDS).permutation(shards)
    numbers = numbers.reshape(devices, shards_per_device)

    def deal(y: np.ndarray) -> ClientIndices:
        cut = np.array_split(np.argsort(y, kind="stable"), shards)
        return ClientIndices.from_lists(
            [np.concatenate([cut[i] for i in mine]) for mine in numbers]
        )

    name = f"{shards_per_device} label shards per device"
    return Partition(name, deal(train_y), None, deal(test_y))


def classes_per_device(
    train_y: ArrayLike, test_y: ArrayLike, devices: int, classes: int, seed: int
) -> Partition:
    """Each device gets ``classes`` shards, each of one class: at most that many classes.

    The scheme of LG-FedAvg v2 as released. With s = ``classes``, K devices and C classes in the
    data, each class is cut in s K / C shards of consecutive rows; the rows left over by the
    division go one each to the first shards. A shuffled list with each class s K / C times gives
    every device s classes, in which **a class can occur twice**. Training and test set use
    the same list, and draw their shards independently. Every row is used exactly once.

    Raises PartitionError when s K is not a multiple of C, or a class has fewer rows than shards.
    """
    train_y, test_y = _labels(train_y, test_y)
    positive(devices=devices, classes=classes)
    labels = np.unique(train_y)
    if classes > len(labels):
        raise PartitionError(
            f"{classes} classes per device, but the data have only {len(labels)} classes"
        )
    if classes * devices % len(labels):
        raise PartitionError(
            f"{classes} classes x {devices} devices = {classes * devices} shards cannot be shared "
            f"equally by {len(labels)} classes; make the product a multiple of {len(labels)}"
        )
    per_class = classes * devices // len(labels)
    rng = checked_stream(seed, Purpose.CLASSES_PER_DEVICE)
    wanted = rng.permutation(np.repeat(labels, per_class))  # [K * s], row k = wanted[k*s:(k+1)*s]

    def deal(y: np.ndarray, what: str) -> ClientIndices:
        dealt = [np.empty(0, np.int64)] * len(wanted)
        for c in labels:
            shards = _shards(np.flatnonzero(y == c), per_class, f"class {c} of the {what} set")
            places, order = np.flatnonzero(wanted == c), rng.permutation(per_class)
            for place, i in zip(places, order, strict=True):
                dealt[place] = shards[i]
        return ClientIndices.from_lists(
            [np.concatenate(dealt[k * classes : (k + 1) * classes]) for k in range(devices)]
        )

    name = f"at most {classes} classes per device"
    return Partition(name, deal(train_y, "training"), None, deal(test_y, "test"))


def iid(train_y: ArrayLike, test_y: ArrayLike, devices: int, seed: int) -> Partition:
    """Each device gets an equal random share of all rows; shares differ by one row at most.

    The "10 classes" rows of LG-FedAvg v2, Tables 6 and 8. Every row is used exactly once.
    """
    train_y, test_y = _labels(train_y, test_y)
    positive(devices=devices)
    _a_row_for_each(devices, train_y, test_y)
    rng = checked_stream(seed, Purpose.IID)
    train, test = (
        ClientIndices.from_lists(np.array_split(rng.permutation(len(y)), devices))
        for y in (train_y, test_y)
    )
    return Partition("i.i.d.", train, None, test)


def dirichlet(
    train_y: ArrayLike, test_y: ArrayLike, devices: int, alpha: float, seed: int
) -> Partition:
    """The rows of each class are shared out in proportions drawn from a Dirichlet(alpha).

    Small ``alpha`` gives a class to few devices, large alpha gives near-i.i.d. shares (Yurochkin
    et al., 2019). One draw serves training and test set, so that a device has the same share of a
    class in both, up to rounding. Every row is used exactly once. A device that rounding leaves
    without a training (or test) row gets one of the class it has the largest share in, from
    the device that holds most rows of it.
    """
    train_y, test_y = _labels(train_y, test_y)
    positive(devices=devices)
    _a_row_for_each(devices, train_y, test_y)
    if not isinstance(alpha, Real) or not 0 < alpha < np.inf:
        raise PartitionError(f"alpha is {alpha!r}; it must be a positive number")
    rng = checked_stream(seed, Purpose.DIRICHLET)
    labels = np.unique(train_y)
    shares = rng.dirichlet(np.full(devices, alpha), size=len(labels))  # [C, K]
    if not np.allclose(shares.sum(1), 1):
        raise PartitionError(f"alpha is {alpha}: too extreme to draw proportions in floating point")

    def deal(y: np.ndarray) -> ClientIndices:
        counts = _counts(shares, np.array([(y == c).sum() for c in labels]))  # [C, K]
        parts: list[list[np.ndarray]] = [[] for _ in range(devices)]
        for c, label in enumerate(labels):
            mixed = rng.permutation(np.flatnonzero(y == label))
            for k, rows in enumerate(np.split(mixed, np.cumsum(counts[c])[:-1])):
                parts[k].append(rows)
        return ClientIndices.from_lists([np.concatenate(rows) for rows in parts])

    return Partition(f"Dirichlet({alpha:g})", deal(train_y), None, deal(test_y))


def with_validation(partition: Partition, fraction: float, seed: int) -> Partition:
    """Set aside a random ``fraction`` of each device's training rows; test rows stay.

    Rounded to whole rows, but never all of them, and at least one where a device has two or more.
    """
    if not isinstance(fraction, Real) or not 0 < fraction < 1:
        raise PartitionError(f"validation fraction is {fraction!r}; it must lie between 0 and 1")
    if partition.validation is not None:
        raise PartitionError(f"'{partition}' has validation rows already")
    rng = checked_stream(seed, Purpose.VALIDATION)
    train, validation = [], []
    for k in range(len(partition)):
        rows = partition.train.of(k).cpu().numpy()  # [n_k]
        held = min(max(1, round(fraction * len(rows))), len(rows) - 1) if len(rows) > 1 else 0
        out = np.zeros(len(rows), dtype=bool)
        out[rng.permutation(len(rows))[:held]] = True
        train.append(rows[~out])
        validation.append(rows[out])
    return replace(
        partition,
        train=ClientIndices.from_lists(train),
        validation=ClientIndices.from_lists(validation),
    )


def _shards(rows: np.ndarray, n: int, what: str) -> list[np.ndarray]:
    """``n`` runs of consecutive rows; the last ``len(rows) % n`` rows go to the first shards."""
    if len(rows) < n:
        raise PartitionError(
            f"{what} has {len(rows)} rows for {n} shards; use fewer devices or more rows"
        )
    whole = len(rows) - len(rows) % n
    shards = list(rows[:whole].reshape(n, -1))
    for i, row in enumerate(rows[whole:]):
        shards[i] = np.append(shards[i], row)
    return shards


def _counts(shares: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Whole rows [C, K] nearest to shares [C, K] x totals [C], with no device left empty."""
    edges = np.rint(np.cumsum(shares, 1) * totals[:, None]).astype(np.int64)
    edges[:, -1] = totals
    counts = np.diff(edges, axis=1, prepend=0)
    for k in np.flatnonzero(counts.sum(0) == 0):
        for c in np.argsort(-shares[:, k], kind="stable"):
            donors = np.where(counts.sum(0) > 1, counts[c], 0)  # [K], none is emptied in turn
            if donors.any():
                counts[c, donors.argmax()] -= 1
                counts[c, k] += 1
                break
    return counts


def _labels(train_y: ArrayLike, test_y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Both label vectors as int64 numpy [n]; the same classes must occur in both."""
    out = []
    for what, y in (("training", train_y), ("test", test_y)):
        y = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
        if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
            raise PartitionError(
                f"{what} labels are {y.dtype} of shape {y.shape}; expected integers of shape [n]"
            )
        out.append(y.astype(np.int64))
    train, test = out
    for what, y, other in (("training", train, test), ("test", test, train)):
        if len(y) == 0:
            raise PartitionError(f"the {what} set has no rows")
        if missing := sorted(set(other.tolist()) - set(y.tolist())):
            raise PartitionError(f"the {what} set has no row of class {missing}")
    return train, test


def _a_row_for_each(devices: int, train_y: np.ndarray, test_y: np.ndarray) -> None:
    if devices > min(len(train_y), len(test_y)):
        raise PartitionError(
            f"{devices} devices, but only {len(train_y)} training and {len(test_y)} test rows; "
            "each device needs one of both"
        )
