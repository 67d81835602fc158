"""Shares of random starts: tests and intervals of counts, as starts hit or miss.

An interval of Student's t would pass the ends that a share has, and shrink to a point where all
starts agree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from lgfed_core.evidence.verdict import NO_EVIDENCE, Evidence

HALF = 0.5


def more_than_half(hits: ArrayLike) -> Evidence:
    """That more than half of all starts hit, of those drawn: bool or 0 and 1 [n].

    The estimate is the share less one half, in [-0.5, 0.5], with its 95 % interval of Clopper and
    Pearson; the p-values are those of binomial tests, one for each side. No start decides nothing.
    """
    n, some = np.size(hits), int(np.sum(hits))
    if not n:
        return NO_EVIDENCE
    above, below = (
        stats.binomtest(some, n, HALF, alternative=side) for side in ("greater", "less")
    )
    ends = stats.binomtest(some, n).proportion_ci(method="exact")
    shift = (some / n - HALF, float(ends.low) - HALF, float(ends.high) - HALF)
    return Evidence(*shift, float(above.pvalue), float(below.pvalue))


def difference(a: ArrayLike, b: ArrayLike) -> Evidence:
    """The share of hits in a less that in b, of the same starts: bool or 0 and 1 [n] each.

    The 95 % interval is Newcombe's for paired proportions (1998, method 10), made of Wilson's for
    each; it lies in [-1, 1] and is no point where all starts agree. Its p-values are not given: 1.
    """
    a, b = np.asarray(a, bool), np.asarray(b, bool)
    n = len(a)
    if not n:
        return NO_EVIDENCE
    (p, p_low, p_high), (q, q_low, q_high) = (_wilson(int(x.sum()), n) for x in (a, b))
    phi = _phi(int((a & b).sum()), int((a & ~b).sum()), int((b & ~a).sum()), int((~a & ~b).sum()))
    down = _reach(p - p_low, q_high - q, phi)
    up = _reach(p_high - p, q - q_low, phi)
    return Evidence(p - q, p - q - down, p - q + up)


def _wilson(some: int, n: int) -> tuple[float, float, float]:
    """A share and the ends of its 95 % interval."""
    ends = stats.binomtest(some, n).proportion_ci(method="wilson")
    return some / n, float(ends.low), float(ends.high)


def _reach(one: float, other: float, phi: float) -> float:
    return float(np.sqrt(max(one**2 - 2 * phi * one * other + other**2, 0.0)))


def _phi(both: int, first: int, second: int, none: int) -> float:
    """How a start's two results hang together, corrected for continuity where they agree; 0 where
    one of them never changes."""
    edges = (both + first) * (second + none) * (both + second) * (first + none)
    if not edges:
        return 0.0
    apart = both * none - first * second
    n = both + first + second + none
    return (max(apart - n / 2, 0.0) if apart > 0 else apart) / float(np.sqrt(edges))
