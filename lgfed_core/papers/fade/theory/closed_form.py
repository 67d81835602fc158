"""What a discriminator can tell of two groups that do not turn up equally often, in closed form.

Hong et al. 2021 (FADE), section 4. Two groups have codes z ~ p1 and z ~ p2 and take part in a round
with probabilities a1 and a2. The encoder is to make small

    D~(p1, p2) = max over D of a1 E_p1[log D(z)] + a2 E_p2[log(1 - D(z))],                  eq. (4)

and the best D is a1 p1 / (a1 p1 + a2 p2), eq. (5). With m = (a1 p1 + a2 p2) / (a1 + a2),

    D~ = minimum + excess,
    minimum = a1 log a1 + a2 log a2 - (a1 + a2) log(a1 + a2),          Theorem 4.1 has + (a1 + a2)
    excess  = a1 KL(p1|m) + a2 KL(p2|m) >= 0,  and 0 only where p1 = p2.

With s = a1 + a2 these are -s H(group) and s I(group; z), so D~ lies between `minimum` and 0.

Theorem 4.2 says that |log p1 - log p2| <= eps makes D~ of the order of a1 eps. Not D~, the excess:

    excess <= a1 KL(p1|p2)        as m minimises the sum, and p2 stands in its place,
           <= a1 eps tanh(eps/2)  the most that KL can be under eps, reached by `two_point`,
           <= a1 min(eps, eps^2/2),

and the same with a2, whether the groups are balanced or not.

Laws are arrays [k] that sum to 1, or grids of densities times their step. Values are in nats.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, rel_entr, softmax, xlogy

from lgfed_core.errors import SettingsError
from lgfed_core.evidence.verdict import Evidence, exact

PAIRS = ((0.1, 0.27), (0.05, 0.95), (0.3, 0.9), (1.0, 1.0))  # (a1, a2); they sum to 0.37 ... 2
SMALL = tuple(10.0**-k for k in range(1, 9))  # a1 on its way to 0, with a2 = 1 - a1
EPSILONS = (0.01, 0.1, 0.5, 2.0)


def best_discriminator(p1: ArrayLike, p2: ArrayLike, a1: float, a2: float) -> NDArray:
    """D*(z) [k], eq. (5). Raises SettingsError where a value of z occurs in neither group."""
    p1, p2 = laws(p1, p2, a1, a2)
    both = a1 * p1 + a2 * p2
    if (both == 0).any():
        raise SettingsError("D is not determined where neither group has mass: drop those values")
    return a1 * p1 / both


def objective(D: ArrayLike, p1: ArrayLike, p2: ArrayLike, a1: float, a2: float) -> float:
    """a1 E_p1[log D] + a2 E_p2[log(1 - D)] for any D [k], the inside of eq. (4)."""
    p1, p2 = laws(p1, p2, a1, a2)
    D = np.asarray(D, float)
    return float(a1 * xlogy(p1, D).sum() + a2 * xlogy(p2, 1 - D).sum())


def discrepancy(p1: ArrayLike, p2: ArrayLike, a1: float, a2: float) -> float:
    """D~ of eq. (4), its maximum over D taken: `minimum` plus `excess`, at most 0."""
    return minimum(a1, a2) + excess(p1, p2, a1, a2)


def minimum(a1: float, a2: float) -> float:
    """Theorem 4.1 put right: a1 log a1 + a2 log a2 - (a1 + a2) log(a1 + a2), reached at p1 = p2."""
    return float(xlogy(a1, a1 / (a1 + a2)) + xlogy(a2, a2 / (a1 + a2)))


def printed_minimum(a1: float, a2: float) -> float:
    """Theorem 4.1 as printed, + (a1 + a2) log(a1 + a2): right only where a1 + a2 = 1."""
    return float(xlogy(a1, a1) + xlogy(a2, a2) + xlogy(a1 + a2, a1 + a2))


def excess(p1: ArrayLike, p2: ArrayLike, a1: float, a2: float) -> float:
    """a1 KL(p1|m) + a2 KL(p2|m): what a best discriminator gains over not looking at z."""
    p1, p2 = laws(p1, p2, a1, a2)
    m = (a1 * p1 + a2 * p2) / (a1 + a2)
    return max(0.0, float(a1 * rel_entr(p1, m).sum() + a2 * rel_entr(p2, m).sum()))


def two_point(eps: float) -> tuple[NDArray, NDArray]:
    """The pair of laws with |log p1 - log p2| <= eps that is furthest apart, for all a1 and a2.

    A convex function of the ratio p1/p2, whose mean under p2 is 1, is largest on average when the
    ratio takes its extreme values alone: p1 = (s, 1 - s), p2 = (1 - s, s), s = 1/(1 + exp(-eps)).
    """
    s = 1 / (1 + np.exp(-eps))
    return np.array([s, 1 - s]), np.array([1 - s, s])


def within(eps: float, k: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """A random pair of laws [k] with |log p1 - log p2| <= eps, as Theorem 4.2 presumes."""
    p2 = rng.dirichlet(np.ones(k))
    tilt = rng.uniform(-eps / 2, eps / 2, k)  # normalising moves it by eps/2 at most
    p1 = p2 * np.exp(tilt)
    return p1 / p1.sum(), p2


def search_minimum(
    a1: float, a2: float, k: int = 4, rng: np.random.Generator | None = None
) -> tuple[float, float]:
    """The least D~ over pairs of laws [k], found by descent from a random pair.

    -> (D~, largest |p1 - p2|) where it ended.
    """
    rng = rng or np.random.default_rng(0)

    def value(t):
        logs = log_softmax(t.reshape(2, k), axis=1) + np.log([[a1], [a2]])
        slopes = np.array([[a1], [a2]]) * (logs - np.logaddexp(*logs))  # a log D*, a log(1 - D*)
        p = softmax(t.reshape(2, k), axis=1)
        down = p * (slopes - (p * slopes).sum(1, keepdims=True))
        return float((p * slopes).sum()), down.ravel()

    start = rng.normal(scale=2, size=2 * k)
    end = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-10})
    p1, p2 = softmax(end.x.reshape(2, k), axis=1)
    return float(end.fun), float(np.abs(p1 - p2).max())


def too_high(
    a1: float, a2: float, formula: Callable[[float, float], float] = printed_minimum
) -> float:
    """How far ``formula`` is above the least D~ that descent finds."""
    return formula(a1, a2) - search_minimum(a1, a2)[0]


def claim_f4(formula: Callable[[float, float], float] = printed_minimum) -> Evidence:
    """F4: the least D~ is ``formula``(a1, a2). Settled by one pair of weights where it is not.

    Held against descents over p1 and p2 for the weights of `PAIRS`. The estimate is formula less
    descent where they are furthest apart; without chance, the p-values are 0 or 1.
    """
    gaps = [too_high(*a, formula) for a in PAIRS]
    worst = max(gaps, key=abs)
    return exact(worst, abs(worst) < 1e-6)


def claim_f5(value: Callable[..., float] = discrepancy) -> Evidence:
    """F5: D~ (or the `excess`) is O(a1 eps / (a1 + a2)) for a1 << a2.

    The paper's proof has the constant 1 in front. The estimate is the largest ratio |value| to
    a1 eps over `SMALL` weights and random pairs of laws under each of `EPSILONS`; above 1 refutes.
    That of D~ is largest at the least of both, and grows without bound as either falls.
    """
    rng, ratios = np.random.default_rng(0), []
    for eps in EPSILONS:
        laws_ = [two_point(eps), *(within(eps, 5, rng) for _ in range(50))]
        ratios += [abs(value(*law, a, 1 - a)) / (a * eps) for a in SMALL for law in laws_]
    return exact(max(ratios), max(ratios) <= 1)


def laws(p1: ArrayLike, p2: ArrayLike, a1: float, a2: float) -> tuple[NDArray, NDArray]:
    """Two laws as arrays [k]; raises SettingsError unless both are, and the weights positive."""
    p1, p2 = np.asarray(p1, float), np.asarray(p2, float)
    if p1.shape != p2.shape or p1.ndim != 1:
        raise SettingsError(f"laws of shapes {p1.shape} and {p2.shape}; expected [k] twice")
    if min(p1.min(), p2.min()) < 0 or not np.allclose([p1.sum(), p2.sum()], 1):
        raise SettingsError("laws are probabilities that sum to 1")
    if not (a1 > 0 and a2 > 0):
        raise SettingsError(f"weights {a1} and {a2}; a group that never comes has no say, use > 0")
    return p1, p2
