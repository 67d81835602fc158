"""One round: who holds what, which devices are chosen, what they send, how it is merged."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lgfed_core.data import Dataset, Split
from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.models.layout import Layout
from lgfed_core.partition.label_skew import Partition, Rows
from lgfed_core.seeds import Purpose, stream

from .batched import Batched
from .looped import Looped
from .processes import common
from .trackers import Tracker
from .training import Training, Work, normalises, trainee

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Federation:
    """Who has what: a data set, one partition and one seed per run, and the network's shape.

    presence: [R, K], how probable it is that a device takes part, for each run; None: all alike.
    """

    data: Dataset
    partitions: Sequence[Partition]
    net: nn.Module
    seeds: Sequence[int]
    device: torch.device = CPU
    presence: Tensor | None = None

    def __post_init__(self):
        if len(self.partitions) != len(self.seeds) or not self.seeds:
            raise SettingsError(
                f"{len(self.partitions)} partitions for {len(self.seeds)} seeds; give one each"
            )
        if min(self.seeds) < 0:
            raise SettingsError(f"seeds are {list(self.seeds)}; none can be negative")
        if len({len(p.train.size) for p in self.partitions}) > 1:
            raise SettingsError("runs that train together need the same number of devices")
        kinds = {p.dtype for p in self.net.parameters()}
        for name, rows in (("training", self.data.train), ("test", self.data.test)):
            if kinds and rows.x.dtype not in kinds:
                raise SettingsError(
                    f"{name} rows are {rows.x.dtype}, the network's parameters "
                    f"{', '.join(map(str, kinds))}; convert the rows, as with x.float()"
                )
            rows.refuse_broken(f"{self.data.name}, {name} rows")
        for name, module in self.net.named_modules():
            known = isinstance(module, _BatchNorm) and module.momentum is not None
            if not known and any(True for _ in module.buffers(recurse=False)):
                raise SettingsError(
                    f"{type(self.net).__name__}: {name or 'it'} keeps buffers that would leak "
                    "between devices; only batch normalisation with a momentum may have some"
                )
        if self.presence is not None:
            shape, sums = (len(self.seeds), self.devices), self.presence.double().sum(-1)
            one = torch.allclose(sums, torch.ones_like(sums))
            if self.presence.shape != shape or not one or (self.presence < 0).any():
                raise SettingsError(
                    f"presence has shape {tuple(self.presence.shape)} and rows that sum to "
                    f"{sums.tolist()}; it must have {shape}, nothing negative, and each run's must "
                    "sum to 1"
                )

    @property
    def devices(self) -> int:
        """K, the number of devices."""
        return len(self.partitions[0].train.size)

    def rows(self) -> dict[str, tuple[Split, list[Rows]]]:
        """Named sets of rows: train, validation, test per device; pool = the whole test set."""
        place = self.device
        train, test = _to(self.data.train, place), _to(self.data.test, place)
        pool = Rows.from_lists(torch.arange(len(test.y)).tensor_split(self.devices))
        rows = {
            "train": (train, [p.train for p in self.partitions]),
            "test": (test, [p.test for p in self.partitions]),
            "pool": (test, [pool] * len(self.seeds)),
        }
        if all(p.validation is not None for p in self.partitions):
            rows["validation"] = (train, [p.validation for p in self.partitions])
        return rows


def prepare(
    federation: Federation,
    method: Method,
    training: Training,
    start: Tensor,
    tracker: Tracker,
    forked: bool,
) -> Work:
    """Allocate every tensor of a phase; in memory that workers share if ``forked``."""
    layout = Layout(federation.net, method.shared(federation.net))
    runs, devices, place = len(federation.seeds), federation.devices, federation.device
    size = layout.size_shared + layout.size_personal
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
        tensors[name] = common(*shape) if forked else torch.zeros(*shape, device=place)
        return tensors[name]

    allocate("shared", *shared.shape).copy_(shared)
    allocate("personal", runs, devices, layout.size_personal).copy_(personal)
    allocate("uploads", runs * method.cohort(devices), layout.size_shared)
    if method.compares:
        allocate("others", runs * method.cohort(devices), size)
    if training.keep_momentum:
        allocate("velocity", runs, devices, size)
    if training.annealing:
        allocate("taken", runs, devices)  # steps of each device so far
    net = copy.deepcopy(federation.net).eval()  # for testing; training has its own copies
    work = Work(net, layout, method, training, list(federation.seeds), federation.rows(), tensors)
    if normalises(trainee(work)):
        _refuse_lonely_rows(work)
    tracker.allocate(allocate, work)
    return work


def _refuse_lonely_rows(work: Work) -> None:
    """Batch normalisation of one row has no variance."""
    for r, rows in enumerate(work.rows["train"][1]):
        for k, n in enumerate(rows.size.tolist()):
            if work.training.seen(n) % work.training.batch_size == 1:
                raise SettingsError(
                    f"device {k} of run {r} has {n} rows, so that a batch of "
                    f"{work.training.batch_size} is left with one, which batch normalisation "
                    "cannot take; choose another batch_size, or limit batches"
                )


def round_of(
    federation: Federation,
    method: Method,
    tracker: Tracker,
    work: Work,
    engine: Looped | Batched,
    number: int,
    lr: float,
) -> bool:
    """One round: select, train, merge. False when every device has stopped."""
    jobs = _jobs(federation, method, tracker, work, number)
    if jobs:
        if method.compares:
            _show_others(work, jobs)
        before = work.tensors["personal"].clone() if method.keeps_part else None
        engine.train(jobs, number, lr)
        if method.privacy:
            _veil(method, work, jobs, number)
        _merge(method, work, jobs)
        if method.keeps_part:
            _keep(method, work, jobs, before)
    return bool(jobs)


def _jobs(federation, method, tracker, work, number) -> list[tuple[int, int]]:
    """The (run, device) pairs of this round."""
    stopped = tracker.stopped(work)
    jobs = []
    for r, seed in enumerate(federation.seeds):
        rng = stream(seed, Purpose.SELECT, number)
        presence = None if federation.presence is None else federation.presence[r].cpu().numpy()
        chosen = method.participants(rng, federation.devices, presence).tolist()
        jobs += [(r, k) for k in chosen if stopped is None or not stopped[r, k]]
    return jobs


def _show_others(work, jobs) -> None:
    """For each job, the mean of the other participants' models before anybody trains."""
    t = work.tensors
    for r in range(len(work.seeds)):
        slots = [slot for slot, (run, _) in enumerate(jobs) if run == r]
        shared = t["shared"][r].expand(len(slots), -1)
        models = torch.cat([shared, t["personal"][r, [jobs[slot][1] for slot in slots]]], 1)
        t["others"][slots] = (models.sum(0) - models) / max(1, len(slots) - 1)  # [m, P]


