"""Whose texts stand in for the private study of 14 adolescents with 572 texts.

``chats``: real ones. Of the Chit-Chat conversations (Myers et al. 2020), what one person typed in
one conversation is a text, and its mood how upbeat the conversation was rated, from 1 to 10. The
others are made up in the way of the theory (Liang et al. 2020, section 4), with a known variance
between persons: the score of person m is u_m'x + e, where u_m = v + r_m, r_m ~ N(0, rho^2 I) and
e ~ N(0, 1).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from lgfed_core import data
from lgfed_core.errors import DataError
from lgfed_core.seeds import Purpose, stream

from .texts import LABELS, Texts, binned, words_of

PERSONS, EACH = 14, 41  # as many as in the study: 14 persons, 572 texts
RHOS = {"alike": 0.0, "between": 0.2, "apart": 1.0}
SOURCES = {"chats": "chats, how upbeat"} | {
    name: f"made-up texts, rho {rho:g}" for name, rho in RHOS.items()
}
SIGMA, LENGTH = 1.0, 2.0  # of the noise; of v
FEATURES, WORDS, PER_TEXT = 8, 300, 20  # d, the vocabulary, words of a text
UNTOUCHED = {"witty": 5, "upbeat": 5, "interesting": 5}  # where the three sliders begin


@lru_cache(4)
def chats(persons: int = PERSONS, each: int = EACH) -> Texts:
    """The first ``each`` texts of the ``persons`` with most of them.

    Left out are conversations without a rating, or with all three sliders where they begin, and
    people who said nothing. Raises DataError where the set cannot be had, or has too few.
    """
    return chats_of(data.get("chitchat") / "dataset.json", persons, each)


def chats_of(path: Path, persons: int, each: int) -> Texts:
    """`chats` from a file. Raises DataError where it is not what it should be."""
    said: dict[str, list[tuple]] = defaultdict(list)
    try:
        with path.open(encoding="utf-8") as file:
            for talk in json.load(file).values():
                rating = talk.get("ratings")
                if not rating or rating == UNTOUCHED:
                    continue
                own = defaultdict(list)
                for message in (m for turn in talk["messages"] for m in turn):
                    own[message["sender"]] += words_of(message["text"])
                for who, words in own.items():
                    if words:
                        said[who].append((talk["start"], tuple(words), rating["upbeat"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not the Chit-Chat set: {error!r}; fetch it again") from error
    many = Counter({who: len(texts) for who, texts in said.items()})
    taken = [who for who, n in sorted(many.items(), key=lambda m: (-m[1], m[0])) if n >= each]
    if len(taken) < persons:
        raise DataError(f"{path}: {len(taken)} people have {each} texts, not {persons}")
    lines = [(who, *text) for who in taken[:persons] for text in sorted(said[who])[:each]]
    person, _, words, upbeat = zip(*lines, strict=True)
    return Texts(SOURCES["chats"], np.array(person), words, binned(upbeat, 1, 10) - 1)


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
    names = [f"w{i}" for i in range(WORDS)]
    texts = Texts(
        f"made-up texts, rho {rho:g}",
        who,
        tuple(tuple(names[i] for i in row) for row in drawn),
        fifth(score, rho),
        dict(zip(names, vectors, strict=True)),
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


def texts_of(source: str, seed: int, persons: int = PERSONS, each: int = EACH) -> Texts:
    """The texts of one of `SOURCES`; those that are made up belong to a seed."""
    if source == "chats":
        return chats(persons, each)
    return made_up(RHOS[source], seed, persons, each).texts
