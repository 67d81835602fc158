"""Texts made up in the way of the theory, so that what a split of layers should do is known.

As in Liang et al. 2020, section 4, there is a known variance between persons: the score of person m
is u_m'x + e, where u_m = v + r_m, r_m ~ N(0, rho^2 I) and e ~ N(0, sigma^2). With E[x x'] = I, the
error of a linear model w on person m is |w - u_m|^2. The mixture a local + (1 - a) global of least
squares is best at a known weight (`theory.closed_form`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from lgfed_core.seeds import Purpose, stream

from .texts import EACH, LABELS, PERSONS, Texts

RHOS = {"alike": 0.0, "between": 0.2, "apart": 1.0}
TITLES = {name: f"made-up texts, rho {rho:g}" for name, rho in RHOS.items()}
SIGMA, LENGTH = 1.0, 2.0  # of the noise; of v
FEATURES, WORDS, PER_TEXT = 8, 300, 20  # d, the vocabulary, words of a text


@dataclass(frozen=True, eq=False)
class Made:
    """Made-up texts, and what they were made of: features x [n, d], scores [n], teachers [m, d]."""

    texts: Texts
    x: NDArray
    score: NDArray
    teachers: NDArray


def made_up(rho: float, seed: int, persons: int = PERSONS, each: int = EACH) -> Made:
    """Texts of `PER_TEXT` random words; x is their vectors' sum, scaled so that E[x x'] = I.

    A label says in which fifth the score is, of all that such persons could have.
    """
    rng = stream(seed, Purpose.CLIENTS)
    vectors = _whitened(rng.standard_normal((WORDS, FEATURES)))
    aim, own = rng.standard_normal(FEATURES), rng.standard_normal((persons, FEATURES))
    teachers = LENGTH * aim / np.linalg.norm(aim) + rho * own  # u_m
    drawn = rng.integers(WORDS, size=(persons * each, PER_TEXT))
    x = vectors[drawn].sum(1) / np.sqrt(PER_TEXT)  # [n, d]
    who = np.repeat(np.arange(persons), each)
    score = (x * teachers[who]).sum(1) + SIGMA * rng.standard_normal(len(who))
    names = np.array([f"w{i}" for i in range(WORDS)])
    texts = Texts(
        f"made-up texts, rho {rho:g}",
        who,
        tuple(map(tuple, names[drawn].tolist())),
        fifth(score, rho),
        dict(zip(names.tolist(), vectors, strict=True)),
    )
    return Made(texts, x, score, teachers)


def fifth(score: NDArray, rho: float) -> NDArray:
    """In which fifth a score is of all that persons with this ``rho`` could have, from 0 to 4."""
    spread = np.sqrt(LENGTH**2 + FEATURES * rho**2 + SIGMA**2)
    return np.minimum((LABELS * norm.cdf(score / spread)).astype(np.int64), LABELS - 1)


def _whitened(z: NDArray) -> NDArray:
    """z [w, d] moved and turned so that its rows have mean 0 and covariance I."""
    z = z - z.mean(0)
    return z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T
