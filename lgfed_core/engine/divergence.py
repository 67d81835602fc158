"""Runs that leave the finite numbers: named at once, and out of the loop from then on.

The first upload with a NaN or an infinite number ends its run: one average with it, and every
device would have it. So does one farther from what the device received than `Participation` allows
(`farthest`). The run's models stay as they were before that round, its numbers are NaN from that
round on, and the other runs never notice. Where `Participation` says `keep_out`, the device alone
is out of that round. Models that other devices see (`needs_peers`) are sent, too. Where nothing is
sent, a device's numbers are its own affair: `closing` says what became of them.
"""

import math
import warnings

import torch
from torch import Tensor

from lgfed_core.errors import SettingsError

from .batched import Engine
from .memory import to_device
from .phase import Job, Phase, places
from .trackers import Tracker


class Diverged:
    """``since``: the round, counted from one, in which each run that diverged did so."""

    def __init__(self, phase: Phase, tracker: Tracker, label: str, farthest: float):
        self.phase, self.tracker, self.label = phase, tracker, label or "run"
        self.farthest = farthest
        self.since: dict[int, int] = {}

    def stopped(self) -> Tensor | None:
        """Which devices no longer train: those that the tracker stops, all of a diverged run."""
        stopped = self.tracker.stopped(self.phase)
        if self.since:
            runs, devices = self.phase.tensors["personal"].shape[:2]
            stopped = torch.zeros(runs, devices, dtype=torch.bool) if stopped is None else stopped
            stopped[list(self.since)] = True
        return stopped

    def look(self, round: int, engine: Engine, before: Tensor) -> None:
        """After a round: end the runs that diverged in it; ``before`` [R, P_s] was shared."""
        t, jobs = self.phase.tensors, engine.trained
        if self.farthest == math.inf and _all_finite(self.phase, jobs):
            return
        lost: dict[int, str] = {}
        for slot, what in _sent(self.phase, jobs, before, self.farthest).items():
            run, client = jobs[slot]
            lost.setdefault(run, f"what client {client} sent is {what}")
        for run in set(_broken(t["shared"])) - self.since.keys():
            lost.setdefault(run, "the average of what clients sent is not finite")
        for run, what in lost.items():
            self.since[run] = round
            t["shared"][run] = before[run]
            for slot, (other, device) in enumerate(jobs):
                if other == run:
                    t["personal"][run, device] = engine.before[slot]
            warnings.warn(
                f"{self.label}: run {run} (seed {self.phase.seeds[run]}), round {round}: {what}; "
                "this run takes no further part and stays as it was before it. A "
                f"lower learning rate than {self.phase.training.lr} may help",
                RuntimeWarning,
                stacklevel=4,
            )

    def blank(self, metrics: dict[str, Tensor]) -> dict[str, list]:
        """``metrics`` [R] as lists; NaN for runs that diverged, which have no numbers any more."""
        if not isinstance(metrics, dict) or not all(map(torch.is_tensor, metrics.values())):
            raise SettingsError(
                f"a tracker gives {metrics!r:.80}; it has to give a dictionary of tensors [R], one "
                "number for each run"
            )
        for name, values in metrics.items():
            if values.shape != (len(self.phase.seeds),):
                raise SettingsError(
                    f"the tracker gives {list(values.shape)} {name} for {len(self.phase.seeds)} "
                    "runs; it has to be one number for each"
                )
            if name in ("round", "seed"):
                raise SettingsError(f"the tracker calls a number {name!r}; the history has that")
        lists = {name: values.tolist() for name, values in metrics.items()}
        for values in lists.values():
            for run in self.since:
                values[run] = float("nan")
        return lists

    def by_seed(self) -> dict[int, int]:
        """The first round in which a run of each seed diverged."""
        found: dict[int, int] = {}
        for run, round in sorted(self.since.items(), key=lambda one: one[1]):
            found.setdefault(self.phase.seeds[run], round)
        return found

    def closing(self) -> None:
        """Say which runs have left the finite numbers without sending any such."""
        t, seeds = self.phase.tensors, self.phase.seeds
        fine = t["shared"].isfinite().all(1) & t["personal"].isfinite().flatten(1).all(1)  # [R]
        lost = [seeds[r] for r, ok in enumerate(fine.tolist()) if not ok and r not in self.since]
        if lost:
            warnings.warn(
                f"{self.label}: parameters of seeds {lost} are no longer finite; a lower learning "
                f"rate than {self.phase.training.lr} may help",
                RuntimeWarning,
                stacklevel=4,
            )


def keep_out(engine: Engine, steps: dict[str, Tensor], number: int, farthest: float) -> set[int]:
    """Which slots sent what is not finite, or went too far, in round ``number`` (from 0); put back
    to before it. steps: of `Phase.steps`, before it."""
    phase, t = engine.phase, engine.phase.tensors
    out = _sent(phase, engine.trained, t["shared"], farthest)
    for slot, what in out.items():
        run, device = engine.trained[slot]
        t["uploads"][slot] = t["shared"][run]
        t["personal"][run, device] = engine.before[slot]
        for name, before in steps.items():
            t[name][run, device] = before[slot]
        warnings.warn(
            f"run {run} (seed {phase.seeds[run]}), round {number + 1}: what client {device} sent "
            f"is {what}; it is kept out of this round, and stays as it was before it",
            RuntimeWarning,
            stacklevel=5,
        )
    return set(out)


def wrong(uploads: Tensor, received: Tensor, farthest: float) -> dict[int, str]:
    """What is wrong with which of ``uploads`` [n, P], after ``received`` [n, P]; in words."""
    found = dict.fromkeys(_broken(uploads), "not finite")
    if farthest < math.inf:
        distances = (uploads.double() - received.double()).norm(dim=1)  # [n]
        for i, far in enumerate(distances.tolist()):
            if far > farthest:
                found.setdefault(i, f"{far:.3g} from what it received, farther than {farthest:g}")
    return found


def _sent(phase: Phase, jobs: list[Job], before: Tensor, farthest: float) -> dict[int, str]:
    """The slots whose upload is `wrong`, or of which a model that others see is not finite.

    before: [R, P_s], what the devices of each run received.
    """
    if not jobs:
        return {}
    received = before[to_device(places(jobs)[0], before.device)] if farthest < math.inf else before
    found = wrong(phase.tensors["uploads"][: len(jobs)], received, farthest)
    if phase.method.needs_peers:
        found |= dict.fromkeys(_broken(phase.of(jobs, "personal")), "not finite")
    return dict(sorted(found.items()))


def _all_finite(phase: Phase, jobs: list[Job]) -> bool:
    """Whether all that was sent, and its averages, are; a single question."""
    seen = [phase.tensors["uploads"][: len(jobs)], phase.tensors["shared"]]
    if phase.method.needs_peers:
        seen.append(phase.of(jobs, "personal"))
    return bool(torch.cat([vectors.sum(1) for vectors in seen]).isfinite().all())


def _broken(vectors: Tensor) -> list[int]:
    """Which of ``vectors`` [n, P] hold a NaN or an infinite number."""
    suspects = (~vectors.sum(1).isfinite()).nonzero()[:, 0]  # a sum may overflow, hence the rest
    return [i for i in suspects.tolist() if not vectors[i].isfinite().all()]
