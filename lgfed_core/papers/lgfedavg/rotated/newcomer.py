"""Newcomers with turned pictures: what they hold, and who takes part once they have come.

The old devices hold MNIST as in the paper's other experiments. A newcomer is one more device of the
federation: its rows are copies of MNIST's, turned, at the end of the data set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lgfed_core import data, partition
from lgfed_core.data import Dataset, Split, mnist
from lgfed_core.engine import Participation
from lgfed_core.errors import SettingsError
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.seeds import Purpose, stream


@dataclass(frozen=True, eq=False)
class WithNewcomers(Participation):
    """``fraction`` of the old devices, which may be 0, and every newcomer in each round.

    Old devices are drawn as without the newcomers: the same ones for the same seed and round.
    """

    newcomers: int = 1

    def __post_init__(self):
        if not 0 <= self.fraction <= 1:
            raise SettingsError(f"fraction is {self.fraction}; it must lie between 0 and 1")

    def cohort(self, devices: int) -> int:
        """m, old devices and newcomers together."""
        return int(self.fraction * (devices - self.newcomers) + 1e-9) + self.newcomers

    def chosen(self, rng: np.random.Generator, devices: int, run: int = 0) -> np.ndarray:
        old = devices - self.newcomers
        drawn = rng.permutation(old)[: self.cohort(devices) - self.newcomers]
        return np.concatenate([np.sort(drawn), np.arange(old, devices)])


@dataclass(frozen=True)
class Held:
    """Row numbers of MNIST behind the newcomers of one run, before anything is turned."""

    train: Tensor  # [N, n]
    test: Tensor  # [N, n']
    upright: Tensor  # [N, u], training rows that they keep as they are


def held(cfg, images: Dataset, seed: int) -> Held:
    """Which rows newcomers have: drawn at random, no row twice.

    Raises SettingsError where there are not as many.
    """
    rng, found = stream(seed, Purpose.NEWCOMERS), []
    for part, each in ((images.train, cfg.train_rows), (images.test, cfg.test_rows)):
        turned = cfg.newcomers * each
        more = round(cfg.upright * turned) if part is images.train else 0
        if turned + more > len(part):
            raise SettingsError(
                f"{cfg.newcomers} newcomers need {turned + more} rows, but there are {len(part)}; "
                "lower newcomers, train_rows, test_rows or upright"
            )
        order = torch.from_numpy(rng.permutation(len(part)))
        found += [order[:turned], order[turned : turned + more]]
    train, upright, test, _ = (rows.view(cfg.newcomers, -1) for rows in found)
    return Held(train, test, upright)


def old_devices(cfg, images: Dataset, seed: int) -> Partition:
    """Who of the old devices holds which rows; without ``overlap`` none that a newcomer has."""
    kept = []
    mine = held(cfg, images, seed)
    for part, taken in ((images.train, mine.train), (images.test, mine.test)):
        free = torch.ones(len(part), dtype=torch.bool)
        free[taken] = cfg.overlap
        kept.append(free.nonzero().flatten())
    labels = [p.y[rows] for p, rows in zip((images.train, images.test), kept, strict=True)]
    if cfg.classes == images.classes:
        split = partition.iid(*labels, cfg.devices, seed)
    else:
        split = partition.classes_per_device(*labels, cfg.devices, cfg.classes, seed)
    split = partition.with_validation(split, cfg.validation, seed)
    train, validation = (_among(kept[0], rows) for rows in (split.train, split.validation))
    return replace(split, train=train, validation=validation, test=_among(kept[1], split.test))


def arrived(
    cfg, images: Dataset, splits: Sequence[Partition], seeds: Sequence[int]
) -> tuple[Dataset, list[Partition]]:
    """The data with the newcomers' turned rows behind them, and who holds what, for each run.

    splits: of `old_devices`. Newcomers are the last devices; nobody has validation rows any more.
    """
    train, test, found = [images.train], [images.test], []
    for split, seed in zip(splits, seeds, strict=True):
        mine = held(cfg, images, seed)
        here = [_added(*parts, cfg.angle) for parts in ((train, mine.train), (test, mine.test))]
        here[0] = torch.cat([here[0], mine.upright], 1)
        rows = (
            ClientIndices.from_lists([*map(old.of, range(len(split))), *new])
            for old, new in zip((split.train, split.test), here, strict=True)
        )
        found.append(Partition(f"{split.name}, newcomers", next(rows), None, next(rows)))
    return replace(images, train=_joined(train), test=_joined(test)), found


def pictures(cfg) -> Dataset:
    """MNIST, or as much of it as ``cfg`` asks for."""
    images = data.load("mnist")
    return data.subset(images, *cfg.rows_per_class) if cfg.rows_per_class else images


def _added(parts: list[Split], rows: Tensor, angle: float) -> Tensor:
    """Append turned copies of ``rows`` [N, n] of the first part; where they are now: [N, n]."""
    at, some = sum(map(len, parts)), parts[0].take(rows.flatten())
    parts.append(Split(mnist.turned(some.x, angle), some.y))
    return at + torch.arange(rows.numel()).view(rows.shape)


def _joined(parts: list[Split]) -> Split:
    return Split(torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts]))


def _among(kept: Tensor, rows: ClientIndices) -> ClientIndices:
    """Row numbers among ``kept`` [n] as row numbers of the whole data set."""
    return ClientIndices(torch.where(rows.mask, kept[rows.index], 0), rows.size)
