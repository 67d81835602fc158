"""What a run leaves in its checkpoint, and what it finds there when it goes on."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from . import checkpoint
from .phase import Phase
from .trackers import Tracker


@dataclass
class Past:
    """What a run has behind it, over all sittings: the facts of its checkpoint."""

    provenance: dict[str, str]  # of the first sitting
    round: int = 0  # so many are done
    history: list[dict] = field(default_factory=list)  # a line per evaluated round and seed
    final: dict[str, list] = field(default_factory=dict)
    seconds: float = 0.0
    diverged: list[tuple[int, int]] = field(default_factory=list)  # (run, since which round)


@dataclass(frozen=True)
class Saved:
    """The checkpoint ``path`` of a run; None: it has none."""

    path: Path | None
    identity: str
    phase: Phase
    tracker: Tracker
    rounds: int

    def lasting(self, round: int) -> dict[str, Tensor]:
        """The tensors that are kept after so many rounds."""
        passing = ("uploads", "others")
        kept = {n: t for n, t in self.phase.tensors.items() if n not in passing}
        over = round == self.rounds
        return {n: t for n, t in kept.items() if not over or self.tracker.lasts(n)}

    def read(self) -> Past | None:
        """The past, with the phase's tensors as they were; None where nothing is saved.

        Raises CheckpointError for a file of another run, or one that does not fit itself.
        """
        found = checkpoint.load(self.path, self.identity, self._check) if self.path else None
        if not found:
            return None
        tensors, facts = found
        for name, tensor in tensors.items():
            self.phase.tensors[name].copy_(tensor)
        return Past(**{one.name: facts[one.name] for one in fields(Past)})

    def write(self, past: Past) -> None:
        """Save the tensors, and what is ``past``; nothing without a path."""
        if self.path is None:
            return
        over = past.round == self.rounds
        checkpoint.save(self.path, self.lasting(past.round), vars(past), self.identity, over)

    def _check(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        _check_facts(facts, self.rounds, self.phase.seeds)
        _check_tensors(tensors, self.lasting(facts["round"]))


def _check_facts(facts: dict, rounds: int, seeds: list[int]) -> None:
    """Raise ValueError unless what a checkpoint says of the past fits a run of ``rounds``."""
    done, lines = facts["round"], facts["history"]
    if type(done) is not int or not 0 < done <= rounds:
        raise ValueError(f"it was made after round {done} of {rounds}")
    at = [line["round"] for line in lines]
    times, odd = divmod(len(lines), len(seeds))
    if odd or at != sorted(at) or [line["seed"] for line in lines] != seeds * times:
        raise ValueError(f"its history is not that of seeds {seeds}, round by round")
    if at and not 0 < at[0] <= at[-1] <= done:
        raise ValueError(f"after round {done} it has a history of rounds {at[0]} to {at[-1]}")
    if any(len(values) != len(seeds) for values in facts["final"].values()):
        raise ValueError(f"its final numbers are not for {len(seeds)} runs")
    if facts["final"] and done < rounds:
        raise ValueError(f"it has final numbers after round {done} of {rounds}")
    if any(not (0 <= run < len(seeds) and 0 < t <= done) for run, t in facts["diverged"]):
        raise ValueError("it names runs as diverged that are none of this run's")
    if not facts["seconds"] >= 0 or not isinstance(facts["provenance"], dict):
        raise ValueError("it does not say where and for how long it ran")


def _check_tensors(tensors: dict[str, Tensor], due: dict[str, Tensor]) -> None:
    """Raise ValueError unless ``tensors`` have the names, types and shapes that are ``due``."""
    if missing := due.keys() - tensors.keys():
        raise ValueError(f"it has no tensor called {', '.join(sorted(missing))}")
    for name, found in tensors.items():
        if name not in due:
            raise ValueError(f"it has a tensor called {name}, which this run does not keep")
        if (found.dtype, found.shape) != (due[name].dtype, due[name].shape):
            raise ValueError(
                f"{name} is {found.dtype} {list(found.shape)}, not {due[name].dtype} "
                f"{list(due[name].shape)}"
            )
