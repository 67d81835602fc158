"""The loop: select devices, train them, merge what they send. One loop for every method.

    outcome = run(federation, method, training, rounds=800, start=start)

Several runs (seeds, settings) go through the loop together as lanes. A run killed at any instant
continues from its last checkpoint to the same bits on the same machine.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path

import pandas as pd
from torch import Tensor
from tqdm.auto import tqdm

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.models.layout import Layout, joined

from . import checkpoint
from .batched import Batched
from .federation import Federation as Federation, prepare, round_of
from .looped import Looped
from .processes import checked_workers
from .provenance import provenance
from .trackers import Tracker
from .training import Training

NUMBERS = 1  # raise when a change of the engine changes numbers: older checkpoints are refused
SAVE_SECONDS = 5.0  # no checkpoint sooner than this after the last,
SAVE_SHARE = 0.05  # and at most this share of the time for writing them


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: tensors by name, and one history line per evaluated round and seed.

    ``tensors`` has ``shared`` [R, P_s], ``personal`` [R, K, P_p] and what the tracker kept.
    ``final`` has the tracker's closing metrics, one line per seed. ``seconds`` is the time spent,
    over all sittings; ``provenance`` the device, PyTorch and commit of the first of them.
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
    training: Training,
    rounds: int,
    start: Tensor | None = None,
    *,
    tracker: Tracker | None = None,
    first_round: int = 0,
    lanes: str = "auto",
    workers: int | None = None,
    saved: Path | None = None,
    label: str = "",
) -> Outcome:
    """Run ``rounds`` rounds of ``method`` and return the `Outcome`.

    method: one for all runs, or one for each: of the same class, which share the same parameters
        and take steps on the same ones.
    start: joined parameters [R, P] that every device of a run begins with, or [R, K, P] with a
        start for each (the shared ones alike); default: the net's own.
    first_round: number of the first round, so that a later phase draws new devices and batches.
    lanes: "looped", "batched" or "auto" (looped on a CPU, batched elsewhere).
    workers: processes for looped lanes; default one a core (Linux), or ``LGFED_WORKERS``.
    saved: checkpoint file; an unfinished run continues from it, a finished one is only read.

    Raises SettingsError for impossible settings and CheckpointError for a file of another run.
    """
    if lanes not in ("auto", "looped", "batched"):
        raise SettingsError(f"lanes is {lanes!r}; choose auto, looped or batched")
    if rounds < 0:
        raise SettingsError(f"rounds is {rounds}; it cannot be negative")
    looped = lanes == "looped" or (lanes == "auto" and federation.device.type == "cpu")
    if looped and federation.device.type != "cpu":
        raise SettingsError(f"looped lanes run on a CPU, not on {federation.device}; use batched")
    workers = checked_workers(workers) if looped else 1
    tracker = tracker or Tracker()
    if start is None:
        start = joined(federation.net).expand(len(federation.seeds), -1)
    work = prepare(federation, method, training, start, tracker, workers > 1)
    identity = ""
    if saved:
        identity = _identity(federation, work, start, tracker, rounds, first_round, looped)

    with checkpoint.claimed(saved):
        engine = Looped(work, workers) if looped else Batched(work)
        try:
            return _loop(federation, engine, tracker, rounds, first_round, saved, identity, label)
        finally:
            engine.close()


def _loop(federation, engine, tracker, rounds, first_round, saved, identity, label) -> Outcome:
    """Continue from the checkpoint, if there is one, to the last round; save now and then."""
    work = engine.work
    done, lines, final, spent = 0, [], {}, 0.0
    where = provenance(federation.device)
    stored = checkpoint.load(saved, identity) if saved else None
    if stored:
        tensors, facts = stored
        for name, tensor in tensors.items():
            work.tensors[name].copy_(tensor)
        done, lines, final, spent, where = (
            facts[k] for k in ("round", "history", "final", "seconds", "provenance")
        )
        del tensors, stored

    keep = {n: t for n, t in work.tensors.items() if n not in ("uploads", "others")}
    began, saved_at, save_cost = time.perf_counter() - spent, time.perf_counter(), 0.0
    if not done and rounds:
        tracker.before(engine)
    with tqdm(
        range(done, rounds), label, rounds, initial=done, disable=not label, leave=False
    ) as bar:
        for index in bar:
            number, lr = first_round + index, work.training.rate(index)
            busy = round_of(federation, tracker, work, engine, number, lr)
            metrics = tracker.after(index + 1, rounds, engine) if busy else {}
            lines += _lines(metrics, index + 1, federation.seeds)
            last = index + 1 == rounds
            if last:
                final = {name: v.tolist() for name, v in tracker.final(engine).items()}
            now = time.perf_counter()
            spent = now - began
            if saved and (last or now - saved_at > max(SAVE_SECONDS, save_cost / SAVE_SHARE)):
                facts = {
                    "round": index + 1,
                    "history": lines,
                    "final": final,
                    "seconds": spent,
                    "provenance": where,
                }
                lasting = {n: t for n, t in keep.items() if not last or tracker.lasts(n)}
                checkpoint.save(saved, lasting, facts, identity)
                saved_at = time.perf_counter()
                save_cost = saved_at - now
    _warn_of_divergence(work, federation.seeds, label)
    keep = {n: t for n, t in keep.items() if tracker.lasts(n)}
    final = pd.DataFrame(final, index=pd.Index(federation.seeds, name="seed"))
    return Outcome(work.layout, keep, pd.DataFrame(lines), final, spent, where)


def _warn_of_divergence(work, seeds: Sequence[int], label: str) -> None:
    """Say which runs have left the finite numbers: their results are those of a broken model."""
    t = work.tensors
    fine = t["shared"].isfinite().all(1) & t["personal"].isfinite().flatten(1).all(1)  # [R]
    lost = [seed for seed, ok in zip(seeds, fine.tolist(), strict=True) if not ok]
    if lost:
        warnings.warn(
            f"{label or 'run'}: parameters of seeds {lost} are no longer finite; a lower learning "
            f"rate than {work.training.lr} may help",
            RuntimeWarning,
            stacklevel=3,
        )


def _lines(metrics: dict[str, Tensor], number: int, seeds: Sequence[int]) -> list[dict]:
    columns = {name: values.tolist() for name, values in metrics.items()}
    return [
        {"round": number, "seed": seed} | {name: v[r] for name, v in columns.items()}
        for r, seed in enumerate(seeds)
        if columns
    ]


def _identity(federation, work, start, tracker, rounds, first_round, looped) -> str:
    """What a checkpoint must agree on: settings, seeds, data, rows, starting point, network.

    The kind of lanes is among it, because networks with noise (dropout) draw it by kind.
    """
    there = federation.participation.availability
    simple = {k: v for k, v in vars(federation.net).items() if isinstance(v, bool | int | float)}
    splits = (federation.data.train, federation.data.test)
    groups = [s.groups for s in splits if s.groups is not None]
    kinds = [k for p in federation.partitions for k in (p.train, p.validation, p.test) if k]
    return checkpoint.fingerprint(
        numbers=NUMBERS,
        net=[str(federation.net), simple],
        methods=[_simple(method) for method in work.methods],
        training={k: v for k, v in asdict(work.training).items() if v is not None},
        tracker=[type(tracker).__name__, vars(tracker)],
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
        **({} if looped else {"lanes": "batched"}),
    )


def _simple(value):
    """A setting as JSON can say it."""
    if is_dataclass(value):
        return [type(value).__name__, {k: _simple(v) for k, v in vars(value).items()}]
    if isinstance(value, list | tuple):
        return [_simple(v) for v in value]
    return sorted(value) if isinstance(value, frozenset) else value
