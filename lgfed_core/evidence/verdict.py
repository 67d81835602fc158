"""The words of verdicts, and when a claim counts as confirmed by the joint rule.

A claim is *confirmed*, *refuted* or *inconclusive* by a test over paired seeds, with Holm's
correction over the claims that a page of the book judges together. `answers` judges it by setting,
with the same tests; `comparison` judges single numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from lgfed_core.errors import ResultsError

REPRODUCED, DIFFERS, INCONCLUSIVE = "reproduced", "differs", "inconclusive"
NOT_RUN, STAND_IN = "not yet run", "on stand-in data"
CONFIRMED, REFUTED = "confirmed", "refuted"
UNREACHABLE = "out of reach"  # a cell that no runs could reproduce: its own print is too vague
SUGGESTED = "suggested"  # what runs of fewer rounds than the protocol's can do
ALPHA = 0.05  # of a claim, and of `behind`
ROUNDING = 1e-9  # differences below this are those of floating point
AGREE = 0.1  # how often a run agrees with another by chance, where few rows differ: not rarer


@dataclass(frozen=True)
class Evidence:
    """A tested statement: an estimate with its 95 % interval, and two one-sided p-values.

    p: of the data if the statement were false (small: confirmed); p_against: if it were true
    (small: refuted).

    Of Student's t also what it stands on, so that `moderated` can ask again with another deviation:
    sd of a run, df its degrees of freedom, factor from it to the standard error of the mean, and
    what is tested: a mean above ``by``, or within ``margin`` of zero.
    """

    estimate: float
    low: float
    high: float
    p: float = 1.0
    p_against: float = 1.0
    sd: float = np.nan
    df: float = 0.0
    factor: float = np.nan
    by: float = 0.0
    margin: float = np.nan


NO_EVIDENCE = Evidence(np.nan, np.nan, np.nan)  # of what has not run


def exact(value: float, holds: bool) -> Evidence:
    """Of a number without chance in it, which decides: its p-values are 0 or 1."""
    return Evidence(value, value, value, float(not holds), float(holds))


def without_chance(found: Any) -> bool:
    """Whether this is `exact`; found: anything with ``low``, ``high``, ``p``, ``p_against``."""
    return found.low == found.high and {found.p, found.p_against} == {0.0, 1.0}


def greater(a: ArrayLike, b: ArrayLike = 0.0, by: float = 0.0, shared: float = 0.0) -> Evidence:
    """That a is greater than b (by more than ``by``), paired over runs: a [n], b [n] or a number.

    Student's t on the differences of whole pairs (one with a NaN is none). One run, or none,
    decides nothing: both p-values are 1. Raises ResultsError for other shapes, and Series of runs
    in another order.

    shared: where runs split the same few rows again and again, test rows over training rows of a
        split; the variance of a mean is then that of a run times 1/n + shared (Nadeau and Bengio
        2003), and more runs do not make up for rows.
    """
    return t_test(*_paired(a, b, shared), by=by)


def equivalent(a: ArrayLike, b: ArrayLike, margin: float, shared: float = 0.0) -> Evidence:
    """That a and b differ by less than ``margin``, paired over runs: two one-sided tests (TOST).

    Pairs and ``shared`` as for `greater`. Against it speaks a difference beyond the margin, on
    either side (p doubled for the two). Raises ResultsError as it does, and unless margin is above
    0.
    """
    if not margin > 0:
        raise ResultsError(f"margin is {margin}; it must be above 0")
    return t_test(*_paired(a, b, shared), margin=margin)


def t_test(
    mean: float, sd: float, df: float, factor: float, by: float = 0.0, margin: float = np.nan
) -> Evidence:
    """That a mean is above ``by``, or, where there is a ``margin``, within it of zero (TOST).

    sd: of a run (NaN of one run); df: its degrees of freedom; factor: sd times it is the standard
    error of the mean.
    """
    error = sd * factor
    reach = reach_of(error, df)
    low, high = float(mean - reach), float(mean + reach)
    if np.isnan(margin):
        p, against = _above(mean - by, error, df), _above(by - mean, error, df)
    else:
        p = max(_above(mean + margin, error, df), _above(margin - mean, error, df))
        beyond = min(_above(mean - margin, error, df), _above(-margin - mean, error, df))
        against = min(1.0, 2 * beyond)
    return Evidence(mean, low, high, p, against, sd, df, factor, by, margin)


def rising(x: ArrayLike, y: ArrayLike, shared: float = 0.0) -> Evidence:
    """That y rises with x: x [k], y [n, k], one least-squares slope per run, tested above zero."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    centred = x - x.mean()
    return greater(y @ centred / (centred @ centred), shared=shared)


