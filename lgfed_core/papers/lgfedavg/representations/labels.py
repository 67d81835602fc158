"""Who holds which rows of MNIST, and which of them have a label."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lgfed_core import data, partition
from lgfed_core.data import Dataset, Split
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.seeds import Purpose, stream

from .handwriting_slant import with_slant


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
        moved = (_further(of, n * rows) for of in (mine.train, mine.validation))
        found.append(replace(mine, train=next(moved), validation=next(moved)))
    times = len(parts)
    groups = None if train.groups is None else train.groups.repeat(times, 1)
    whole = Split(train.x.repeat(times, 1), torch.cat(parts), groups)
    return replace(images, train=whole), found


def _further(rows: ClientIndices, by: int) -> ClientIndices:
    """Row numbers ``by`` rows further down."""
    moved: Tensor = torch.where(rows.mask, rows.index + by, 0)
    return ClientIndices(moved, rows.size)
