"""When a printed number counts as reproduced.

The margin of a cell is the larger of twice the paper's standard deviation and a floor (1 point of
accuracy, 2 points of AUC). The 95 % interval of the difference of means (Welch) lies inside the
margin: *reproduced*; wholly outside: *differs*; across its edge, or we have a single run, or two
that are equal: *inconclusive*. A number that follows from the settings alone (parameters sent) is
compared in the digits printed. Where the printed deviation is above 5 points, `collapse` has a rule
of its own.

The papers' deviations are population ones (numpy's default); ours have n - 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from lgfed_core.errors import ResultsError

from .verdict import AGREE, DIFFERS, INCONCLUSIVE, NOT_RUN, REPRODUCED, ROUNDING


@dataclass(frozen=True)
class Compared:
    """Ours minus the paper's, its 95 % interval (NaN with one run), the margin, the verdict."""

    difference: float
    low: float
    high: float
    margin: float
    verdict: str


def compare(
    paper_mean: float,
    paper_sd: float | None,
    paper_n: int | None,
    ours: ArrayLike,
    floor: float,
    most: float = np.inf,
) -> Compared:
    """Compare our runs [n] with a printed mean, its population deviation and number of runs.

    floor, most: the smallest and the largest margin, in the unit of the numbers. Where the paper
    prints no deviation (None or NaN) or had one run, its mean is taken as a constant: the interval
    is then of ours alone, and so too narrow. Raises ResultsError for runs of another shape, or NaN.
    """
    ours = _runs(ours)
    sd = np.nan if paper_sd is None else float(paper_sd)
    margin = min(margin_of(sd, floor), most)
    if ours.size == 0:
        return Compared(np.nan, np.nan, np.nan, margin, NOT_RUN)
    difference = float(ours.mean() - paper_mean)
    if ours.size == 1:
        return Compared(difference, np.nan, np.nan, margin, INCONCLUSIVE)
    print_, variance = Print.of(margin, sd, paper_n), ours.var(ddof=1) / ours.size
    ends = welch(difference, print_.variance, print_.df, variance, ours.size - 1)
    low, high = map(float, ends)
    open_ = by_chance(ours.std(ddof=1), ours.size)
    verdict = INCONCLUSIVE if open_ else placed(low, high, -margin, margin)
    return Compared(difference, low, high, margin, verdict)


@dataclass(frozen=True)
class Print:
    """What a cell is compared with: the margin, the variance of the printed mean and its degrees of
    freedom; without a variance the mean is a constant."""

    margin: float
    variance: float = 0.0
    df: int = 1

    @classmethod
    def of(cls, margin: float, sd: float, runs: int | None) -> Print:
        """Of a mean printed with the population deviation ``sd`` (or NaN) of so many ``runs``."""
        if runs is None or runs < 2 or np.isnan(sd):
            return cls(margin)
        return cls(margin, sd**2 / (runs - 1), runs - 1)

    def settle(self, means: ArrayLike, errors: ArrayLike, df: int) -> tuple[NDArray, NDArray]:
        """Of our ``means`` [k] off the printed one, with standard ``errors`` [k] -> whether each is
        reproduced, and whether it differs."""
        low, high = welch(means, self.variance, self.df, np.square(errors), df)
        inside = (low >= -self.margin) & (high <= self.margin)
        return inside, (low > self.margin) | (high < -self.margin)


def placed(low: float, high: float, least: float, most: float) -> str:
    """The verdict on an interval inside a band, wholly outside, or across its edge."""
    if least <= low and high <= most:
        return REPRODUCED
    return DIFFERS if high < least or low > most else INCONCLUSIVE


def _runs(ours: ArrayLike) -> NDArray:
    """Our runs [n]. Raises ResultsError for another shape, or a NaN, which is no run."""
    runs = np.asarray(ours, float)
    if runs.ndim != 1 or np.isnan(runs).any():
        raise ResultsError(
            f"runs are {runs.tolist()!r:.200}; they must be numbers [n], without NaN"
        )
    return runs


def ends(
    paper_mean: float, paper_sd: float, paper_n: int | None, ours: ArrayLike, floor: float, k: int
) -> tuple[str, str]:
    """The verdicts of `compare` if a deviation printed over runs and the k devices of each were all
    between runs, and if runs differed by nothing but the devices in them (a run's mean then
    deviates by 1 / sqrt(k) of it). What is true lies between."""
    one, other = (
        compare(paper_mean, sd, paper_n, ours, floor).verdict
        for sd in (paper_sd, paper_sd / np.sqrt(k))
    )
    return one, other


def margin_of(paper_sd: float, floor: float) -> float:
    """How far from a printed number counts as reproduced; without a deviation (NaN) the floor."""
    return float(np.nanmax([2 * paper_sd, floor]))


def least_reach(paper_sd: float, paper_n: int, most: int) -> float:
    """Half the narrowest interval that up to ``most`` runs of ours can have beside a printed mean.

    Not always that of runs without spread: with some, degrees of freedom are not the print's alone.
    """
    theirs = paper_sd**2 / (paper_n - 1)
    ours = theirs * np.linspace(0, 8, 161)  # squared standard errors
    return float(welch(0.0, theirs, paper_n - 1, ours, most - 1)[1].min())


def by_chance(spread: float, runs: int) -> bool:
    """Whether runs without ``spread`` may agree by chance, as accuracies are counts: two may."""
    return spread < ROUNDING and AGREE ** (runs - 1) > 0.05


def compare_exact(printed: float, digit: float, ours: ArrayLike) -> Compared:
    """Compare a number without chance in it: equal in the printed digits, or not.

    digit: value of the last printed digit, e.g. 1e8 for 12.7e9. One run is enough; with several
    all must agree. The difference is one of rounded numbers, its ends are the extreme runs.
    """
    ours = _runs(ours)
    if ours.size == 0:
        return Compared(np.nan, np.nan, np.nan, digit / 2, NOT_RUN)
    steps = np.round(ours / digit) - np.round(printed / digit)
    difference, low, high = (float(f(steps) * digit) for f in (np.mean, np.min, np.max))
    return Compared(difference, low, high, digit / 2, DIFFERS if steps.any() else REPRODUCED)


def welch(
    difference: ArrayLike,
    variance_a: ArrayLike,
    df_a: ArrayLike,
    variance_b: ArrayLike,
    df_b: ArrayLike,
) -> tuple[NDArray, NDArray]:
    """Ends of the 95 % interval of a difference of two means; arguments broadcast.

    variance_a, variance_b: squared standard errors of the two means, with ``df_a`` and ``df_b``
    degrees of freedom, joined by Welch and Satterthwaite. Without any variance it is a point.
    """
    a, b = np.asarray(variance_a, float), np.asarray(variance_b, float)
    total = a + b
    with np.errstate(divide="ignore", invalid="ignore"):
        df = total**2 / (a**2 / df_a + b**2 / df_b)
    reach = special.stdtrit(np.where(total > 0, df, 1.0), 0.975) * np.sqrt(total)
    return difference - reach, difference + reach
