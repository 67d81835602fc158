"""Small laws of (X, Y, P) on which Proposition 3 is tried, and claim L20.

P is a fair coin throughout. Solved by `minimax`; entropies in nats.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from lgfed_core.errors import SettingsError
from lgfed_core.evidence.verdict import Evidence

from . import minimax


def through_x(x_given_p: ArrayLike, y_given_x: ArrayLike) -> NDArray:
    """P moves X and X moves Y: x_given_p [p, x], y_given_x [x] = p(Y=1|x) -> joint [x, y, p]."""
    x_given_p, y = np.asarray(x_given_p, float), np.asarray(y_given_x, float)
    return np.einsum("px,xy->xyp", x_given_p / len(x_given_p), np.stack([1 - y, y], 1))


def proxy(reliance: float, leak: float = 0.9) -> NDArray:
    """A merit and a proxy: X = (S, T), S a fair coin, T = P with probability ``leak``.

    p(Y=1|s,t) = 0.5 + 0.3 (2s - 1) + reliance (2t - 1). At reliance 0 the proxy is idle, Y depends
    on the merit alone and is independent of P. Raises SettingsError beyond |reliance| = 0.2.
    """
    if abs(reliance) > 0.2:
        raise SettingsError(f"reliance {reliance} makes a probability leave [0, 1]; at most 0.2")
    s, t = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]).T
    x_given_p = [0.5 * np.where(t == p, leak, 1 - leak) for p in (0, 1)]
    return through_x(x_given_p, 0.5 + 0.3 * (2 * s - 1) + reliance * (2 * t - 1))


def cases() -> dict[str, NDArray]:
    """Name -> joint law. The first four obey "P reaches Y through X alone", the last two do not."""
    sign = np.array([-1.0, 1.0])
    coin = np.full((2, 2), 0.25)  # p(x, p), independent
    skip = 0.5 + 0.3 * sign[:, None] + 0.15 * sign  # p(Y=1|x, p)
    lean = np.where(np.eye(2), 0.4, 0.1)  # p(x, y)
    hide = 0.5 + 0.3 * sign[:, None] - 0.18 * sign  # p(P=1|x, y)
    return {
        "only merit counts": proxy(0.0),
        "equal means, unequal spread": through_x([[0.5, 0.5, 0], [0, 0, 1]], [0.2, 0.8, 0.5]),
        "the proxy counts": proxy(0.15),
        "X = Y = P": through_x(np.eye(2), [0.0, 1.0]),
        "P acts past X": np.stack([coin * (1 - skip), coin * skip], axis=1),
        "P hides behind X": np.stack([lean * (1 - hide), lean * hide], axis=2),
    }


def table() -> pd.DataFrame:
    """The cases, solved. Index: names. Columns, in nats but for the second:

    I(Y;P); by how much the groups' mean predictions differ (`minimax.parity_gap`); for any encoder
    the value above the bound, I(H;P) and the certified gap; for h = f(x) the first two of these.
    """
    lines = {}
    for name, joint in cases().items():
        free, plain = minimax.solve(joint), minimax.solve_deterministic(joint)
        least = minimax.bound(joint)
        lines[name] = {
            ("the law", "I(Y;P)"): minimax.information(joint.sum(0)),
            ("the law", "group means differ by"): minimax.parity_gap(joint),
            ("any encoder", "above bound"): free.value - least,
            ("any encoder", "I(H;P)"): free.information,
            ("any encoder", "certified to"): free.gap,
            ("h = f(x)", "above bound"): plain.value - least,
            ("h = f(x)", "I(H;P)"): plain.information,
        }
    return pd.DataFrame(lines).T


def sweep(reliance: Iterable[float], strength: Iterable[float]) -> pd.DataFrame:
    """`proxy` solved for all pairs of reliance and lambda, among any encoders and h = f(x).

    Columns: reliance, strength, encoders ("any", "function"), above (value less `minimax.bound`),
    information (I(H;P)).
    """
    lines = []
    for r, s in product(reliance, strength):
        joint = proxy(r)
        for encoders, solver in (("any", minimax.solve), ("function", minimax.solve_deterministic)):
            found = solver(joint, s)
            above = found.value - minimax.bound(joint, s)
            lines.append((r, s, encoders, above, found.information))
    return pd.DataFrame(lines, columns=["reliance", "strength", "encoders", "above", "information"])


def claim_l20() -> Evidence:
    """L20: at the minimax solution H is independent of P. Refuted by one exact counterexample.

    The estimate is I(H; P) in nats for X = Y = P, the same at every minimax solution. There is no
    chance in it: the p-value against the claim is 0 where the case is one, else 1.
    """
    found = minimax.solve(cases()["X = Y = P"])
    shared, sure = found.information, found.gap < 1e-12
    against = 0.0 if sure and shared > 1e-3 else 1.0
    return Evidence(shared, shared, shared, 1.0, against)
