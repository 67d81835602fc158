"""What is worth running next: verdicts expected per hour, comparison by comparison.

A *bundle* brings all pieces of one goal to one step of seeds, or those of all goals that share the
runs they go on from. Its gain is the sum over all goals of their worth times the chance of a
verdict there; its price is the time of the runs that are missing, with those they go on from,
without the rounds that checkpoints have. The best ratio goes first. Nothing here looks at a verdict
between two steps, and a step that was begun is finished.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from lgfed_core.evidence.seed_steps import STEPS, missing
from lgfed_core.papers import commands, experiments
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Piece

from . import ledger as past
from .goals import Goal
from .ledger import Ledger

CLAIM = 5.0  # a claim is worth so many cells
FIRST = 0.25  # the first seed of a cell of which nothing is known, in verdicts
Job = tuple[Piece, int]  # and the seed
Group = tuple[tuple[Piece, ...], int, frozenset[Piece]]  # run together, their seed, their starts
Goals = tuple[frozenset[Piece], int]  # the pieces of a goal and the step they are brought to


@dataclass(frozen=True)
class Task:
    """One run: an experiment, its settings, seeds, the pieces it makes, and how long it takes.

    kept: parts that run only as these go on from them, and have rows, which are to stay: others
    descend from the same runs as they do.
    """

    experiment: Experiment
    protocol: str
    changes: dict[str, Any]
    seeds: tuple[int, ...]
    pieces: tuple[Piece, ...]
    seconds: float
    kept: tuple[str, ...] = ()

    @property
    def settings(self) -> Any:
        return self.experiment.settings("paper", self.protocol, **self.changes)

    def __str__(self) -> str:
        return commands.run(self.experiment.name, self.protocol, self.changes.items(), self.seeds)


@dataclass(frozen=True)
class Bundle:
    """Tasks that belong together, what they serve (claims first), what is to be gained.

    decided: how many verdicts are to be expected.
    """

    tasks: tuple[Task, ...]
    why: tuple[str, ...]
    step: int
    decided: float

    @property
    def seconds(self) -> float:
        return sum(task.seconds for task in self.tasks)


class Planner:
    """What to do next with goals, rows and prices as they stand; lanes: seeds run together."""

    def __init__(self, goals: Iterable[Goal], ledger: Ledger, lanes: bool = False):
        self.goals, self.ledger, self.lanes = list(goals), ledger, lanes
        self._at, self._price = cache(past.folder), cache(self._seconds)
        self._share = cache(lambda piece, seed: past.left(piece, seed, self._starts((piece,))))
        self._order = {piece: number for number, piece in enumerate(ledger.pieces)}
        self._alike = {(self._at(piece, 0), piece.name): piece for piece in ledger.pieces}
        self._helped: dict[Piece, dict[str, Goal]] = {piece: {} for piece in ledger.pieces}
        for goal in self.goals:
            for piece in goal.pieces if goal.chances else ():
                self._helped[piece][goal.name] = goal

    def bundles(self) -> Iterator[Bundle]:
        """The best one first; what the earlier ones leave is taken as done."""
        done: set[Job] = set()
        open_, ratios = self._choices(), dict[Goals, float]()
        while open_:
            for one in open_ - ratios.keys():
                ratios[one] = self._ratio(one, done)
            best = max(open_, key=lambda one: (ratios[one], -one[1], sorted(map(str, one[0]))))
            if ratios[best] <= 0:
                return
            jobs = self._jobs(best, done)
            new = jobs | self._trained(jobs, done)
            goals, then = self._served(piece for piece, _ in new), done | new
            decided = sum(self._chance(g, then) - self._chance(g, done) for g in goals)
            gains = [(g, self._worth(g, then) - self._worth(g, done)) for g in goals]
            some = sorted((not g.claim, -gain, g.name) for g, gain in gains if gain > 0)
            why = tuple(name for _, _, name in some)
            yield Bundle(self.tasks(jobs, done), why, best[1], decided)
            open_.discard(best)
            moved = self._moved(new, goals)
            ratios = {one: ratio for one, ratio in ratios.items() if not one[0] & moved}
            done = then

    def _choices(self) -> set[Goals]:
        """What bundles are made of: goals one by one, and those together that share a start."""
        open_ = [goal for goal in self.goals if goal.chances]
        found = {(goal.pieces, step) for goal in open_ for step in (1, *STEPS)}
        shared: dict[tuple, set[Piece]] = {}
        for goal in open_:
            starts = {(self._at(p, 0), name) for p in goal.pieces for name in p.after or [p.name]}
            for step in (1, *STEPS) if len(starts) == 1 else ():
                if goal.chances.get(step, step == 1):
                    shared.setdefault((*starts, step), set()).update(goal.pieces)
        return found | {(frozenset(pieces), step) for (_, step), pieces in shared.items()}

    def _moved(self, new: Iterable[Job], goals: Iterable[Goal]) -> set[Piece]:
        """The pieces of which gain or price is another once ``new`` has run, of which ``goals``
        gain: theirs, and all that share a folder with it."""
        folders = {self._at(piece, 0) for piece, _ in new}
        beside = {piece for piece in self.ledger.pieces if self._at(piece, 0) in folders}
        return beside.union(*(goal.pieces for goal in goals))

    def full(self, step: int) -> tuple[int, float]:
        """What a board lacks to so many seeds everywhere: runs of pieces, and their seconds."""
        jobs = {job for goal in self.goals for job in self._jobs((goal.pieces, step), set())}
        return len(jobs), self._cost(jobs)

    def tasks(self, jobs: Iterable[Job], done: Collection[Job] = ()) -> tuple[Task, ...]:
        """Jobs that share checkpoints as one task, by seed (or of all seeds, in lanes).

        done: what will have run by then.
        """
        found: dict[tuple, Task] = {}
        for pieces, seed, before in self._together(jobs, done):
            seconds = self._price(pieces, seed, before)
            known, protocol = experiments.find(pieces[0].experiment), pieces[0].protocol
            task = Task(known, protocol, known.joined(pieces), (seed,), pieces, seconds)
            same = found.get(pieces) if self.lanes else None
            if same:
                task = replace(same, seeds=(*same.seeds, seed), seconds=same.seconds + seconds)
            along = self._starts(pieces).difference(pieces)  # run too, and may have rows of all
            kept = sorted(p.name for p in along if self.ledger.seeds(p).issuperset(task.seeds))
            found[pieces if self.lanes else (pieces, seed)] = replace(task, kept=tuple(kept))
        return tuple(sorted(found.values(), key=lambda task: (task.seeds, str(task))))

    def _together(self, jobs: Iterable[Job], done: Collection[Job]) -> Iterator[Group]:
        """Pieces that share checkpoints, their seed, and what they go on from, unless it runs with
        them or before."""
        found: dict[tuple[Path, int], list[Piece]] = {}
        for piece, seed in jobs:
            found.setdefault((self._at(piece, seed), seed), []).append(piece)
        for key in sorted(found):
            pieces, seed = tuple(sorted(found[key], key=self._order.__getitem__)), key[1]
            starts = self._starts(pieces).difference(pieces)
            yield pieces, seed, frozenset(p for p in starts if (p, seed) not in done)

    def _cost(self, jobs: Iterable[Job], done: Collection[Job] = ()) -> float:
        return sum(self._price(*group) for group in self._together(jobs, done))

    def _trained(self, jobs: Iterable[Job], done: Collection[Job]) -> set[Job]:
        """What runs along with jobs, as they go on from it."""
        return {(p, seed) for _, seed, before in self._together(jobs, done) for p in before}

    def _starts(self, pieces: tuple[Piece, ...]) -> set[Piece]:
        """What these go on from."""
        names = {(self._at(piece, 0), name) for piece in pieces for name in piece.after}
        return {self._alike[name] for name in names if name in self._alike}

    def _seconds(self, pieces: tuple[Piece, ...], seed: int, before: frozenset[Piece]) -> float:
        """Of these and of those ``before`` them, without the rounds that checkpoints have."""
        return sum(self.ledger.seconds(p) * self._share(p, seed) for p in (*pieces, *before))

    def _jobs(self, one: Goals, done: Collection[Job]) -> set[Job]:
        """What pieces lack to a step."""
        lacking = ((p, s) for p in one[0] for s in missing(self.ledger.seeds(p), one[1]))
        return {job for job in lacking if job not in done}

    def _ratio(self, one: Goals, done: set[Job]) -> float:
        """Worth expected per second."""
        jobs = self._jobs(one, done)
        if not jobs:
            return 0.0
        new = jobs | self._trained(jobs, done)
        then, goals = done | new, self._served(piece for piece, _ in new)
        gain = sum(self._worth(g, then) - self._worth(g, done) for g in goals)
        return gain / max(1.0, self._cost(jobs, done))

    def _served(self, pieces: Iterable[Piece]) -> list[Goal]:
        """The goals that have something to gain from these pieces."""
        found: dict[str, Goal] = {}
        for piece in pieces:
            found |= self._helped[piece]
        return list(found.values())

    def _worth(self, goal: Goal, done: set[Job]) -> float:
        """What is expected of a goal once ``done`` has run; a first look is worth something, and
        the end of a step that was begun as much as a verdict."""
        there, new = self._reached(goal, done), not any(map(self.ledger.seeds, goal.pieces))
        ended = 0 < goal.begun <= there
        first = FIRST if new and there else 0.0
        worth = CLAIM if goal.claim else 1.0
        return worth * (1.0 if ended else self._chance(goal, done) + first)

    def _chance(self, goal: Goal, done: set[Job]) -> float:
        """Of a verdict at the steps that a goal has come to."""
        there = self._reached(goal, done)
        return max((chance for n, chance in goal.chances.items() if n <= there), default=0.0)

    def _reached(self, goal: Goal, done: set[Job]) -> int:
        """The seeds 0, 1, ... that all pieces of a goal have."""
        seeds = 0
        while all(seeds in self.ledger.seeds(p) or (p, seeds) in done for p in goal.pieces):
            seeds += 1
        return seeds
