"""What needs no network: linear models of texts made up for them, and simple rules on any texts.

The texts are made up in the way of the theory (Liang et al. 2020, section 4), with a known variance
between persons: the score of person m is u_m'x + e, where u_m = v + r_m, r_m ~ N(0, rho^2 I) and
e ~ N(0, sigma^2). With E[x x'] = I, the error of a model w on person m is |w - u_m|^2. The mixture
a local + (1 - a) global of least squares is best at a known weight (`theory.closed_form`), which
says what a split of layers can be expected to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream

from ..theory.closed_form import Problem, Terms, finite_sample, normal
from .texts import EACH, LABELS, PERSONS, Texts, split

RHOS = {"alike": 0.0, "between": 0.2, "apart": 1.0}
TITLES = {name: f"made-up texts, rho {rho:g}" for name, rho in RHOS.items()}
SIGMA, LENGTH = 1.0, 2.0  # of the noise; of v
FEATURES, WORDS, PER_TEXT = 8, 300, 20  # d, the vocabulary, words of a text
SEEDS = range(30)  # draws of which an accuracy is the mean


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


def predicted(rho: float, persons: int = PERSONS, each: int = EACH) -> Terms:
    """The terms of the expected error, for as many training rows as a person has."""
    rows = each - 2 * max(1, round(each / 10))
    return finite_sample(Problem(rho, SIGMA, normal(FEATURES), persons, rows))


def fits(made: Made, seed: int) -> tuple[NDArray, NDArray]:
    """Least squares on training rows: of each person [m, d], and of all together [d]."""
    rows = rows_of(split(made.texts, seed).train)
    local = np.stack([np.linalg.lstsq(made.x[r], made.score[r])[0] for r in rows])
    every = np.concatenate(rows)
    return local, np.linalg.lstsq(made.x[every], made.score[every])[0]


def rows_of(devices: ClientIndices) -> list[NDArray]:
    """The row numbers of each device."""
    return [devices.of(k).numpy() for k in range(len(devices))]


def accuracies(rho: float, seeds: Sequence[int] = SEEDS) -> pd.Series:
    """Percent of test texts whose fifth is found: by each model, and by the person's own teacher,
    which is as good as a model can be expected to be. The mixture has the predicted weight."""
    weight, found = predicted(rho).best_weight, []
    for seed in seeds:
        made = made_up(rho, seed)
        local, shared = fits(made, seed)
        models = {
            "local only": local,
            "global": np.tile(shared, (len(local), 1)),
            "mixture": weight * local + (1 - weight) * shared,
            "teacher": made.teachers,
        }
        test = np.concatenate(rows_of(split(made.texts, seed).test))
        x, who, label = made.x[test], made.texts.person[test], made.texts.label[test]
        guesses = {name: fifth((x * w[who]).sum(1), rho) for name, w in models.items()}
        found.append({name: (guess == label).mean() for name, guess in guesses.items()})
    return 100 * pd.DataFrame(found).mean()


def alone(texts: Texts, seeds: Sequence[int]) -> pd.DataFrame:
    """Percent of test texts that simple rules get right: a line per split (seed), a column a rule.

    The commonest label of all training texts; and logistic regression on counts of words (tf-idf),
    without and with who wrote them.
    """
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    words = TfidfVectorizer(analyzer=list, min_df=2).fit_transform(texts.words)
    persons = OneHotEncoder().fit_transform(texts.person[:, None])
    inputs = {"words": words, "words and person": hstack([words, persons]).tocsr()}
    label, lines = texts.label, {}
    for seed in seeds:
        part = split(texts, seed)
        train, test = (np.concatenate(rows_of(rows)) for rows in (part.train, part.test))
        guesses = {"commonest label": np.bincount(label[train]).argmax()}
        for name, x in inputs.items():
            model = LogisticRegression(C=3.0, max_iter=500).fit(x[train], label[train])
            guesses[name] = model.predict(x[test])
        lines[seed] = {name: 100 * (guess == label[test]).mean() for name, guess in guesses.items()}
    return pd.DataFrame(lines).T.rename_axis("seed")
