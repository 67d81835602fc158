"""Numbers with a huge printed deviation: the share of collapsed runs, and the mean of the others.

A margin of twice a deviation of 33 points says nothing. Where a printed deviation S of n runs is
above 5 points (`WIDE`), the runs are read as two groups, k of them at what guessing gives (g):

    k = n S^2 / (S^2 + (M - g)^2), rounded down the most that this mean M and this S leave room for
    m = (n M - k g) / (n - k)                   mean of the others
    s^2 = n / (n - k) S^2 - k / n (m - g)^2     what is left to them of the variance

A run of ours has collapsed if it ends nearer to g than to m. The verdict on such a cell:

    Fisher's exact test tells the shares apart (5 %), or the means of the others differ   differs
    the shares are within 1/n, and the mean of the others is reproduced                   reproduced
    neither                                                                             inconclusive

where the margin is 5 points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import comparison, verdict
from .printed import Table
from .seed_steps import STEPS

WIDE = 5.0  # points: of a printed deviation, and of the margin then
_PRINT = 0.01  # runs: what the digits of a print may take from a whole number of them


@dataclass(frozen=True)
class Groups:
    """A printed mean and deviation as two groups of ``runs``: ``collapsed`` at ``guess``, others
    around ``mean`` with the population deviation ``sd``. All in percent."""

    runs: int
    collapsed: int
    guess: float
    mean: float
    sd: float

    @property
    def others(self) -> int:
        return self.runs - self.collapsed

    @property
    def reachable(self) -> bool:
        """Whether any runs could reproduce the mean of the others: not of one, nor where its own
        95 % interval is wider than the margin whatever ours scatter."""
        if self.others < 2:
            return False
        return comparison.least_reach(self.sd, self.others, STEPS[-1]) <= WIDE

    def fell(self, ours: ArrayLike) -> NDArray:
        """Which of our runs [k] have collapsed -> [k]."""
        return np.asarray(ours, float) < (self.guess + self.mean) / 2


def groups_of(table: Table, cell: Mapping[str, Any]) -> Groups | None:
    """Of a line of `printed.cells`; None where the rule does not hold: a deviation of `WIDE` or
    less, no accuracy, or a mean that is no better than guessing."""
    wide = cell["metric"] in table.accuracies and cell["paper_sd"] > WIDE
    if table.guess is None or table.runs is None or not wide:
        return None
    guess = table.guess(cell) if callable(table.guess) else table.guess
    if not cell["paper"] > guess:
        return None
    return groups(cell["paper"], cell["paper_sd"], table.runs, guess)


def groups(mean: float, sd: float, runs: int, guess: float) -> Groups:
    """How the two groups must lie to give a printed mean and population deviation over ``runs``.

    >>> groups(43.1, 33.0, 3, 100 / 31)  # FADE-DANN's D->A: one run in three
    Groups(runs=3, collapsed=1, guess=3.2..., mean=63.0..., sd=21.0...)
    """
    share = sd**2 / (sd**2 + (mean - guess) ** 2)
    fell = min(int(runs * share + _PRINT), runs - 1)
    high = (runs * mean - fell * guess) / (runs - fell)
    left = runs / (runs - fell) * sd**2 - fell / runs * (high - guess) ** 2
    return Groups(runs, fell, guess, high, float(np.sqrt(max(left, 0.0))))


def compare(printed: Groups, ours: ArrayLike) -> tuple[comparison.Compared, str]:
    """The verdict on our runs [k] by the rule above, and what it is of, in words.

    Difference, interval and margin are those of the mean of the runs that have not collapsed.
    """
    from scipy import stats  # half a second, of every run that does not ask

    ours = np.asarray(ours, float)
    fell = printed.fell(ours)
    rest, many = ours[~fell], int(fell.sum())
    found = comparison.compare(printed.mean, printed.sd, printed.others, rest, WIDE, most=WIDE)
    said, words = found.verdict, ""
    if ours.size:
        shares = [[printed.collapsed, printed.others], [many, rest.size]]
        mean = f" ({rest.mean():.2f})" if rest.size else ""
        words = f"of the {rest.size} of {ours.size} runs that did not collapse{mean}; "
        words += f"the paper's mean and deviation fit {printed.others} of {printed.runs} runs "
        words += f"around {printed.mean:.2f}"
        near = abs(many * printed.runs - printed.collapsed * ours.size) <= ours.size  # to 1 / runs
        if stats.fisher_exact(shares).pvalue < 0.05:
            said = verdict.DIFFERS
        elif not rest.size or (said == verdict.REPRODUCED and not near):
            said = verdict.INCONCLUSIVE
    if said != verdict.DIFFERS and not printed.reachable:
        said = verdict.UNREACHABLE
    return replace(found, verdict=said), words
