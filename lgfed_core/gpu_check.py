"""Every experiment at its smallest scale on a GPU, beside the CPU: python -m lgfed_core gpu-check

A line for each part of each experiment, that is for each method with the networks, the optimiser
and the augmentation that it is used with. The CPU trains one device after the other (looped lanes),
the GPU those of two seeds at once (batched lanes). A line says

* how far apart their parameters end, as a share of the largest: rounding, which steps amplify;
* how long the GPU took, its warming up included, and the memory it had in use at the most;
* that no step of a round waited for the GPU: what does raises there and then.

Where steps draw numbers (dropout that no setting switches off, puzzles), a GPU draws others than a
CPU: then the ends must be finite, and no more is held. Last, a run is stopped on the GPU in the
middle, and goes on to the same bits. Speed is what `bench` is for.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import torch
from torch import Tensor

from .engine import CPU, Federation, loop
from .engine.batched import Batched, Engine
from .engine.provenance import provenance
from .engine.round_plan import Given
from .errors import LgfedError, NotAvailable, SettingsError
from .papers import experiment as base, experiments
from .papers.experiment import Experiment

SEEDS = [0, 1]
CLOSE = 1e-2  # of the largest parameter; a sign or a layer taken for another is far beyond it
MB = 2**20


@dataclass
class Line:
    """One part of an experiment on both."""

    experiment: str
    protocol: str
    part: str = ""
    apart: float = float("nan")
    noisy: bool = False  # numbers are drawn in its steps
    seconds: float = float("nan")
    peak_mb: float = float("nan")
    error: str = ""
    missing: str = ""  # data that cannot be had here

    @property
    def good(self) -> bool:
        within = math.inf if self.noisy else CLOSE
        return bool(self.missing) or (not self.error and self.apart < within)


def main() -> int:
    """Print the table, line by line, as the time may be up; 1 if anything is wrong, else 0."""
    if not torch.cuda.is_available():
        raise SettingsError("gpu-check: PyTorch sees no GPU here")
    place, lines = torch.device("cuda"), []
    for experiment in map(experiments.find, experiments.PLACES):
        for protocol in experiment.protocols:
            for line in compared(experiment, protocol, place):
                lines.append(line)
                print(_said(line), flush=True)
    resumed = goes_on(place)
    print(f"stopped in the middle, a run goes on {'to the same bits' if resumed else 'WRONGLY'}")
    bad = [line for line in lines if not line.good]
    left = sum(bool(line.missing) for line in lines)
    many = len(lines) - len(bad) - left
    print(f"{many} of {len(lines)} parts agree, {left} left out, {provenance(place)}")
    return int(bool(bad) or not resumed)


def compared(experiment: Experiment, protocol: str, place: torch.device) -> Iterator[Line]:
    """The parts of a smoke run on the CPU and on ``place``, in step."""
    line = Line(experiment.name, protocol)
    quiet = {f.name: 0.0 for f in fields(experiment.Settings) if f.name == "dropout"}
    try:
        cfg = experiment.settings("smoke", protocol, **quiet)
        lanes = "auto" if place.type == "cuda" else "batched"  # a CPU in the place of a GPU
        here = experiment.stages(cfg, SEEDS, CPU, resume=False, workers=1)
        there = experiment.stages(cfg, SEEDS, place, resume=False, lanes=lanes)
        while True:
            line = Line(experiment.name, protocol)
            with ends() as mine:
                line.part = next(here, ("", None))[0]
            if not line.part:
                return
            began = time.perf_counter()
            with ends() as theirs, watched(place, line):
                next(there)
            line.seconds = time.perf_counter() - began
            line.apart = apart(mine, theirs)
            yield line
    except NotAvailable as error:
        line.missing = str(error).splitlines()[0]
        yield line
    except (LgfedError, RuntimeError) as error:  # of ours, or of PyTorch's: one line each
        line.error = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        yield line


@contextmanager
def ends() -> Iterator[list[dict[str, Tensor]]]:
    """The tensors of each phase whose rounds run inside, as the last one leaves them."""
    real, found = loop.round_of, []

    def noted(federation: Federation, stopped: Tensor | None, engine: Engine, *more) -> bool:
        if not any(engine.phase.tensors is known for known in found):
            found.append(engine.phase.tensors)
        return real(federation, stopped, engine, *more)

    with patch.object(loop, "round_of", noted):
        yield found


def apart(a: list[dict[str, Tensor]], b: list[dict[str, Tensor]]) -> float:
    """The largest difference of parameters, as a share of the largest; infinite if one is none."""
    worst = 0.0
    for one, other in zip(a, b, strict=True):
        for name in ("shared", "personal"):
            mine, theirs = one[name].cpu(), other[name].cpu()
            if not torch.equal(mine.isfinite(), theirs.isfinite()):
                return float("inf")
            if mine.numel():
                gap = (mine - theirs).nan_to_num().abs().max() / mine.nan_to_num().abs().max()
                worst = max(worst, float(gap.nan_to_num()))
    return worst


@contextmanager
def watched(place: torch.device, line: Line) -> Iterator[None]:
    """Refuse steps that wait for the GPU; note noise and memory on ``line``."""
    play, gpu = Batched._play, place.type == "cuda"

    def waits(refused: bool) -> None:
        if gpu:
            torch.cuda.set_sync_debug_mode("error" if refused else "default")

    def alone(self: Batched, given: Given, *more) -> None:
        before = _noise(place)
        waits(True)
        try:
            play(self, given, *more)
        finally:
            waits(False)
        line.noisy |= not torch.equal(before, _noise(place))

    if gpu:
        torch.cuda.reset_peak_memory_stats(place)
    with patch.object(Batched, "_play", alone):
        yield
    if gpu:
        line.peak_mb = torch.cuda.max_memory_allocated(place) / MB


def _noise(place: torch.device) -> Tensor:
    """The state of the generator that lanes on ``place`` draw from."""
    return torch.cuda.get_rng_state(place) if place.type == "cuda" else torch.get_rng_state()


def goes_on(place: torch.device) -> bool:
    """Whether MNIST's smoke run, stopped in its fourth round, ends as one that was not."""
    mnist = experiments.find("lgfedavg.mnist")
    cfg, rounds, real = mnist.settings("smoke", starts=(800,), alone=()), [], loop.round_of

    def some(*told):
        rounds.append(told)
        if len(rounds) == 4:
            raise KeyboardInterrupt
        return real(*told)

    def last(resume: bool) -> list[Tensor]:
        with ends() as found:
            list(mnist.stages(cfg, SEEDS, place, resume=resume, lanes="batched"))
        return [found[-1][name] for name in ("shared", "personal")]

    with (
        TemporaryDirectory() as folder,
        patch.object(base, "RUNS", Path(folder)),
        patch.multiple(loop, SAVE_SECONDS=0.0, SAVE_SHARE=float("inf")),
    ):
        with patch.object(loop, "round_of", some), suppress(KeyboardInterrupt):
            last(True)
        whole, continued = last(False), last(True)
    return len(rounds) == 4 and all(map(torch.equal, whole, continued))


def _said(line: Line) -> str:
    name = " ".join(filter(None, [line.experiment, line.protocol, line.part]))
    if line.missing:
        return f"  left out {name}: {line.missing}"
    if line.error:
        return f"  WRONG {name}: {line.error}"
    ends = "other noise" if line.noisy else f"apart by {line.apart:.1e}"
    mark = "ok   " if line.good else "WRONG"
    memory = f", {line.peak_mb:.0f} MB" if not math.isnan(line.peak_mb) else ""
    return f"  {mark} {name}: {ends}, {line.seconds:.1f} s{memory}"
