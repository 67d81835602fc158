"""Variance shared within a family of comparisons: moderated t-tests (Smyth 2004), capped.

To the sample variances of a family (one data set, one measure, one scale of noise) a prior is
fitted, d0 degrees of freedom around s0^2, and each comparison is tested with

    (d0 s0^2 + df s^2) / (d0 + df),    d0 + df degrees of freedom

where d0 counts at most as much as the runs themselves: d0 <= df. `evidence.coverage` measures on
rows with ten seeds that intervals keep what they promise.

G. K. Smyth, Linear models and empirical Bayes methods, Statistical Applications in Genetics and
Molecular Biology 3(1), 2004, section 6.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .verdict import ROUNDING, Evidence, t_test

FEWEST = 3  # comparisons that a family needs before it says anything
CAP = 1.0  # the most that a prior counts, in degrees of freedom of the runs themselves


@dataclass(frozen=True)
class Prior:
    """What a family knows: its usual ``variance`` of a run, and ``df``, how many degrees of freedom
    that is worth (infinite where all variances are alike)."""

    variance: float
    df: float

    def moderate(self, sd: ArrayLike, df: ArrayLike, cap: float = CAP) -> tuple[NDArray, NDArray]:
        """Sample deviations [...] and their degrees of freedom, moderated by this prior."""
        sd, df = np.asarray(sd), np.asarray(df)
        extra = np.minimum(self.df, cap * df)
        return np.sqrt((extra * self.variance + df * sd**2) / (extra + df)), extra + df


def fit(sds: ArrayLike, dfs: ArrayLike) -> Prior | None:
    """The prior of a family from sample deviations [k] with ``dfs`` [k] degrees of freedom; None of
    fewer than `FEWEST` that scatter at all."""
    sds, dfs = np.asarray(sds, float), np.asarray(dfs, float)
    some = (dfs > 0) & (sds > ROUNDING)
    if some.sum() < FEWEST:
        return None
    half = dfs[some] / 2
    e = 2 * np.log(sds[some]) - special.digamma(half) + np.log(half)
    excess = e.var(ddof=1) - special.polygamma(1, half).mean()
    if excess <= 0:
        return Prior(float(np.exp(e.mean())), np.inf)
    half0 = _trigamma_inverse(float(excess))
    return Prior(float(np.exp(e.mean() + special.digamma(half0) - np.log(half0))), 2 * half0)


def shared(family: Sequence[Evidence]) -> list[Evidence]:
    """The same tests with the variance that they share; as they are where that says nothing."""
    prior, found = fit([one.sd for one in family], [one.df for one in family]), list(family)
    for i, one in enumerate(family):
        if prior is not None and one.df > 0 and one.sd > ROUNDING:
            sd, df = map(float, prior.moderate(one.sd, one.df))
            found[i] = t_test(one.estimate, sd, df, one.factor, one.by, one.margin)
    return found


def by_family(tests: Sequence[Evidence], families: Sequence[Hashable]) -> list[Evidence]:
    """`shared` within each of the ``families`` that the tests belong to; "" is none."""
    out = list(tests)
    for family in dict.fromkeys(families):
        mine = [i for i, own in enumerate(families) if own == family and family != ""]
        for i, one in zip(mine, shared([tests[i] for i in mine]), strict=True):
            out[i] = one
    return out


def _trigamma_inverse(y: float) -> float:
    """x with trigamma(x) = y > 0, by Newton's method on 1 / trigamma."""
    x = 0.5 + 1 / y
    for _ in range(50):
        now = float(special.polygamma(1, x))
        step = now * (1 - now / y) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-10:
            break
    return x
