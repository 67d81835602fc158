"""Vanilla and squared adversarial loss under imbalance: what D learns, what the encoder feels.

Hong et al. 2021 (FADE), sections 4.1 and 4.2. Group i has weight a_i and codes z ~ p_i. With
x = -log D(z) in group 1 and -log(1 - D(z)) in group 2, l_i = E_pi[x] is its cross-entropy. Each
user has a loss V_i; D minimises a1 V_1 + a2 V_2, and the encoder maximises what D has reached:

=====================  ==================  =====================================================
`VANILLA`              V = l               eqs (3), (4)
`BATCH_MEAN`           V = l^2 / 2         power of the batch mean: the released code
`PER_SAMPLE`           V = E[x^2] / 2      power per sample: eq. (7) with its sign, q = 2
=====================  ==================  =====================================================

All are convex in the logits of D: the best D is unique. That of the power of the mean is the one of
eq. (5) with weights w_i = a_i l_i in place of a_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from lgfed_core.errors import SettingsError

from .closed_form import laws


@dataclass(frozen=True)
class Loss:
    """V(l): l itself, or half its square, of the batch mean or ``per_sample``."""

    name: str
    squared: bool = False
    per_sample: bool = False

    def value(self, p: NDArray, x: NDArray) -> float:
        """V for errors x [k] under the law p [k]."""
        if self.per_sample:
            return float(p @ x**2) / 2
        return float(p @ x) ** 2 / 2 if self.squared else float(p @ x)

    def slope(self, p: NDArray, x: NDArray) -> NDArray:
        """dV/dx divided by p [k]: the weight with which V listens to an error x."""
        if self.per_sample:
            return x
        return np.full_like(x, p @ x if self.squared else 1.0)


VANILLA = Loss("vanilla")
BATCH_MEAN = Loss("squared, power of the batch mean", squared=True)
PER_SAMPLE = Loss("squared, power per sample", squared=True, per_sample=True)
LOSSES = (VANILLA, BATCH_MEAN, PER_SAMPLE)


def best_logits(p1: ArrayLike, p2: ArrayLike, a1: float, a2: float, loss: Loss) -> NDArray:
    """The logits [k] of the D that minimises a1 V_1 + a2 V_2, by Newton's method.

    Raises SettingsError where a law has no mass at a value, or the gradient does not vanish.
    """
    p1, p2 = laws(p1, p2, a1, a2)
    if min(p1.min(), p2.min()) <= 0:
        raise SettingsError("D is infinite where one group has no mass: both need some everywhere")
    of_mean = loss.squared and not loss.per_sample
    t = np.log(a1 * p1) - np.log(a2 * p2)  # [k], eq. (5): the answer for the vanilla loss
    for _ in range(100):
        D, E, (x1, x2) = expit(t), expit(-t), _errors(t)  # E = 1 - D, to the last digit
        s1, s2 = loss.slope(p1, x1), loss.slope(p2, x2)
        down = a2 * p2 * D * s2 - a1 * p1 * E * s1  # [k]
        if np.abs(down).max() < 1e-13 * (a1 + a2):
            return t
        curve = D * E * (a1 * p1 * s1 + a2 * p2 * s2)
        curve += loss.per_sample * (a1 * p1 * E**2 + a2 * p2 * D**2)
        ends = np.stack([p1 * E, p2 * D]) * of_mean  # [2, k]
        hessian = np.diag(curve) + (ends.T * [a1, a2]) @ ends
        step = np.linalg.solve(hessian, -down).clip(-4, 4)
        now = _total(p1, p2, a1, a2, t, loss)
        size = 1.0
        while _total(p1, p2, a1, a2, t + size * step, loss) > now + 1e-15 and size > 1e-6:
            size /= 2
        t = t + size * step
    if np.abs(down).max() > 1e-9 * (a1 + a2):
        raise SettingsError(f"no best D found: gradient {np.abs(down).max():.1e} after 100 steps")
    return t


def least_loss(p1: ArrayLike, p2: ArrayLike, a1: float, a2: float, loss: Loss) -> float:
    """min over D of a1 V_1 + a2 V_2, which the encoder maximises; for `VANILLA` it is -D~."""
    p1, p2 = laws(p1, p2, a1, a2)
    return _total(p1, p2, a1, a2, best_logits(p1, p2, a1, a2, loss), loss)


def matched_output(a1: float, a2: float, loss: Loss) -> float:
    """d, the output of the best D where p1 = p2; the same for all squared losses.

    d (1 - d) is the sensitivity of D to log p1, which section 4.1 reads off eq. (5).
    """
    if not loss.squared:
        return a1 / (a1 + a2)

    def balance(t):  # t = logit of d
        up, down = _errors(t)
        return np.log(a1 * up) - np.log(a2 * down) - t

    return float(expit(brentq(balance, -60, 60, xtol=1e-13)))


def matched_pull(a1: float, a2: float, loss: Loss) -> float:
    """Pull on the encoder per unit of distance, groups N(delta, 1) and N(0, 1), delta -> 0.

    a1 V'_1 (1 - d) / c, where V' is 1 (vanilla) or -log d (squared), and c is 1 + the change that
    D's own step makes to the per-sample weights: c = 1 + d/(-log(1-d)) + (1-d)/(-log d).
    Vanilla: a1 a2 / (a1 + a2).
    """
    d = matched_output(a1, a2, loss)
    if not loss.squared:
        return a1 * (1 - d)
    up, down = -np.log(d), -np.log1p(-d)
    return float(a1 * up * (1 - d) / (1 + loss.per_sample * (d / down + (1 - d) / up)))


def _errors(t: NDArray) -> tuple[NDArray, NDArray]:
    """-log D and -log(1 - D) at logits t."""
    return -log_expit(t), -log_expit(-t)


def _total(p1, p2, a1, a2, t, loss) -> float:
    x1, x2 = _errors(t)
    return a1 * loss.value(p1, x1) + a2 * loss.value(p2, x2)
