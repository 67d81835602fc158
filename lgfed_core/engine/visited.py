"""The rows that a device visits in one round of looped lanes, batch by batch."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from lgfed_core.seeds import pictures, visits

from .phase import Phase

Rows = tuple[Tensor, Tensor, None, Tensor | None]  # x [b, ...], y [b], no weights, groups [b, g]


class Visited:
    """Rows of ``device`` in one run and round: ``epochs`` shuffles of them, each cut in batches."""

    def __init__(self, phase: Phase, run: int, device: int, round: int):
        cfg, labels = phase.training, phase.tensors.get("labels")
        split, per_run = phase.rows["train"]
        self.split = split if labels is None else replace(split, y=labels[run].long())
        self.cfg, mine = cfg, per_run[run].of(device)
        self.rows = cfg.seen(len(mine))  # of one epoch
        place = phase.seeds[run], round, device, len(mine), cfg.epochs
        self.order = mine[torch.from_numpy(visits(*place))[:, : self.rows]]  # [epochs, n]
        drawn = torch.from_numpy(pictures(cfg.augment, *place)) if cfg.augment else None
        self.changes = drawn  # [epochs, n_k, ...], of augmentation

    @property
    def batches(self) -> int:
        """How many there are in all epochs."""
        return self.cfg.batches_of(self.rows)

    def each(
        self, together: int, begin: Callable[[Tensor, bool, bool], None] | None = None
    ) -> Iterator[Rows]:
        """Batch by batch; rows are fetched ``together``, in whole batches.

        begin: is told of fetched rows before the first batch of them, and whether they are the
        first and the last of the round.
        """
        size = self.cfg.batch_size
        for epoch, order in enumerate(self.order):
            for start in range(0, self.rows, together):
                soon = self.split.take(order[start : start + together])
                if begin:
                    over = epoch + 1 == self.cfg.epochs and start + together >= self.rows
                    begin(soon.x, epoch + start == 0, over)
                for at in range(0, len(soon), size):
                    b = slice(at, at + size)
                    seen = self._changed(soon.x[b], epoch, start + at)
                    groups = None if soon.groups is None else soon.groups[b]
                    yield seen, soon.y[b], None, groups

    def _changed(self, x: Tensor, epoch: int, at: int) -> Tensor:
        """Rows x [b, ...] of an epoch, from number ``at`` on, augmented."""
        if self.cfg.augment is None or self.changes is None:
            return x
        return self.cfg.augment.apply(x, self.changes[epoch, at : at + self.cfg.batch_size])