def every(tests: Sequence[Evidence]) -> Evidence:
    """That all of these hold: the weakest test decides for it, any (Bonferroni) against it."""
    if not tests:
        raise ResultsError("no tests to join; what has not run is NO_EVIDENCE")
    weakest = max(tests, key=lambda t: t.p)
    against = min(1.0, len(tests) * min(t.p_against for t in tests))
    return Evidence(weakest.estimate, weakest.low, weakest.high, weakest.p, against)


def holm(pvalues: ArrayLike) -> NDArray:
    """Holm's step-down adjusted p-values, in the order given: pvalues [k] -> [k]."""
    p = np.asarray(pvalues, float)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(stepped, 1.0)
    return out


def judge(claims: Mapping[str, Evidence]) -> pd.DataFrame:
    """Verdicts on the claims of one paper, by claim: estimate, interval, adjusted p, verdict.

    Holm corrects both columns of p-values over all claims given.
    """
    names = "estimate", "low", "high", "p", "p_against"
    lines: dict[str, Any] = {
        name: [getattr(test, name) for test in claims.values()] for name in names
    }
    p, against = holm(lines["p"]), holm(lines["p_against"])
    verdicts = np.select([p < ALPHA, against < ALPHA], [CONFIRMED, REFUTED], INCONCLUSIVE)
    lines |= {"p": p, "p_against": against, "verdict": verdicts}
    return pd.DataFrame(lines, index=pd.Index(claims, name="claim"))


def behind(values: ArrayLike) -> NDArray:
    """Which methods are behind the one with the highest mean: values [n, k] -> bool [k].

    A paired interval between the highest mean and another is too narrow, as the best is picked on
    the same runs: Tukey's studentized range holds for whichever two are picked. n runs that all k
    methods have, as blocks; what is left of a value without its run's and its
    method's mean is taken as noise of one size. Where all methods are equal, somebody is called
    behind in 5 % of such tables. Fewer than two runs or methods show nothing. Raises
    ResultsError for another shape, or a NaN.
    """
    from scipy import stats  # half a second, of every run that does not ask

    x = np.asarray(values, float)
    if x.ndim != 2 or np.isnan(x).any():
        raise ResultsError(
            f"values are {list(x.shape)}; they must be numbers [runs, methods], without NaN: leave "
            "out runs that not all methods have"
        )
    n, k = x.shape
    if n < 2 or k < 2:
        return np.zeros(k, bool)
    means = x.mean(0)
    rest = x - means - x.mean(1, keepdims=True) + x.mean()
    df = (n - 1) * (k - 1)
    reach = stats.studentized_range.ppf(1 - ALPHA, k, df) * np.sqrt((rest**2).sum() / df / n)
    return means.max() - means > max(reach, ROUNDING)


def _paired(a: ArrayLike, b: ArrayLike, shared: float) -> tuple[float, float, int, float]:
    """Of the differences a - b of whole pairs: mean, deviation (NaN below two), degrees of freedom,
    and the factor from the deviation to the mean's standard error.

    Raises ResultsError unless a is [n] or a number, and b is a number or has a's shape, and, where
    both are pandas' Series, the same index in one order.
    """
    if isinstance(a, pd.Series) and isinstance(b, pd.Series) and not a.index.equals(b.index):
        raise ResultsError(
            f"runs {list(a.index)} are paired with {list(b.index)}; bring them to one order, as by "
            "a, b = a.align(b)"
        )
    x, y = np.asarray(a, float), np.asarray(b, float)
    if x.ndim > 1 or y.shape not in ((), x.shape):
        raise ResultsError(
            f"runs of shape {list(x.shape)} are paired with {list(y.shape)}; they must be [n] and "
            "[n], or a number"
        )
    shift = np.atleast_1d(x - y)
    shift = shift[~np.isnan(shift)]  # [n]
    mean = float(shift.mean()) if shift.size else np.nan
    sd = float(shift.std(ddof=1)) if shift.size > 1 else np.nan
    return mean, sd, shift.size - 1, float(np.sqrt(1 / max(shift.size, 1) + shared))


def reach_of(error: ArrayLike, df: ArrayLike) -> NDArray:
    """Half a 95 % interval of a mean (Student's t), from its standard error and degrees of freedom;
    NaN without any of these. Arguments broadcast."""
    df = np.asarray(df, float)
    return special.stdtrit(np.where(df > 0, df, np.nan), 0.975) * error


def _above(mean: float, error: float, df: float) -> float:
    """One-sided p of "the mean is above zero"; 1 where nothing can be said."""
    if not df > 0:
        return 1.0
    if error < ROUNDING:  # all runs agree, maybe by chance, as accuracies are counts
        return AGREE**df if mean > ROUNDING else 1.0
    return float(special.stdtr(df, -mean / error))
