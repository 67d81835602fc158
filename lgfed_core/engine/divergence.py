"""Runs that leave the finite numbers: named at once, and out of the loop from then on.

The first upload with a NaN or an infinite number ends its run: one average with it, and every
device would have it. Its models stay as they were before that round, its numbers are NaN from that
round on, and the other runs never notice. Where `Participation` says `keep_out`, the device alone
is out of that round. Models that other devices see (`needs_peers`) are sent, too. Where nothing is
sent, a device's numbers are its own affair: `closing` says what became of them.
"""

import warnings

import torch
from torch import Tensor

from .batched import Engine
from .looped import Job
from .trackers import Tracker
from .training import Phase


class Diverged:
    """``since``: the round, counted from one, in which each run that diverged did so."""

    def __init__(self, phase: Phase, tracker: Tracker, label: str):
        self.phase, self.tracker, self.label = phase, tracker, label or "run"
        self.since: dict[int, int] = {}

    def stopped(self, phase: Phase) -> Tensor | None:
        """Which devices no longer train: those that the tracker stops, all of a diverged run."""
        stopped = self.tracker.stopped(phase)
        if self.since:
            runs, devices = phase.tensors["personal"].shape[:2]
            stopped = torch.zeros(runs, devices, dtype=torch.bool) if stopped is None else stopped
            stopped[list(self.since)] = True
        return stopped

    def look(self, round: int, engine: Engine, before: Tensor) -> None:
        """After a round: end the runs that diverged in it; ``before`` [R, P_s] was shared."""
        t, jobs = self.phase.tensors, engine.trained
        lost: dict[int, str] = {}
        for slot in _sent_broken(self.phase, jobs):
            run, client = jobs[slot]
            lost.setdefault(run, f"what client {client} sent is")
        for run in set(_broken(t["shared"])) - self.since.keys():
            lost.setdefault(run, "the average of what clients sent is")
        for run, what in lost.items():
            self.since[run] = round
            t["shared"][run] = before[run]
            for slot, (other, device) in enumerate(jobs):
                if other == run:
                    t["personal"][run, device] = engine.before[slot]
            warnings.warn(
                f"{self.label}: run {run} (seed {self.phase.seeds[run]}), round {round}: {what} "
                "not finite; this run takes no further part and stays as it was before it. A "
                f"lower learning rate than {self.phase.training.lr} may help",
                RuntimeWarning,
                stacklevel=4,
            )

    def blank(self, metrics: dict[str, Tensor]) -> dict[str, list]:
        """``metrics`` [R] as lists; NaN for runs that diverged, which have no numbers any more."""
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


def keep_out(phase: Phase, engine: Engine, number: int) -> set[int]:
    """Which slots sent what is not finite in round ``number`` (from 0); put back to before it."""
    t, out = phase.tensors, _sent_broken(phase, engine.trained)
    for slot in out:
        run, device = engine.trained[slot]
        t["uploads"][slot] = t["shared"][run]
        t["personal"][run, device] = engine.before[slot]
        if "velocity" in t:
            t["velocity"][run, device] = 0
        warnings.warn(
            f"run {run} (seed {phase.seeds[run]}), round {number + 1}: what client {device} sent "
            "is not finite; it is kept out of this round, and stays as it was before it",
            RuntimeWarning,
            stacklevel=5,
        )
    return set(out)


def _sent_broken(phase: Phase, jobs: list[Job]) -> list[int]:
    """The slots of which an upload, or a model that others see, holds what is not finite."""
    found = _broken(phase.tensors["uploads"][: len(jobs)])
    if jobs and phase.method.needs_peers:
        runs, devices = zip(*jobs, strict=True)
        found += _broken(phase.tensors["personal"][list(runs), list(devices)])
    return sorted(set(found))


def _broken(vectors: Tensor) -> list[int]:
    """Which of ``vectors`` [n, P] hold a NaN or an infinite number."""
    suspects = (~vectors.sum(1).isfinite()).nonzero()[:, 0]  # a sum may overflow, hence the rest
    return [i for i in suspects.tolist() if not vectors[i].isfinite().all()]
