"""Seeds come in steps, so that nobody stops because a verdict pleases.

Before anything runs it is fixed that a comparison is judged at `STEPS` seeds. At each step it is
*decided* (for or against, alike) or goes on to the next; after the last one it stays open. Looking
several times errs more often than looking once; the page on verdicts says by how much.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .comparison import Print

STEPS = (3, 5, 10)
FEW = 2  # degrees of freedom of a deviation that is not of a cell's own runs


def next_step(seeds: int) -> int | None:
    """The step after ``seeds`` runs; None after the last."""
    return next((step for step in STEPS if step > seeds), None)


def standing(seeds: int) -> str:
    """At which step a verdict on so many seeds stands: "at 3 seeds", "between 3 and 5 seeds"."""
    after = next_step(seeds)
    before = max((step for step in STEPS if step <= seeds), default=0)
    if before == seeds:
        return f"at {seeds} seeds"
    if not before:
        return f"before {after} seeds"
    return f"between {before} and {after} seeds" if after else f"beyond {before} seeds"


def marked(seeds: int, lost: int = 0) -> str:
    """A number of seeds as it stands beside a mean: "3", "2, before 3 seeds", "2 of 3, others
    diverged"; ``lost`` are these."""
    of = f"{seeds} of {seeds + lost}, others diverged" if lost else f"{seeds}"
    ran = seeds + lost
    return of + f", {standing(ran)}" * (ran not in (0, *STEPS))


def missing(there: Collection[int], step: int) -> list[int]:
    """The seeds of 0, 1, ..., step - 1 that have not run."""
    return [seed for seed in range(step) if seed not in there]


def cell_chance(difference: float, sd: float, seeds: int, step: int, *prints: Print) -> float:
    """The chance that a cell is decided at ``step`` seeds, alike by all ``prints``, from what
    ``seeds`` of them say (`_ahead`); sd: of a run. Of no seeds, ours is as the first print says."""
    far = 0.0 if seeds else prints[0].variance
    means, sds = _ahead(difference if seeds else 0.0, sd, seeds, step, far)
    found = [print_.settle(means, sds / np.sqrt(step), step - 1) for print_ in prints]
    inside, outside = (np.all(each, axis=0) for each in zip(*found, strict=True))
    return float((inside | outside).mean())


def comparison_chance(p: float, seeds: int, step: int, alpha: float) -> float:
    """The chance that a one-sided t-test has a p-value below ``alpha`` at ``step`` paired seeds.

    p: its p-value today, of ``seeds`` pairs (two at least).
    """
    now = np.clip(-special.stdtrit(seeds - 1, p), -50, 50)
    means, sds = _ahead(now / np.sqrt(seeds), 1.0, seeds, step)
    return float((means * np.sqrt(step) > -special.stdtrit(step - 1, alpha) * sds).mean())


@cache
def _points() -> NDArray:
    """Points [3, k], even in the unit cube."""
    from scipy.stats import qmc  # half a second, of every run that does not ask

    return (qmc.Sobol(3, scramble=False).random(512) + 1 / 1024).T


def _ahead(
    mean: float, sd: float, seeds: int, step: int, far: float = 0.0
) -> tuple[NDArray, NDArray]:
    """Means and deviations [k] that ``step`` runs may have, evenly likely, after ``seeds`` of them.

    The deviation of runs is as uncertain as that of the seeds leaves it (chi-squared, of one degree
    less than these); before there are two, ``sd`` comes from elsewhere and has `FEW` degrees.
    far: the variance of the mean that runs scatter around, where there are no seeds to say it.
    """
    more, df = step - seeds, seeds - 1 if seeds > 1 else FEW
    points = _points()
    true = sd**2 * df / special.chdtri(df, points[0])
    fresh = true * special.chdtri(more - 1, points[1]) if more > 1 else 0.0
    off = special.ndtri(points[2]) * np.sqrt(true / more + (true / seeds if seeds else far))
    squares = max(0, seeds - 1) * sd**2 + fresh + seeds * more / step * off**2
    return mean + more / step * off, np.sqrt(squares / (step - 1))
