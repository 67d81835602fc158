"""The tasks: rows, who holds them, and the group that an adversary or a probe asks for, as in the
table of the page.

They are our own, made of the papers' data so that a run takes a minute. Devices of `digits` and
`office31` hold all classes of one domain; Office-31's two cameras, which took pictures of the same
things, are one group, and the shop's pictures the other. Raises NotAvailable where data cannot be
had: nothing stands in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import torch
from torch import Tensor

from lgfed_core import data
from lgfed_core.data import Dataset, Split, mnist
from lgfed_core.data.features import cifar10, objects
from lgfed_core.data.features.stored import Features
from lgfed_core.partition import (
    ClientIndices,
    Partition,
    classes_per_device,
    dirichlet,
    iid,
    with_validation,
)

VALIDATION = 0.2  # of each device's training rows
TEST_SPLIT = 0  # Office-31 has no official one: drawn once, the same for all seeds
ADULT = 30_000  # rows, for training and testing
USPS = (540, 140)  # training and test rows of each digit; its rarest has no more


@dataclass(frozen=True, eq=False)
class Task:
    """Rows, and how a seed deals them."""

    data: Dataset
    deal: Callable[[Split, Split, int], Partition]

    @property
    def inputs(self) -> int:
        return self.data.train.x.shape[1]

    def partition(self, seed: int) -> Partition:
        """Who holds which rows; a fifth of each device's training rows are for validation."""
        return with_validation(self.deal(self.data.train, self.data.test, seed), VALIDATION, seed)


@lru_cache(maxsize=2)
def load(name: str, rows: int) -> Task:
    """A task with so many training ``rows``, or as many as there are: see `settings.Settings`."""
    return TASKS[name](rows)


def _mnist(rows: int) -> Task:
    return Task(data.subset(data.load("mnist"), rows, _tested(rows)), _two_classes)


def _cifar10(rows: int) -> Task:
    found = cifar10.load("inception_v3", per_class=rows)
    return Task(Dataset("cifar10", *_centred(*_halves(found)), 10), _two_classes)


def _adult(rows: int) -> Task:
    found = data.load("adult", rows=min(20 * rows, ADULT))
    train, test = (Split(s.x, s.y, s.groups[:, 1:]) for s in (found.train, found.test))
    return Task(Dataset("adult", train, test, 2), _unequal)


def _digits(rows: int) -> Task:
    each = min(rows, USPS[0]), min(_tested(rows), USPS[1])
    sets = [data.subset(data.load(name), *each) for name in ("mnist", "usps")]
    train, test = (
        _together([_pixels(getattr(one, part)) for one in sets], (0, 1))
        for part in ("train", "test")
    )
    return Task(Dataset("digits", train, test, 10), partial(_domains, devices=5))


def _office31(rows: int) -> Task:
    parts = [_halves(objects.load("office31", name)) for name in ("amazon", "webcam", "dslr")]
    train, test = (_together(sets, (0, 1, 1)) for sets in zip(*parts, strict=True))
    found = Dataset("office31", *_centred(train, test), 31)
    return Task(found, partial(_domains, devices=4))


TASKS = dict(mnist=_mnist, cifar10=_cifar10, adult=_adult, digits=_digits, office31=_office31)


def _tested(rows: int) -> int:
    return max(20, rows // 2)  # test rows of each class; those of CIFAR-10 are a fifth


def _pixels(split: Split) -> Split:
    """Pictures of either set -> [n, 784], values from -1 to 1."""
    x = split.x.flatten(1)
    return Split((x * mnist.STD + mnist.MEAN) * 2 - 1 if split.x.dim() == 2 else x, split.y)


def _halves(found: Features) -> tuple[Split, Split]:
    """Training and test rows."""
    test = torch.from_numpy(found.test_rows(TEST_SPLIT))
    return Split(found.x[~test], found.y[~test]), Split(found.x[test], found.y[test])


def _centred(train: Split, test: Split) -> tuple[Split, Split]:
    """Each coordinate less its mean over training rows, all over their mean deviation."""
    middle, scale = train.x.mean(0), train.x.std(0).mean()
    train, test = (replace(one, x=(one.x - middle) / scale) for one in (train, test))
    return train, test


def _together(sets: Sequence[Split], groups: Sequence[int]) -> Split:
    sizes = torch.tensor([len(one) for one in sets])
    group = torch.tensor(groups).repeat_interleave(sizes)[:, None]  # [n, 1]
    return Split(torch.cat([one.x for one in sets]), torch.cat([one.y for one in sets]), group)


def _two_classes(train: Split, test: Split, seed: int) -> Partition:
    return classes_per_device(train.y, test.y, devices=20, classes=2, seed=seed)


def _unequal(train: Split, test: Split, seed: int) -> Partition:
    return dirichlet(train.y, test.y, devices=10, alpha=1.0, seed=seed)


def _domains(train: Split, test: Split, seed: int, devices: int) -> Partition:
    """So many devices for each group, which share its rows at random."""
    held: dict[str, list[Tensor]] = {"train": [], "test": []}
    for group in (0, 1):
        mine = [torch.nonzero(one.groups[:, 0] == group).flatten() for one in (train, test)]
        dealt = iid(train.y[mine[0]], test.y[mine[1]], devices, seed)
        for part, own in zip(held, mine, strict=True):
            held[part] += [own[getattr(dealt, part).of(k)] for k in range(devices)]
    rows = {part: ClientIndices.from_lists(lists) for part, lists in held.items()}
    return Partition(f"{devices} devices of each domain", validation=None, **rows)
