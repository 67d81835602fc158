"""Who holds what: a source user with labels, and target users without, some with few classes.

FADE, section 5.2 (Hong et al., KDD 2021): one user has the whole source domain, three have the
target's, user u the classes u s, u s + 1, ... (mod C), n of them; every class is dealt evenly among
the users that have it. As released, all pictures of the target are trained on, without their
labels, and tested on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from lgfed_core.data import Dataset, Split
from lgfed_core.data.features import digits, objects
from lgfed_core.data.features.stored import Features
from lgfed_core.data.objects import SHARED10
from lgfed_core.errors import PartitionError, SettingsError, at_least
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.seeds import Purpose, stream

UNLABELLED = -1
LETTERS = {  # what a letter of a task stands for: a set and its domain
    "office31": {d[0].upper(): ("office31", d) for d in ("amazon", "dslr", "webcam")},
    "caltech": {d[0].upper(): ("office31", d) for d in ("amazon", "dslr", "webcam")}
    | {"C": ("caltech10", "caltech10")},
    "officehome": {
        "Ar": ("officehome", "art"),
        "Cl": ("officehome", "clipart"),
        "Pr": ("officehome", "product"),
        "Re": ("officehome", "real_world"),
    },
    "visda": {"T": ("visda", "train"), "V": ("visda", "validation")},
    "digits": {d[0].upper(): ("digits", d) for d in digits.DOMAINS},
}
TASKS = {
    "office31": ("A->D", "A->W", "D->A", "D->W", "W->A", "W->D"),
    "caltech": tuple(f"{a}->{b}" for a in "ACDW" for b in "ACDW" if a != b),
    "officehome": ("Re->Ar", "Re->Cl", "Re->Pr"),  # those that the paper prints
    "visda": ("T->V",),
    "digits": tuple(f"{a}->{b}" for a in "BMU" for b in "BMU" if a != b),
}
NONIID = {"caltech": 6, "officehome": 45, "visda": 5, "digits": 6}  # classes of a user
PER_ROUND = {"visda": (1,)}  # users that take part in a round, where not the usual ones
STRIDES = {"office31": 10, "caltech": 3, "officehome": 20, "visda": 4, "digits": 3}


@dataclass(frozen=True, eq=False)
class Task:
    """Source and target as one data set: the first ``sources`` rows are the source's.

    Training labels of the target are -1; the same rows, with labels, are for testing.
    """

    data: Dataset
    sources: int
    stand_in: str = ""  # which data take the place of the paper's

    @property
    def y(self) -> NDArray:
        """The target's labels, int64 [m]."""
        return self.data.test.y[self.sources :].numpy()


def load(data: str, task: str, backbone: str, components: int | None = None) -> Task:
    """The ``task`` "source->target" of a set, see `TASKS`; features that are missing are computed.

    components: only so many principal components of the features, those of the source's rows.

    Raises as `objects.load` does, and SettingsError for a task with unknown letters.
    """
    letters, known = task.split("->"), LETTERS[data]
    if unknown := [letter for letter in letters if letter not in known]:
        raise SettingsError(f"task {task!r} of {data}: no domain {unknown[0]!r} in {list(known)}")
    source, target = (_features(data, known[letter], backbone) for letter in letters)
    if components:
        source, target = reduced(source, target, components)
    return joined(task, source, target)


def reduced(source: Features, target: Features, components: int) -> tuple[Features, Features]:
    """Both in the source's first principal components, whose squares are 1 in the mean there.

    n rows span n - 1 directions around their mean, so that there are never more.
    """
    many = min(components, len(source) - 1)
    pca = PCA(many, svd_solver="covariance_eigh").fit(source.x.numpy())
    scale = float(np.sqrt(pca.explained_variance_.mean()))
    return tuple(
        replace(part, x=torch.from_numpy(pca.transform(part.x.numpy()) / scale).float())
        for part in (source, target)
    )


