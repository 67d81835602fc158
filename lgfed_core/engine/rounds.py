"""One round: who takes part, what they send, what the server makes of it."""

import math
from collections.abc import Callable, Collection
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Arrived, Method, Trained
from lgfed_core.methods.privacy import Treatment
from lgfed_core.seeds import Purpose, stream

from .batched import Engine
from .divergence import keep_out
from .federation import Federation
from .memory import to_device
from .optimiser import LocalTraining
from .phase import Job, Phase

SUM = 1e-3  # how far the sum of weights may be from one, in roundings


def round_of(
    federation: Federation, stopped: Tensor | None, engine: Engine, number: int, lr: float
) -> bool:
    """One round: select, train, merge. False when every device has ``stopped`` (bool [R, K])."""
    phase, jobs = engine.phase, _jobs(federation, stopped, number)
    if jobs:
        if phase.method.needs_peers:
            _show_others(phase, jobs)
        if phase.method.relabel:
            _relabel(engine, number)
        who = federation.participation
        steps = phase.steps(jobs) if who.keep_out else {}
        engine.train(jobs, number, lr)
        out: set[int] = set()
        if phase.method.finish:
            out |= keep_out(engine, steps, number, math.inf) if who.keep_out else out
            finish(engine, lr, out)
        treat(phase, jobs, number)
        out |= keep_out(engine, steps, number, who.farthest) if who.keep_out else out
        merge(phase, jobs, lr, out)
        engine.ahead(partial(_jobs, federation, stopped, number + 1), number + 1)
    return bool(jobs)


def _jobs(federation: Federation, stopped: Tensor | None, number: int) -> list[Job]:
    """The (run, device) pairs of this round; those of a run lie together."""
    jobs, drawn = [], {}  # runs alike in seed and availability are alike in who takes part
    there = federation.participation.availability
    for r, seed in enumerate(federation.seeds):
        alike = seed, None if there is None else there[r].cpu().numpy().tobytes()
        if alike not in drawn:
            rng = stream(seed, Purpose.SELECT, number)
            drawn[alike] = federation.participation.chosen(rng, federation.clients, r).tolist()
        jobs += [(r, k) for k in drawn[alike] if stopped is None or not stopped[r, k]]
    return jobs


def _show_others(phase: Phase, jobs: list[Job]) -> None:
    """For each job, the mean of the other participants' models before anybody trains.

    Of those with rows, as others have learnt nothing; where there is no other, the device's own.
    """
    t, (_, rows) = phase.tensors, phase.rows["train"]
    for r in range(len(phase.seeds)):
        mine = [job for job in jobs if job[0] == r]
        at = jobs.index(mine[0]) if mine else 0  # they lie side by side
        shared = t["shared"][r].expand(len(mine), -1)
        models = torch.cat([shared, phase.of(mine, "personal")], 1)  # [m, P]
        learning = (rows[r].size[[k for _, k in mine]] > 0).to(models.dtype)[:, None]  # [m, 1]
        learning = to_device(learning, models.device)
        counted = models * learning
        many = learning.sum() - learning  # others
        mean = (counted.sum(0) - counted) / many.clamp(min=1)
        t["others"][at : at + len(mine)] = torch.where(many > 0, mean, models)


def _relabel(engine: Engine, number: int) -> None:
    """Every device's own labels of rows that the data have none for, where the methods say so."""
    phase = engine.phase
    how = [method.relabel and method.relabel(number) for method in phase.methods]
    if not any(how):
        return
    (split, rows), labels = phase.rows["train"], phase.tensors["labels"]
    said = engine.own_outputs("shared", "personal", "train", with_features=True)  # [R, K, n, .]
    for r, label in enumerate(how):
        for k in range(len(rows[r])):
            mine = rows[r].of(k).to(labels.device)
            bare = split.y[mine] < 0
            if label and bare.any():
                labels[r, mine[bare]] = label(said[r, k, : len(mine)])[bare].to(labels)


def finish(engine: Engine, lr: float, out: Collection[int]) -> None:
    """What devices with rows send and keep, by `Method.finish`, but for slots that are ``out``.

    What is frozen stays.
    """
    phase, jobs, (_, rows) = engine.phase, engine.trained, engine.phase.rows["train"]
    shared, personal, uploads = (phase.tensors[n] for n in ("shared", "personal", "uploads"))
    for r, method in enumerate(phase.methods):
        mine, devices = _learnt(phase, jobs, r, out)
        if not mine or method.finish is None:
            continue
        slots, who = (to_device(torch.tensor(some), uploads.device) for some in (mine, devices))
        size = rows[r].size[devices].cpu()
        trained = Trained(
            received=shared[r].clone(),
            shared=uploads[slots],
            before=engine.before[slots],
            own=personal[r, who],
            **participants(method, phase.training, size, len(rows[r]), lr, uploads),
        )
        found = method.finish(trained)
        sends, keeps = _two(
            found, method, "finish", "what devices send and what they keep of their own"
        )
        uploads[slots] = _like(uploads[slots], sends, method, "finish")
        personal[r, who] = _like(personal[r, who], keeps, method, "finish", "devices' own")
        phase.rest_own(r, who, engine.before[slots])


def _learnt(
    phase: Phase, jobs: list[Job], r: int, out: Collection[int]
) -> tuple[list[int], list[int]]:
    """The slots and the devices of run ``r`` that have rows, but for slots that are ``out``."""
    slots = [slot for slot, (run, _) in enumerate(jobs) if run == r and slot not in out]
    held = phase.rows["train"][1][r].size[[jobs[slot][1] for slot in slots]].tolist()
    slots = [slot for slot, size in zip(slots, held, strict=True) if size]  # others learnt nothing
    return slots, [jobs[slot][1] for slot in slots]


