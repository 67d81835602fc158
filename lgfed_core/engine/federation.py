"""Who holds which rows, with which network, and who takes part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from numbers import Integral

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from lgfed_core import require
from lgfed_core.data import Dataset, Split
from lgfed_core.errors import SettingsError
from lgfed_core.partition import ClientIndices, Partition

from .checks.layers import refuse_lazy
from .participation import Participation

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Federation:
    """Who has what, a partition and a seed for each run; the network's shape; who takes part."""

    data: Dataset
    partitions: Sequence[Partition]
    net: nn.Module
    seeds: Sequence[int]
    device: torch.device = CPU
    participation: Participation = field(default_factory=Participation)

    def __post_init__(self):
        if isinstance(self.partitions, Partition):
            raise SettingsError("partitions is one Partition; give a list, one for each seed")
        if not isinstance(self.seeds, Collection):
            raise SettingsError(f"seeds is {self.seeds!r}; give a list, as [{self.seeds!r}]")
        kinds = dict(data=Dataset, net=nn.Module, participation=Participation)
        for name, kind in kinds.items():
            require.instance(name, getattr(self, name), kind)
        if len(self.partitions) != len(self.seeds) or not len(self.seeds):
            raise SettingsError(
                f"{len(self.partitions)} partitions for {len(self.seeds)} seeds; give one each"
            )
        if not all(isinstance(seed, Integral) and seed >= 0 for seed in self.seeds):
            raise SettingsError(
                f"seeds are {list(self.seeds)}; they are whole numbers, and none can be negative"
            )
        object.__setattr__(self, "seeds", [int(seed) for seed in self.seeds])
        if not isinstance(self.device, torch.device):
            raise SettingsError(f"device is {self.device!r}; give torch.device({self.device!r})")
        if len({len(p.train.size) for p in self.partitions}) > 1:
            raise SettingsError("runs that train together need the same number of devices")
        refuse_lazy(self.net)
        kinds = {p.dtype for p in self.net.parameters()}
        usual = torch.get_default_dtype()  # of the tensors in which lanes train
        if odd := kinds - {usual}:
            raise SettingsError(
                f"the network has parameters in {', '.join(map(str, odd))}; lanes train in {usual}"
                f": convert it and its rows by .to({usual}), or call torch.set_default_dtype"
            )
        for name, rows in (("training", self.data.train), ("test", self.data.test)):
            if kinds and rows.x.dtype not in kinds:
                raise SettingsError(
                    f"{name} rows are {rows.x.dtype}, the network's parameters "
                    f"{', '.join(map(str, kinds))}; convert the rows, as with x.float()"
                )
            rows.refuse_broken(f"{self.data.name}, {name} rows")
        self._refuse_rows()
        for name, module in self.net.named_modules():
            if isinstance(module, _BatchNorm) and module.running_mean is None:
                raise SettingsError(
                    f"{type(self.net).__name__}: {name or 'it'} keeps no running statistics, so "
                    "that a test would depend on what is tested together; track_running_stats=True"
                )
            known = isinstance(module, _BatchNorm) and module.momentum is not None
            if not known and any(True for _ in module.buffers(recurse=False)):
                raise SettingsError(
                    f"{type(self.net).__name__}: {name or 'it'} keeps buffers that would leak "
                    "between devices; only batch normalisation with a momentum may have some"
                )
        there, shape = self.participation.availability, (len(self.seeds), self.clients)
        if there is not None and there.shape != shape:
            raise SettingsError(
                f"availability has shape {tuple(there.shape)}; these runs and devices need {shape}"
            )

    def _refuse_rows(self) -> None:
        """Raise SettingsError for rows that the data do not have, and where nobody has any."""
        for r, part in enumerate(self.partitions):
            held = [("training", part.train, self.data.train), ("test", part.test, self.data.test)]
            if part.validation is not None:
                held.append(("validation", part.validation, self.data.train))
            for name, rows, split in held:
                if rows.index.numel() and (last := int(rows.index.max())) >= len(split.y):
                    raise SettingsError(
                        f"a device of run {r} holds {name} row {last}; {self.data.name} has "
                        f"{len(split.y)}, numbered from 0"
                    )
            if not part.train.size.any():
                raise SettingsError(f"no device of run {r} has a training row")

    @property
    def clients(self) -> int:
        """K, the number of devices."""
        return len(self.partitions[0].train.size)

    def rows(self) -> dict[str, tuple[Split, list[ClientIndices]]]:
        """Named sets of rows: train, validation, test per device; pool = the whole test set."""
        place = self.device
        train, test = _to(self.data.train, place), _to(self.data.test, place)
        pool = ClientIndices.from_lists(torch.arange(len(test.y)).tensor_split(self.clients))
        rows = {
            "train": (train, [p.train for p in self.partitions]),
            "test": (test, [p.test for p in self.partitions]),
            "pool": (test, [pool] * len(self.seeds)),
        }
        validation = [p.validation for p in self.partitions if p.validation is not None]
        if len(validation) == len(self.partitions):
            rows["validation"] = (train, validation)
        return rows


def _to(split: Split, place: torch.device) -> Split:
    x = split.x.to(place)
    if place.type == "cuda":
        x = x.contiguous()  # convolutions of many devices at once take no channels_last
    groups = None if split.groups is None else split.groups.to(place)
    return Split(x, split.y.to(place), groups)
