"""Rows that do not go with the network, the method or the batches, and starts of another shape."""

import copy
import math
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch import Tensor, nn

from lgfed_core.data.augment import CropFlip
from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models.layout import Layout

from ..federation import Federation
from ..optimiser import LocalTraining
from ..phase import Phase, trainee
from . import methods as answers
from .embeddings import Beside, Lookups, refuse_embeddings
from .layers import has_batch_norm
from .losses import FAULTS

PADDED = 10_000  # rows of a batch that is mostly padding, at most


def data(
    federation: Federation, methods: Sequence[Method], training: LocalTraining, padded: bool
) -> None:
    """Rows that the network does not take, labels that are missing where they are read, and
    safeguards that would do nothing."""
    rows, method = federation.data.train, methods[0]
    net = copy.deepcopy(federation.net).to("cpu").eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), Lookups() as seen:
            outputs = net(rows.x[:1].to("cpu", copy=True))  # it may work in place
    except FAULTS as error:
        what = "row 0" if isinstance(error, Beside) else f"rows of shape {list(rows.x.shape[1:])}"
        raise SettingsError(f"{type(net).__name__} does not take {what}: {error}") from error
    refuse_embeddings(federation, net, seen, padded)
    if isinstance(outputs, Tensor) and outputs.shape[-1:] == (1,) and (rows.y > 1).any():
        raise SettingsError(
            f"{type(net).__name__} has one output, which tells labels 0 and 1 apart; those of the "
            f"rows go up to {int(rows.y.max())}"
        )
    if isinstance(outputs, Tensor) and outputs.dim() == 2 and _usual(method, net):
        there, classes = outputs.shape[1], federation.data.classes
        if there < classes:
            raise SettingsError(
                f"{type(net).__name__} has outputs for {there} classes, and {federation.data.name} "
                f"has {classes}: give it one for each, or make the Dataset with fewer classes"
            )
    if isinstance(training.augment, CropFlip) and rows.x.dim() != 4:
        raise SettingsError(
            f"rows have shape {list(rows.x.shape[1:])}; CropFlip is for pictures [channels, "
            "height, width]"
        )
    if isinstance(training.augment, CropFlip) and len(training.augment.fill) != rows.x.shape[1]:
        raise SettingsError(
            f"CropFlip has {len(training.augment.fill)} numbers in fill, for pictures with "
            f"{rows.x.shape[1]} channels; give one for each"
        )
    private = any(isinstance(one, Privacy) for m in methods for one in m.upload)
    if method.needs_peers and (private or federation.participation.farthest < math.inf):
        raise SettingsError(
            f"{type(method).__name__} shows devices each other's models as they are: Privacy of "
            "uploads, and a farthest distance, would protect nothing; leave them out"
        )
    if private and method.batch_norm == "averaged" and has_batch_norm(net):
        raise SettingsError(
            f"{type(method).__name__} averages batch normalisation's statistics, and Privacy blurs "
            'what is sent: a variance may fall below 0; choose batch_norm="local" or "frozen"'
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


def _usual(method: Method, net: nn.Module) -> bool:
    """Whether a step minimises the cross-entropy that is every method's default."""
    steps = answers.steps(method, net)
    return any(getattr(step.loss, "__func__", None) is Method.loss for step in steps)


def start(start: Tensor, layout: Layout, runs: int, devices: int) -> None:
    """A start of another shape than [R, P] or [R, K, P], or with numbers that are not finite."""
    size = layout.size_shared + layout.size_personal
    if start.shape not in ((runs, size), (runs, devices, size)):
        raise SettingsError(
            f"start has shape {tuple(start.shape)}; this network and {runs} runs need "
            f"{(runs, size)}, or {(runs, devices, size)} for a start of every device's own"
        )
    if start.isfinite().all():
        return
    named = layout.views(*layout.split(start))  # name -> [R, ...]
    broken = {n: v.isfinite().flatten(1).all(1) for n, v in named.items()}
    name, fine = next((n, each) for n, each in broken.items() if not each.all())
    raise SettingsError(
        f"start holds a NaN or an infinite number in {name} of run {fine.tolist().index(False)}; "
        "begin with finite numbers: where an earlier run has left these, lower its lr"
    )


def lonely_rows(phase: Phase) -> None:
    """Batch normalisation of one row has no variance, unless it has several places."""
    split, per_run = phase.rows["train"]
    with suppress(*FAULTS), torch.no_grad(), torch.random.fork_rng(devices=[]):
        trainee(phase).to("cpu")(split.x[:1].to("cpu", copy=True))
        return
    for r, rows in enumerate(per_run):
        for k, n in enumerate(rows.size.tolist()):
            seen, batch = phase.training.seen(n), phase.training.batch_size
            if seen and seen % batch == 1 % batch:
                raise SettingsError(
                    f"device {k} of run {r} has {n} row{'s' * (n > 1)}, so that with batch_size "
                    f"{batch} a batch has one, which batch normalisation cannot take; "
                    f"{_way_out(n, batch)}"
                )


def padded_rows(phase: Phase) -> None:
    """Batch normalisation would count what pads the last batch of lanes that train together."""
    for r, rows in enumerate(phase.rows["train"][1]):
        for k, n in enumerate(rows.size.tolist()):
            if phase.training.seen(n) % phase.training.batch_size:
                raise SettingsError(
                    f"device {k} of run {r} has {n} row{'s' * (n > 1)}: batched lanes pad its last "
                    "batch, and batch normalisation would count the padding; limit batches, choose "
                    'a batch_size that divides every device\'s rows, or lanes="looped"'
                )


def padding(phase: Phase) -> None:
    """Batches far larger than any device: lanes that train together are padded to whole ones."""
    batch = phase.training.batch_size
    rows = max(int(each.size.max()) for each in phase.rows["train"][1])
    if batch > max(rows, PADDED):
        raise SettingsError(
            f"batch_size is {batch:,}, and no device has more than {rows:,} rows: batched lanes "
            f'would pad each batch to it; choose at most {max(rows, PADDED):,}, or lanes="looped"'
        )


def _way_out(rows: int, batch: int) -> str:
    """What helps where a batch of a device's ``rows`` has one row."""
    if rows == 1:
        return 'give it more rows or none, leave it out, or choose batch_norm="frozen"'
    limit = f", or limit batches to {rows // batch}" if 1 < batch < rows else ""
    return f"choose another batch_size{limit}"


def refuse_lacking(phase: Phase, *names: str) -> None:
    """Raise SettingsError unless every device has rows of each kind in ``names``, with labels."""
    for name in names:
        if name not in phase.rows:
            raise SettingsError(
                f"no {name!r} rows to judge by; there are {', '.join(phase.rows)}. For validation "
                "rows make the partition with partition.with_validation"
            )
        for run, rows in enumerate(phase.rows[name][1]):
            if (rows.size == 0).any():
                device = int((rows.size == 0).nonzero()[0])
                raise SettingsError(f"device {device} of run {run} has no {name} rows to judge by")
            y = phase.rows[name][0].y
            if (y[rows.all.to(y.device)] < 0).any():
                raise SettingsError(
                    f"{name} rows of run {run} have labels below 0, that is none, and would all "
                    "count as wrong; leave them out of the partition's"
                )
