"""Who holds which rows, and all tensors of a phase, checked before anything runs."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lgfed_core.data import Dataset, Split
from lgfed_core.errors import SettingsError, instance
from lgfed_core.methods import Method
from lgfed_core.models.layout import Layout, values
from lgfed_core.partition.label_skew import ClientIndices, Partition

from . import answers, checked, trials
from .layers import refuse_lazy
from .lifted import refuse_unlifted
from .memory import zeros
from .participation import Participation
from .processes import Apart
from .trackers import Tracker
from .training import LocalTraining, Phase, normalises, trainee

CPU = torch.device("cpu")
ENGINES = (
    "shared",
    "personal",
    "uploads",
    "others",
    "velocity",
    "taken",
    "labels",
    "memory",
)  # tensors


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
            instance(name, getattr(self, name), kind)
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


def prepare(
    federation: Federation,
    method: Method | Sequence[Method],
    training: LocalTraining,
    start: Tensor,
    tracker: Tracker,
    forked: bool,
    padded: bool = False,
) -> Phase:
    """Allocate every tensor of a phase; in memory that workers share if ``forked``.

    padded: whether batches will be, so that losses have to go by the weights of their rows.
    """
    methods = checked.one_each(federation, method)
    layout = Layout(federation.net, averaged(methods[0], federation.net))
    runs, devices, place = len(federation.seeds), federation.clients, federation.device
    size = layout.size_shared + layout.size_personal
    checked.data(federation, methods, training, padded)
    trial = partial(trials.losses, federation, methods[0], padded)
    Apart(trial).call() if forked else trial()
    checked.start(start, layout, runs, devices)
    shared, personal = layout.split(start.to(place))
    if start.dim() == 2:
        personal = personal[:, None]  # [R, 1, P_p], the same for all
    elif not torch.equal(shared, shared[:, :1].expand_as(shared)):
        raise SettingsError("devices start from different values of parameters that are shared")
    else:
        shared = shared[:, 0]  # [R, P_s]
    tensors = {}

    def allocate(name: str, *shape: int) -> Tensor:
        on_cpu = place.type == "cpu"
        tensors[name] = (
            zeros(*shape, forked=forked) if on_cpu else torch.zeros(*shape, device=place)
        )
        return tensors[name]

    allocate("shared", *shared.shape).copy_(shared)
    allocate("personal", runs, devices, layout.size_personal).copy_(personal)
    slots = runs * federation.participation.cohort(devices)
    allocate("uploads", slots, layout.size_shared)
    if memory := methods[0].server_memory:
        allocate("memory", runs, memory, layout.size_shared)  # of each run's server
    if methods[0].needs_peers:
        allocate("others", slots, size)
    if training.keep_momentum:
        allocate("velocity", runs, devices, size)
    if training.annealing:
        allocate("taken", runs, devices)  # steps of each device so far
    if methods[0].relabel:
        y = federation.data.train.y
        allocate("labels", runs, len(y)).copy_(y)  # in the place of the data's own
    net = copy.deepcopy(federation.net).eval()  # for testing; training has its own copies
    phase = Phase(
        net, layout, methods, training, list(federation.seeds), federation.rows(), tensors
    )
    if normalises(trainee(phase)):
        checked.lonely_rows(phase)
        if padded:
            checked.padded_rows(phase)
    if padded:
        checked.padding(phase)
    if padded and (two := trials.two(federation, methods[0])) is not None:
        refuse_unlifted(phase, two)

    def of_tracker(name: str, *shape: int) -> Tensor:
        if name in ENGINES or name in tensors:
            raise SettingsError(f"{type(tracker).__name__} cannot have a tensor {name!r}: taken")
        return allocate(name, *shape)

    tracker.allocate(of_tracker, phase)
    return phase


def averaged(method: Method, net: nn.Module) -> frozenset[str]:
    """What ``method`` shares, and running statistics if it averages them."""
    known = dict(net.named_parameters())
    statistics = method.batch_norm == "averaged"
    return answers.shared(method, net) | {
        n for n, _ in values(net) if statistics and n not in known
    }


def _to(split: Split, place: torch.device) -> Split:
    x = split.x.to(place)
    if place.type == "cuda":
        x = x.contiguous()  # convolutions of many devices at once take no channels_last
    groups = None if split.groups is None else split.groups.to(place)
    return Split(x, split.y.to(place), groups)
