"""The loop: select devices, train them, merge what they send. One loop for every method.

    outcome = run(federation, method, training, rounds=800, start=start)

Several runs (seeds, settings) go through the loop together as lanes. A run killed at any instant
continues from its last checkpoint to the same bits on the same machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from tqdm.auto import tqdm

from lgfed_core import require
from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.models.layout import Layout, joined

from . import checkpoint, identity as named
from .batched import Batched, Engine
from .checks.layers import refuse_layers
from .divergence import Diverged
from .dual import first_layer
from .federation import Federation
from .looped import Looped
from .optimiser import LocalTraining
from .prepare import prepare
from .processes import checked_workers
from .provenance import provenance
from .resume import Past, Saved
from .rounds import round_of
from .trackers import Tracker

NUMBERS = 2  # raise when a change of the engine changes numbers: older checkpoints are refused
SAVE_SECONDS = 5.0  # no checkpoint sooner than this after the last,
SAVE_SHARE = 0.05  # and at most this share of the time for writing them


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: tensors by name, and one history line per evaluated round and seed.

    ``tensors`` has ``shared`` [R, P_s] and ``personal`` [R, K, P_p], unless the tracker lets go of
    them (`Personal`, ``light``), and what it kept. ``history`` has what the tracker's ``after``
    gave, ``final`` what its ``final`` gave: a line for every seed, also of those that diverged,
    which ``history`` may not have. ``seconds`` is the time spent, over all sittings; ``provenance``
    the device, PyTorch and commit of the first of them.
    ``diverged`` has the seeds of which a run sent what is not finite, or too far from what it
    received (`Participation`), or averages to what is not, each with the first round (from one) in
    which it did. Such a run ends there; its numbers are NaN from then on, and where it was the last
    one, the history ends.
    """

    layout: Layout
    tensors: dict[str, Tensor]
    history: pd.DataFrame
    final: pd.DataFrame
    seconds: float
    provenance: dict[str, str]
    diverged: dict[int, int] = field(default_factory=dict)


def run(
    federation: Federation,
    method: Method | Sequence[Method],
    training: LocalTraining,
    rounds: int,
    start: Tensor | None = None,
    *,
    tracker: Tracker | None = None,
    first_round: int = 0,
    lanes: str = "auto",
    workers: int | None = None,
    saved: Path | str | None = None,
    label: str = "",
) -> Outcome:
    """Run ``rounds`` rounds of ``method`` and return the `Outcome`.

    method: one for all runs, or one for each: of the same class, which share the same parameters
        and take steps on the same ones.
    training: how a device optimises.
    start: joined parameters [R, P] that every device of a run begins with, or [R, K, P] with a
        start for each (the shared ones alike); default: the net's own.
    tracker: what is measured on the way, e.g. `trackers.Global` (one model for all) or
        `trackers.Personal` (a model per device); without one nothing is, and ``history`` and
        ``final`` are empty.
    first_round: number of the first round, so that a later phase draws new devices and batches.
    lanes: "looped", "batched" or "auto" (looped on a CPU, batched elsewhere).
    workers: processes for looped lanes; default one a core (Linux), or ``LGFED_WORKERS``.
    saved: checkpoint file; an unfinished run continues from it, a finished one is only read.

    Raises SettingsError for impossible settings and CheckpointError for a file of another run.
    """
    if lanes not in ("auto", "looped", "batched"):
        raise SettingsError(f"lanes is {lanes!r}; choose auto, looped or batched")
    require.whole(rounds=rounds, first_round=first_round)
    rounds, first_round = int(rounds), int(first_round)
    for one in method if isinstance(method, Sequence) else [method]:
        require.instance("method", one, Method)
    require.instance("training", training, LocalTraining)
    looped = lanes == "looped" or (lanes == "auto" and federation.device.type == "cpu")
    if looped and federation.device.type != "cpu":
        raise SettingsError(f"looped lanes run on a CPU, not on {federation.device}; use batched")
    refuse_layers(federation.net, batched=not looped)
    lanes_in_all = len(federation.seeds) * federation.clients
    workers = checked_workers(workers, lanes_in_all) if looped else 1
    tracker = Tracker() if tracker is None else tracker
    require.instance("tracker", tracker, Tracker)
    saved = Path(saved) if saved else None
    if saved and saved.is_dir():
        raise SettingsError(f"saved is {saved}, a folder; name a file in it")
    if start is None:
        start = joined(federation.net).expand(len(federation.seeds), -1)
    start = torch.as_tensor(start).detach()
    phase = prepare(federation, method, training, start, tracker, workers > 1, padded=not looped)
    identity = ""
    if saved:
        identity = _identity(federation, phase, start, tracker, rounds, first_round, looped)
    kept = Saved(saved, identity, phase, tracker, rounds)

    with checkpoint.claimed(saved):
        engine = Looped(phase, workers) if looped else Batched(phase)
        try:
            with torch.enable_grad():  # whatever the caller does without
                return _loop(federation, engine, kept, first_round, label)
        finally:
            engine.close()