def _veil(method, work, jobs, number: int) -> None:
    """Clip and blur what each device sends."""
    t = work.tensors
    for slot, (run, device) in enumerate(jobs):
        rng = stream(work.seeds[run], Purpose.PRIVACY, number, device)
        t["uploads"][slot] = method.privacy.veil(t["shared"][run], t["uploads"][slot], rng)


def _merge(method, work, jobs) -> None:
    """Replace each run's shared vector by the merge of what its devices sent."""
    if work.layout.size_shared == 0:
        return
    _, rows = work.rows["train"]
    t = work.tensors
    for r in range(len(work.seeds)):
        slots = [slot for slot, (run, _) in enumerate(jobs) if run == r]
        if slots:
            sizes = rows[r].size[[jobs[slot][1] for slot in slots]]
            uploads = t["uploads"][slots[0] : slots[-1] + 1]  # the jobs of a run lie together
            t["shared"][r] = method.merge(t["shared"][r], uploads, sizes.to(uploads.device))


def _keep(method, work, jobs, before: Tensor) -> None:
    """What each device keeps of its own parameters, which were ``before`` [R, K, P_p]."""
    _, rows = work.rows["train"]
    personal = work.tensors["personal"]
    for r in range(len(work.seeds)):
        who = [device for run, device in jobs if run == r]
        if who:
            sizes = rows[r].size[who].to(personal.device)
            personal[r, who] = method.keep(before[r, who], personal[r, who], sizes)


def _to(split: Split, place: torch.device) -> Split:
    groups = None if split.groups is None else split.groups.to(place)
    return Split(split.x.to(place), split.y.to(place), groups)
