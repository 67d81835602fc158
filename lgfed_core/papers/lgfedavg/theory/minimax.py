"""Is the representation at the minimax solution independent of the protected attribute?

Liang et al. 2020 (v2), Proposition 3; 2019 (v1), Proposition 1, after Louppe, Kagan and Cranmer
(2017). An encoder f(h|x), a head g(y|h) and an adversary a(p|h) play

    min over f, g   max over a   E_{x,y}[-log sum_h g(y|h) f(h|x)] - lambda E_{h,p}[-log a(p|h)],

v2 eqs (41), (46), (47), (52). The best adversary knows p(p|h), which leaves H(P|H) of its loss. The
proposition: *if* the value is H(Y|X) - H(P), then H is independent of P. Here X, Y, P take finitely
many values, and the game is solved, not trained: the encoder may draw the label itself (the page
says why), so that one minimises over the table q(y|x)

    F(q) = E[-log q(Y|X)] + lambda I(Yhat; P),        Yhat ~ q(.|X),                       (`solve`)

which is convex: its gradient bounds the distance of any q from the least F, and a solution comes
with its proof. The page says when the bound of the proposition is reached.

Entropies are in nats. A joint law is an array [x, y, p] that sums to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, root
from scipy.special import rel_entr, softmax

from lgfed_core.errors import SettingsError
from lgfed_core.evidence.verdict import Evidence
from lgfed_core.metrics.information import entropy, information


@dataclass(frozen=True)
class Solution:
    """A minimax solution.

    value: cross_entropy - strength * H(P|H), v2 eq. (49) and (52); information: I(H; P);
    encoder [x, h]: f(h|x), for `solve` with h the label that is predicted; gap: the value is at
    most so much above the least one (0 where all encoders were tried). In nats.
    """

    value: float
    cross_entropy: float
    information: float
    encoder: NDArray
    gap: float


def game_value(
    joint: NDArray, encoder: NDArray, head: NDArray, strength: float = 1.0
) -> tuple[float, float, float]:
    """(value, cross-entropy, I(H; P)) of encoder [x, h] and head [h, y] against the best adversary.

    v2, eqs (46), (47) and (49). The value is infinite where a label that occurs is ruled out.
    """
    joint = _checked(joint)
    xy = joint.sum(2)
    divergence = rel_entr(xy, xy.sum(1, keepdims=True) * (encoder @ head)).sum()
    cross_entropy = entropy(xy) - entropy(xy.sum(1)) + float(divergence)
    shared = information(encoder.T @ joint.sum(1))
    return cross_entropy + strength * (shared - entropy(joint.sum((0, 1)))), cross_entropy, shared


def solve(joint: NDArray, strength: float = 1.0, tolerance: float = 1e-9) -> Solution:
    """The minimax solution over all encoders, random ones included, and all heads.

    Minimises the convex F(q) of the module's head by BFGS on logits. ``gap`` bounds F(q) - min F:
    for convex F it is at most max over q' of <grad F(q), q - q'>, a maximum taken row by row.
    Raises SettingsError when the gap stays above ``tolerance`` nats.
    """
    joint = _checked(joint)
    xy, xp = joint.sum(2), joint.sum(1)
    labels = np.eye(joint.shape[1])

    def gradient(q):
        yp = q.T @ xp  # [y, p], the joint law of Yhat and P
        ratio = yp / (yp.sum(1, keepdims=True) * yp.sum(0, keepdims=True))
        return -xy / q + strength * xp @ np.log(ratio).T

    def prediction(logits):  # [x * (labels - 1)], the first label's logit being 0
        return softmax(np.pad(logits.reshape(len(xy), -1), ((0, 0), (1, 0))), axis=1)

    def slope(logits):
        q = prediction(logits)
        down = gradient(q)
        return (q * (down - (q * down).sum(1, keepdims=True)))[:, 1:].ravel()

    def value(logits):
        return game_value(joint, prediction(logits), labels, strength)[0]

    start = np.log(xy / xy.sum(1, keepdims=True) + 0.1)
    start = (start[:, 1:] - start[:, :1]).ravel()
    near = minimize(value, start, jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    gap, q = np.inf, None
    for logits in (near, root(slope, near, tol=1e-14).x):
        tried = prediction(logits)
        down = gradient(tried)
        distance = float(((tried * down).sum(1) - down.min(1)).sum())
        if distance < gap:
            gap, q = distance, tried
    if not gap <= tolerance:
        raise SettingsError(f"solved to {gap:.1e} nats only, {tolerance:.0e} were asked for")
    return Solution(*game_value(joint, q, labels, strength), q, gap)


COPIED = np.zeros((2, 2, 2))  # the law of X = Y = P
COPIED[[0, 1], [0, 1], [0, 1]] = 0.5


def claim_l20() -> Evidence:
    """L20: at the minimax solution H is independent of P. Refuted by one exact counterexample.

    The estimate is I(H; P) in nats for X = Y = P, the same at every minimax solution. There is no
    chance in it: the p-value against the claim is 0 where the case is one, else 1.
    """
    found = solve(COPIED)
    shared, sure = found.information, found.gap < 1e-12
    against = 0.0 if sure and shared > 1e-3 else 1.0
    return Evidence(shared, shared, shared, 1.0, against)


def _checked(joint: NDArray) -> NDArray:
    joint = np.asarray(joint, float)
    if joint.ndim != 3 or (joint < 0).any() or not np.isclose(joint.sum(), 1):
        raise SettingsError("a joint law is an array [x, y, p] of probabilities that sum to 1")
    if any((joint.sum(tuple({0, 1, 2} - {axis})) == 0).any() for axis in range(3)):
        raise SettingsError("every value of X, Y and P must occur: drop those with probability 0")
    return joint