def _loop(
    federation: Federation, engine: Engine, saved: Saved, first_round: int, label: str
) -> Outcome:
    """Continue from the checkpoint, if there is one, to the last round; save now and then."""
    phase, tracker, rounds = saved.phase, saved.tracker, saved.rounds
    past = saved.read() or Past(provenance(federation.device))
    diverged = Diverged(phase, tracker, label, federation.participation.farthest)
    diverged.since = dict(past.diverged)
    began, saved_at, save_cost = time.perf_counter() - past.seconds, time.perf_counter(), 0.0
    if not past.round and rounds:
        tracker.before(engine)
    rest = range(past.round, rounds)
    with tqdm(rest, label, rounds, initial=past.round, disable=not label, leave=False) as bar:
        for index in bar:
            number, lr = first_round + index, phase.training.rate(index)
            before = phase.tensors["shared"].clone()
            busy = round_of(federation, diverged.stopped(), engine, number, lr)
            past.round = index + 1
            if busy:
                phase.rest(before)
                diverged.look(past.round, engine, before)
            metrics = tracker.after(past.round, rounds, engine) if busy else {}
            past.history += _lines(diverged.blank(metrics), past.round, federation.seeds)
            if last := past.round == rounds:
                past.final = diverged.blank(tracker.final(engine))
            now = time.perf_counter()
            past.seconds = now - began
            if saved.path and (last or now - saved_at > max(SAVE_SECONDS, save_cost / SAVE_SHARE)):
                past.diverged = list(diverged.since.items())
                saved.write(past)
                saved_at = time.perf_counter()
                save_cost = saved_at - now
    diverged.closing()
    final = pd.DataFrame(past.final, index=pd.Index(federation.seeds, name="seed"))
    history = pd.DataFrame(past.history, columns=None if past.history else ["round", "seed"])
    kept = saved.lasting(rounds)
    who = diverged.by_seed()
    return Outcome(phase.layout, kept, history, final, past.seconds, past.provenance, who)


def _lines(metrics: dict[str, list], number: int, seeds: Sequence[int]) -> list[dict]:
    return [
        {"round": number, "seed": seed} | {name: v[r] for name, v in metrics.items()}
        for r, seed in enumerate(seeds)
        if metrics
    ]


def _identity(federation, phase, start, tracker, rounds, first_round, looped) -> str:
    """What a checkpoint must agree on: settings, seeds, data, rows, starting point, network.

    The kind of lanes is among it, because networks with noise (dropout) draw it by kind; and the
    layer trained in dual form, whose rounding differs.
    """
    there = federation.participation.availability
    splits = (federation.data.train, federation.data.test)
    groups = [s.groups for s in splits if s.groups is not None]
    kinds = [k for p in federation.partitions for k in (p.train, p.validation, p.test) if k]
    dual = first_layer(phase) if looped else None
    return checkpoint.fingerprint(
        numbers=NUMBERS,
        net=named.network(federation.net),
        methods=[named.written(method, "the method") for method in phase.methods],
        training=named.written(phase.training, "the training"),
        tracker=named.written(tracker, "the tracker"),
        seeds=list(federation.seeds),
        rounds=[first_round, rounds],
        device=federation.device.type,
        data=[federation.data.name, checkpoint.digest(*(t for s in splits for t in (s.x, s.y)))],
        content=checkpoint.digest(start, *(t for k in kinds for t in (k.index, k.size))),
        participation=[
            federation.participation.fraction,
            None if there is None else there.tolist(),
        ],
        **({"groups": checkpoint.digest(*groups)} if groups else {}),
        **({"keep_out": "with its steps"} if federation.participation.keep_out else {}),
        **({"farthest": far} if (far := federation.participation.farthest) < math.inf else {}),
        **({"dual": dual} if dual else {}),
        **({} if looped else {"lanes": "batched"}),
    )
