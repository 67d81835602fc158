"""The rows that a device visits in one round of looped lanes, batch by batch."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from lgfed_core.seeds import pictures, visits

from .training import Phase

Rows = tuple[Tensor, Tensor, None, Tensor | None]  # x [b, ...], y [b], no weights, groups [b, g]


class Visited:
    """Rows of ``device`` in one run and round: ``epochs`` shuffles of them, each cut in batches."""

    def __init__(self, phase: Phase, run: int, device: int, round: int):
        cfg, labels = phase.training, phase.tensors.get("labels")
        self.split, per_run = phase.rows["train"]
        self.y = self.split.y if labels is None else labels[run].long()
        self.cfg, mine = cfg, per_run[run].of(device)
        self.rows = cfg.seen(len(mine))  # of one epoch
        place = phase.seeds[run], round, device, len(mine), cfg.epochs
        self.order = mine[torch.from_numpy(visits(*place))[:, : self.rows]]  # [epochs, n]
        drawn = torch.from_numpy(pictures(cfg.augment, *place)) if cfg.augment else None
        self.changes = drawn  # [epochs, n_k, ...], of augmentation

    @property
    def batches(self) -> int:
        """How many there are in all epochs."""
        return self.cfg.epochs * -(-self.rows // self.cfg.batch_size)

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
                soon = order[start : start + together]  # rows of the data set
                x, y, groups = self.split.x[soon], self.y[soon], self._groups(soon)
                if begin:
                    over = epoch + 1 == self.cfg.epochs and start + together >= self.rows
                    begin(x, epoch + start == 0, over)
                for at in range(0, len(soon), size):
                    b = slice(at, at + size)
                    seen = self._changed(x[b], epoch, start + at)
                    yield seen, y[b], None, None if groups is None else groups[b]

    def _groups(self, rows: Tensor) -> Tensor | None:
        return None if self.split.groups is None else self.split.groups[rows]

    def _changed(self, x: Tensor, epoch: int, at: int) -> Tensor:
        """Rows x [b, ...] of an epoch, from number ``at`` on, augmented."""
        if self.cfg.augment is None or self.changes is None:
            return x
        return self.cfg.augment.apply(x, self.changes[epoch, at : at + self.cfg.batch_size])
