"""Who holds which rows of MNIST, which of them have a label, and which pictures lean.

The slant stands in for the protected attribute of the adversarial panel, as MNIST says nothing of
its writers: it is a trait of the hand that wrote, and in the pixels. A picture's group is 1 where
it leans to the right by more than the median of its own digit, so that in every digit half of the
pictures do, and the label says nothing of the group.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lgfed_core import data, partition
from lgfed_core.data import Dataset, Split
from lgfed_core.data.mnist import MEAN, STD
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.seeds import Purpose, stream


def pictures(cfg) -> Dataset:
    """As much of MNIST as ``cfg`` asks for, with the slant of the writing as a group."""
    return with_slant(data.subset(data.load("mnist"), *cfg.rows_per_class))


def split(cfg, images: Dataset, seed: int) -> Partition:
    """Who holds what: as in the paper's experiments, with validation rows."""
    labels = images.train.y, images.test.y
    whole = partition.classes_per_device(*labels, cfg.devices, cfg.classes, seed)
    return partition.with_validation(whole, cfg.validation, seed)


def few(
    images: Dataset, splits: Sequence[Partition], seeds: Sequence[int], labels: int
) -> tuple[Dataset, list[Partition]]:
    """``images`` in which each device keeps ``labels`` labels (0: all), and who holds what there.

    Which rows keep theirs is drawn for each seed and device; ten are among the fifty. Validation
    rows keep them in any case. Every run has a copy of the training rows of its own.
    """
    train, parts, found, rows = images.train, [], [], len(images.train)
    for n, (mine, seed) in enumerate(zip(splits, seeds, strict=True)):
        y = train.y.clone()
        for k in range(len(mine) if labels else 0):
            held = mine.train.of(k)
            order = stream(seed, Purpose.LABELS, k).permutation(len(held))
            y[held[torch.from_numpy(order)[labels:]]] = -1
        parts.append(y)
        moved = {"train": mine.train, "validation": mine.validation}
        for name, own in moved.items():  # to this run's copy
            moved[name] = ClientIndices(torch.where(own.mask, own.index + n * rows, 0), own.size)
        found.append(replace(mine, **moved))
    x, groups = (rows.repeat(len(parts), 1) for rows in (train.x, train.groups))
    whole = Split(x, torch.cat(parts), groups)
    return replace(images, train=whole), found


def leaning(x: Tensor) -> Tensor:
    """How far pictures x [n, 784] lean to the right: columns per row upwards, of the ink [n]."""
    ink = (x * STD + MEAN).clamp(min=0).view(-1, 28, 28)  # [n, 28, 28]
    total = ink.sum((1, 2)).clamp(min=1e-6)  # [n]
    place = torch.arange(28.0)
    row = (ink.sum(2) @ place / total)[:, None]  # [n, 1], centre of the ink
    column = (ink.sum(1) @ place / total)[:, None]
    down, right = place - row, place - column  # [n, 28] each
    across = torch.einsum("nij,ni,nj->n", ink, down, right)
    spread = torch.einsum("nij,ni->n", ink, down.square()).clamp(min=1e-6)
    return -across / spread


def with_slant(images: Dataset) -> Dataset:
    """``images`` with one group: whether a picture leans more than the median of its digit.

    Medians are those of the training rows.
    """
    lean, y = leaning(images.train.x), images.train.y
    medians = torch.stack([lean[y == c].median() for c in range(images.classes)])

    def grouped(split: Split) -> Split:
        return replace(split, groups=(leaning(split.x) > medians[split.y]).long()[:, None])

    return replace(images, train=grouped(images.train), test=grouped(images.test))