def classes(data: str) -> int:
    """How many classes a set has, without reading it."""
    if data in ("digits", "caltech"):
        return 10
    (name,) = {name for name, _ in LETTERS[data].values()}
    return len(objects.objects.KINDS[name].classes)


def at_hand(backbone: str) -> str:
    """The set of a live run: Office-31 where its features have been computed, or else digits."""
    return "office31" if objects.stored("office31", backbone) else "digits"


@lru_cache(maxsize=4)
def _features(data: str, place: tuple[str, str], backbone: str) -> Features:
    if data == "digits":
        return digits.load(place[1])
    found = objects.load(*place, backbone)
    return shared_classes(found, place[0]) if data == "caltech" else found


def shared_classes(found: Features, name: str) -> Features:
    """The rows of the ten classes that Office-31 and Caltech-256 share, numbered alike."""
    if name == "caltech10":
        return found
    ten = [objects.objects.KINDS[name].classes.index(c) for c in SHARED10.values()]
    kept = np.isin(found.y, ten)
    y = torch.tensor([ten.index(int(c)) for c in found.y[kept]])
    return Features(found.name, found.x[kept], y, y.numpy(), y.numpy(), stand_in=found.stand_in)


def joined(name: str, source: Features, target: Features) -> Task:
    """Two domains as a task. Raises SettingsError for features of different backbones."""
    if source.x.shape[1] != target.x.shape[1]:
        raise SettingsError(
            f"{name}: {source.name} has {source.x.shape[1]} features and {target.name} "
            f"{target.x.shape[1]}; both must come from one backbone"
        )
    x, y = torch.cat([source.x, target.x]), torch.cat([source.y, target.y])
    n = len(source)
    group = (torch.arange(len(y)) >= n).long()[:, None]  # [n + m, 1]: 0 source, 1 target
    hidden = torch.where(group[:, 0] == 1, UNLABELLED, y)
    classes = int(source.y.max()) + 1
    data = Dataset(name, Split(x, hidden, group), Split(x, y, group), classes)
    return Task(data, n, source.stand_in)


def classes_of(users: int, classes: int, each: int, stride: int) -> list[NDArray]:
    """Who has which classes: user u the ``each`` from u times ``stride`` on, counted in a circle.

    >>> [c.tolist() for c in classes_of(3, classes=5, each=2, stride=2)]
    [[0, 1], [2, 3], [0, 4]]
    """
    at_least(1, users=users, each=each)
    return [np.sort((u * stride + np.arange(min(each, classes))) % classes) for u in range(users)]


def dealt(y: ArrayLike, owned: list[NDArray], seed: int) -> list[NDArray]:
    """Row numbers of each user: every class of y [n] is dealt evenly among those that own it.

    Raises PartitionError for a class that nobody owns.
    """
    y, rng = np.asarray(y), stream(seed, Purpose.CLASSES_PER_DEVICE)
    held: list[list[NDArray]] = [[] for _ in owned]
    for label in np.unique(y):
        owners = [u for u, mine in enumerate(owned) if label in mine]
        if not owners:
            raise PartitionError(f"class {label} belongs to no user; raise their classes or users")
        rows = rng.permutation(np.flatnonzero(y == label))
        for i, part in enumerate(np.array_split(rows, len(owners))):
            held[owners[(i + label) % len(owners)]].append(part)  # who gets one more goes round
    return [np.sort(np.concatenate(mine)) for mine in held]


def partition(task: Task, users: int, each: int, stride: int, seed: int) -> Partition:
    """Device 0 has the source, devices 1 to ``users`` the target's rows."""
    owned = classes_of(users, task.data.classes, each, stride)
    held = [task.sources + rows for rows in dealt(task.y, owned, seed)]
    rows = ClientIndices.from_lists([np.arange(task.sources), *held])
    return Partition(f"{each} classes a target user", rows, None, rows)
