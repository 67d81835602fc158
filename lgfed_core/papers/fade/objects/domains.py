"""Sets, tasks, users and settings: the text's values, and the released code's where it has none.

FADE, section 5.2 (Hong et al., KDD 2021): one user has the whole source domain with its labels,
three have the target's without (`classes_of`, `dealt`). As released, all pictures of the target are
trained on, without their labels, and tested on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from lgfed_core import require
from lgfed_core.data import Dataset, Split
from lgfed_core.data.features import digit_domains, objects
from lgfed_core.data.features.stored import Features
from lgfed_core.data.objects import SHARED10
from lgfed_core.errors import PartitionError, SettingsError
from lgfed_core.methods.cdan import CDAN, ENTROPY
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.shot import CDANSHOT, SHOT
from lgfed_core.models.objects import CONDITIONAL
from lgfed_core.papers.settings import FROM_0, REST, Checked, Range
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.seeds import Purpose, stream

LETTERS = {  # what a letter of a task stands for: a set and its domain
    data: {d[:many].title(): (data, d) for d in domains}
    for data, many, domains in (
        ("office31", 1, ("amazon", "dslr", "webcam")),
        ("officehome", 2, ("art", "clipart", "product", "real_world")),
        ("visda", 1, ("train", "validation")),
        ("digits", 1, digit_domains.DOMAINS),
    )
}
LETTERS["caltech"] = LETTERS["office31"] | {"C": ("caltech10", "caltech10")}
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
METHODS = {"dann": DANN, "cdan": CDAN, "shot": SHOT, "dann+shot": SHOT, "cdan+shot": CDANSHOT}
USERS = ("noniid", "noniid15", "iid")
LEARNING = "mobilenet_v2_maps"  # the backbone whose upper blocks learn
BACKBONES = ("resnet50", "inception_v3", "mobilenet_v2", LEARNING)
SCALES = {
    "smoke": dict(
        data="digits",
        tasks=("M->U",),
        users=("noniid",),
        noniid=6,
        components=10,
        pretraining=4,
        rounds=4,
        looks=2,
        methods=("cdan", "dann+shot"),
        central_methods=("shot",),
    ),
    "quick": dict(
        data="digits",
        tasks=("U->M",),
        users=("noniid",),
        noniid=6,
        components=128,
        pretraining=25,
        rounds=30,
        looks=5,
        central_methods=("cdan", "shot"),
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values; where it gives none, those of the released code."""

    data: str = "office31"
    backbone: str = "inception_v3"
    components: int = 256  # principal ones of the features
    tasks: tuple[str, ...] = TASKS["office31"]
    users: tuple[str, ...] = USERS
    noniid: int = 20  # classes of a user where users are "noniid"
    methods: tuple[str, ...] = tuple(METHODS)
    central_methods: tuple[str, ...] = tuple(METHODS)
    per_round: tuple[int, ...] = (2,)  # users that take part in a round
    target_users: int = 3
    pretraining: int = 25  # rounds on the source alone
    rounds: int = 100
    steps: int = 10  # of a round, divided among its users
    batch_size: int = 32
    lr: float = 0.01  # of adaptation
    pretraining_lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.001
    beta: float = 0.5
    weight: float = 1.0  # of the adversarial loss
    smoothing: float = 0.1
    dropout: float = 0.5
    conditional: str = "mixed"
    entropy: str = "weighs"
    information: float = 1.0
    relabelled: float = 0.3
    least: int = 0
    looks: int = 10  # measurements on the way

    RANGES: ClassVar = dict(smoothing=REST, relabelled=Range(0), least=FROM_0)
    CHOICES: ClassVar = dict(scale=SCALES, data=TASKS, backbone=BACKBONES, users=USERS)
    CHOICES |= dict(methods=METHODS, central_methods=METHODS)
    CHOICES |= dict(conditional=CONDITIONAL, entropy=ENTROPY)
    EMPTY = frozenset({"methods", "central_methods"})

    def fits(self) -> None:
        super().fits()
        if unknown := set(self.tasks) - set(known := TASKS[self.data]):
            raise SettingsError(f"tasks has {sorted(unknown)}; there are {', '.join(known)}")
        if wrong := [m for m in self.per_round if m > 1 + self.target_users]:
            raise SettingsError(
                f"per_round has {wrong}; from 1 to {1 + self.target_users} users take part"
            )

        n, stride = classes(self.data), STRIDES[self.data]
        for kind in self.users:
            each = self.classes(kind, n)
            owned = classes_of(self.target_users, n, each, stride)
            if nobodys := n - len({c for mine in owned for c in mine.tolist()}):
                raise SettingsError(
                    f"users has {kind}: with target_users {self.target_users} and {each} classes "
                    f"each (noniid is {self.noniid}), {nobodys} of the {n} classes of data "
                    f"{self.data} belong to nobody; raise one of them"
                )

    def classes(self, users: str, classes: int) -> int:
        """How many of all ``classes`` a target user has."""
        return {"noniid": self.noniid, "noniid15": 15, "iid": classes}[users]

    @property
    def central_rounds(self) -> int:
        """Central steps, of a batch of each domain: as many batches as in a federated run. SHOT's
        are of the target alone, and so half as many."""
        return max(1, self.rounds * self.steps // 2)


def bottleneck(method: str) -> str:
    """The bottleneck of a method, as released: SHOT has batch normalisation."""
    return "norm" if "shot" in method else "relu"


@dataclass(frozen=True, eq=False)
class Task:
    """Source and target as one data set: the first ``sources`` rows are the source's.

    Training labels of the target are -1; the same rows, with labels, are for testing.
    """

    data: Dataset
    sources: int
    stand_in: str = ""  # which data take the place of the paper's


@lru_cache(maxsize=2)
def load(data: str, task: str, backbone: str, components: int) -> Task:
    """The ``task`` "source->target" of a set, see `TASKS`; features that are missing are computed.

    components: only so many principal components of the features, those of the source's rows; of
    what upper blocks are given, all. What was loaded is kept for the parts that follow. Raises as
    `objects.load` does.
    """
    source, target = (_features(data, LETTERS[data][x], backbone) for x in task.split("->"))
    if learns(data, backbone):
        return joined(task, source, target)
    return joined(task, *reduced(source, target, components))


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


def learns(data: str, backbone: str) -> bool:
    """Whether upper blocks learn with the rest; digits have gradients, whatever the backbone."""
    return backbone == LEARNING and data != "digits"


def classes(data: str) -> int:
    """How many classes a set has, without reading it."""
    if data in ("digits", "caltech"):
        return 10
    (name,) = {name for name, _ in LETTERS[data].values()}
    return len(objects.objects.KINDS[name].classes)


@lru_cache(maxsize=4)
def _features(data: str, place: tuple[str, str], backbone: str) -> Features:
    if data == "digits":
        return digit_domains.load(place[1])
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
    """Two domains as a task."""
    x, y = torch.cat([source.x, target.x]), torch.cat([source.y, target.y])
    n = len(source)
    group = (torch.arange(len(y)) >= n).long()[:, None]  # [n + m, 1]: 0 source, 1 target
    hidden = torch.where(group[:, 0] == 1, -1, y)
    classes = int(source.y.max()) + 1
    data = Dataset(name, Split(x, hidden, group), Split(x, y, group), classes)
    return Task(data, n, source.stand_in)


def classes_of(users: int, classes: int, each: int, stride: int) -> list[NDArray]:
    """Who has which classes: user u the ``each`` from u times ``stride`` on, counted in a circle.

    >>> [c.tolist() for c in classes_of(3, classes=5, each=2, stride=2)]
    [[0, 1], [2, 3], [0, 4]]
    """
    require.at_least(1, users=users, each=each)
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
    y = task.data.test.y[task.sources :].numpy()  # the target's
    held = [task.sources + rows for rows in dealt(y, owned, seed)]
    rows = ClientIndices.from_lists([np.arange(task.sources), *held])
    return Partition(f"{each} classes a target user", rows, None, rows)