def participants(
    method: Method, training: LocalTraining, rows: Tensor, devices: int, lr: float, like: Tensor
) -> dict:
    """The fields of `Participants` with so many ``rows`` [m] at a learning rate of ``lr``; tensors
    are like ``like``."""
    weights = weights_of(method, rows)
    return dict(
        weights=weights if weights is None else to_device(weights, like.device),
        devices=devices,
        _reach=partial(_reach, training, rows, lr, like),
    )


def _reach(training: LocalTraining, rows: Tensor, lr: float, like: Tensor) -> Tensor:
    """`Participants.reach` of devices with so many ``rows`` [m], as a tensor like ``like``."""
    if training.adam or training.keep_momentum or training.annealing:
        raise SettingsError(
            "how far devices go per gradient is unknown with Adam, a momentum that is kept, or "
            "annealing; train by SGD without these"
        )
    batches = torch.tensor([training.batches_of(int(n)) for n in rows], dtype=torch.float64)
    beta = training.momentum
    far = (batches - beta * (1 - beta**batches) / (1 - beta)) / (1 - beta)  # sum of v_t, v_0 = 0
    far = batches + beta * far if training.nesterov else far
    return to_device(lr * far, like.device).to(like.dtype)


def treat(
    phase: Phase,
    jobs: list[Job],
    number: int,
    secret: Callable[[], np.random.Generator] | None = None,
) -> None:
    """Do to each upload what the method has listed (to clip it, say, and to blur it).

    secret: makes random numbers that nobody else can; without it they follow from the run's seed,
    which is enough where everybody is simulated.
    """
    t = phase.tensors
    for slot, (run, device) in enumerate(jobs):
        if phase.methods[run].upload:
            rng = secret() if secret else stream(phase.seeds[run], Purpose.PRIVACY, number, device)
            for treatment in phase.methods[run].upload:
                before, upload = t["shared"][run], t["uploads"][slot]
                given = treatment.treat(before, upload, rng)
                t["uploads"][slot] = _like(upload, given, treatment, "treat")


def merge(phase: Phase, jobs: list[Job], lr: float, out: Collection[int] = ()) -> None:
    """Move each run's server by what came of devices with rows, but for slots that are ``out``."""
    _, rows = phase.rows["train"]
    shared, uploads = (phase.tensors[n] for n in ("shared", "uploads"))
    memory = phase.tensors.get("memory")  # [R, M, P_s]
    for r, method in enumerate(phase.methods):
        slots, devices = _learnt(phase, jobs, r, out)
        if not slots:
            continue
        size = rows[r].size[devices].cpu()
        who = participants(method, phase.training, size, len(rows[r]), lr, uploads)
        if shared.shape[1]:
            side_by_side = slots[-1] - slots[0] == len(slots) - 1
            between = slice(slots[0], slots[-1] + 1)
            some = between if side_by_side else to_device(torch.tensor(slots), uploads.device)
            kept = memory[r] if memory is not None else shared.new_empty(0, shared.shape[1])
            now = Arrived(before=shared[r], uploads=uploads[some], memory=kept.clone(), **who)
            shared[r], after = moved(method, now)
            kept.copy_(after)


def moved(method: Method, now: Arrived) -> tuple[Tensor, Tensor]:
    """The server's vector [P_s] and memory [M, P_s] after a round."""
    shared, memory = now.before, now.memory
    if method.merge:
        found, name = method.merge(now), "merge"
    else:
        average = method.aggregate(now.uploads, now.weights)
        average = _like(shared, average, method, "aggregate")
        if not method.server_memory:
            after = method.server_update(shared, average)
            return _like(shared, after, method, "server_update"), memory
        found, name = method.server_step(shared, average, memory), "server_step"
    after, kept = _two(found, method, name, "the shared parameters and the memory")
    return _like(shared, after, method, name), _like(
        memory, kept, method, name, "the memory of the shared"
    )


def weights_of(method: Method, rows: Tensor) -> Tensor | None:
    """What a method's `weights` gives. Raises SettingsError unless they are [m] and sum to one."""
    found = method.weights(rows)
    if found is None:
        return None
    fits = isinstance(found, Tensor) and found.shape == rows.shape
    if fits and abs(float(found.double().sum()) - 1) < SUM:  # NaN is not
        return found
    said = found.tolist() if isinstance(found, Tensor) else found
    raise SettingsError(
        f"{type(method).__name__}.weights gives {said!r:.200} for {len(rows)} uploads; it has to "
        "give a tensor with a weight for each, and they have to sum to 1, or None"
    )


def _two(given: object, who: Method, name: str, what: str) -> tuple[object, object]:
    """What an answer has given, both of it. Raises SettingsError for anything but a pair."""
    if isinstance(given, tuple) and len(given) == 2:
        return given
    raise SettingsError(
        f"{type(who).__name__}.{name} gives a {type(given).__name__}; it has to give two tensors, "
        f"{what}"
    )


def _like(
    wanted: Tensor, given: object, who: Method | Treatment, name: str, what: str = "the shared"
) -> Tensor:
    """What an answer has given. Raises SettingsError for anything but a tensor like ``wanted``."""
    said = type(given).__name__
    if isinstance(given, Tensor):
        if given.shape == wanted.shape and given.is_floating_point():
            return given
        said = f"shape {list(given.shape)}, {given.dtype}"
    raise SettingsError(
        f"{type(who).__name__}.{name} gives {said}; it has to give {what} parameters, a tensor of "
        f"shape {list(wanted.shape)}, {wanted.dtype}"
    )
