"""Who holds which rows, and all tensors of a phase, checked before anything runs."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lgfed_core.data import Dataset, Split
from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.models.layout import Layout, values
from lgfed_core.partition.label_skew import ClientIndices, Partition

from .memory import zeros
from .participation import Participation
from .trackers import Tracker
from .training import LocalTraining, Phase, normalises, trainee

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
        if len(self.partitions) != len(self.seeds) or not self.seeds:
            raise SettingsError(
                f"{len(self.partitions)} partitions for {len(self.seeds)} seeds; give one each"
            )
        if not all(isinstance(seed, Integral) and seed >= 0 for seed in self.seeds):
            raise SettingsError(
                f"seeds are {list(self.seeds)}; they are whole numbers, and none can be negative"
            )
        if not isinstance(self.device, torch.device):
            raise SettingsError(f"device is {self.device!r}; give torch.device({self.device!r})")
        if len({len(p.train.size) for p in self.partitions}) > 1:
            raise SettingsError("runs that train together need the same number of devices")
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
) -> Phase:
    """Allocate every tensor of a phase; in memory that workers share if ``forked``."""
    methods = _one_each(federation, method)
    layout = Layout(federation.net, averaged(methods[0], federation.net))
    runs, devices, place = len(federation.seeds), federation.clients, federation.device
    size = layout.size_shared + layout.size_personal
    _refuse_data(federation, methods[0])
    if start.shape not in ((runs, size), (runs, devices, size)):
        raise SettingsError(
            f"start has shape {tuple(start.shape)}; this network and {runs} runs need "
            f"{(runs, size)}, or {(runs, devices, size)} for a start of every device's own"
        )
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
        _refuse_lonely_rows(phase)
    tracker.allocate(allocate, phase)
    return phase


def _one_each(federation: Federation, method: Method | Sequence[Method]) -> list[Method]:
    """The method of each run, which differ in nothing that the tensors or the lanes depend on."""
    runs, net = len(federation.seeds), federation.net
    methods = [method] * runs if isinstance(method, Method) else list(method)
    if len(methods) != runs:
        raise SettingsError(f"{len(methods)} methods for {runs} runs; give one, or one for each")
    first, names = methods[0], frozenset(dict(net.named_parameters()))

    def moved(m: Method) -> list[tuple]:
        return [(names if s.params is None else s.params, s.when is None) for s in m.steps(net)]

    for r, other in enumerate(methods):
        alike = {
            "class": type(other) is type(first),
            "shared": other.shared(net) == first.shared(net),
            "batch_norm": other.batch_norm == first.batch_norm,
            "steps": moved(other) == moved(first),
        }
        if not all(alike.values()):
            what = ", ".join(name for name, same in alike.items() if not same)
            raise SettingsError(
                f"the methods of runs 0 and {r} differ in {what}: {first} and {other}; runs that "
                "train together differ in numbers alone"
            )
    return methods


def averaged(method: Method, net: nn.Module) -> frozenset[str]:
    """What ``method`` shares, and running statistics if it averages them."""
    known = dict(net.named_parameters())
    statistics = method.batch_norm == "averaged"
    return method.shared(net) | {n for n, _ in values(net) if statistics and n not in known}


def _refuse_data(federation: Federation, method: Method) -> None:
    """Rows that the network does not take, and labels that are missing where they are read."""
    rows, net = federation.data.train, copy.deepcopy(federation.net).to("cpu").eval()
    try:
        with torch.no_grad():
            outputs = net(rows.x[:1].to("cpu", copy=True))  # it may work in place
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise SettingsError(
            f"{type(net).__name__} does not take rows of shape {list(rows.x.shape[1:])}: {error}"
        ) from error
    if type(method).loss is Method.loss:  # cross-entropy
        highest = max(int(split.y.max()) for split in (rows, federation.data.test))
        if outputs.dim() < 2 or outputs.shape[1] <= highest:
            raise SettingsError(
                f"{type(net).__name__} makes outputs of shape {list(outputs.shape[1:])} of a row; "
                f"labels go up to {highest}, so that {type(method).__name__} needs {highest + 1}"
            )
    if method.unlabelled or not (rows.y < 0).any():
        return
    for r, part in enumerate(federation.partitions):
        for k in range(len(part)):
            if (rows.y[part.train.of(k).to(rows.y.device)] < 0).any():
                raise SettingsError(
                    f"device {k} of run {r} has rows with a label below 0, that is without one, "
                    f"which {type(method).__name__} reads"
                )


def _refuse_lonely_rows(phase: Phase) -> None:
    """Batch normalisation of one row has no variance."""
    for r, rows in enumerate(phase.rows["train"][1]):
        for k, n in enumerate(rows.size.tolist()):
            seen, batch = phase.training.seen(n), phase.training.batch_size
            if seen and seen % batch == 1 % batch:
                raise SettingsError(
                    f"device {k} of run {r} has {n} rows, so that with batch_size {batch} a batch "
                    "has one, which batch normalisation cannot take; choose another batch_size, "
                    "or limit batches"
                )


def _to(split: Split, place: torch.device) -> Split:
    groups = None if split.groups is None else split.groups.to(place)
    return Split(split.x.to(place), split.y.to(place), groups)
