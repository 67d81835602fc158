"""The theory's own models on made-up texts: least squares on what the texts were made of.

With x known and E[x x'] = I, the error of a model w on person m is |w - u_m|^2. The mixture
a local + (1 - a) global is best at a known weight (`theory.closed_form`), which says what a split
of layers can be expected to do: rho and sigma are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ..theory.closed_form import Problem, Terms, finite_sample, normal
from . import stand_in_people
from .stand_in_people import EACH, FEATURES, PERSONS, SIGMA, Made
from .texts import split

SEEDS = range(30)  # draws of which a table is the mean


def predicted(rho: float, persons: int = PERSONS, each: int = EACH) -> Terms:
    """The terms of the expected error, for as many training rows as a person has."""
    rows = each - 2 * max(1, round(each / 10))
    return finite_sample(Problem(rho, SIGMA, normal(FEATURES), persons, rows))


def fits(made: Made, seed: int) -> tuple[NDArray, NDArray]:
    """Least squares on training rows: of each person [m, d], and of all together [d]."""
    part = split(made.texts, seed)
    rows = [part.train.of(k).numpy() for k in range(len(part))]
    local = np.stack([np.linalg.lstsq(made.x[r], made.score[r])[0] for r in rows])
    every = np.concatenate(rows)
    return local, np.linalg.lstsq(made.x[every], made.score[every])[0]


def errors(rho: float, alpha: ArrayLike, seeds: Sequence[int] = SEEDS) -> NDArray:
    """Measured error of the mixture whose *global* weight is alpha [a] -> [seeds, a]."""
    found = []
    for seed in seeds:
        made = stand_in_people.made_up(rho, seed)
        local, shared = fits(made, seed)
        a = np.asarray(alpha)[:, None, None]  # [a, 1, 1]
        off = (1 - a) * local + a * shared - made.teachers  # [a, m, d]
        found.append((off**2).sum(-1).mean(-1))
    return np.stack(found)


def accuracies(rho: float, seeds: Sequence[int] = SEEDS) -> pd.Series:
    """Percent of test texts whose fifth is found: by each model, and by the person's own teacher,
    which is as good as a model can be expected to be. The mixture has the predicted weight."""
    weight = predicted(rho).best_weight
    found = []
    for seed in seeds:
        made = stand_in_people.made_up(rho, seed)
        local, shared = fits(made, seed)
        part = split(made.texts, seed)
        models = {
            "local only": local,
            "global": np.tile(shared, (len(local), 1)),
            "mixture": weight * local + (1 - weight) * shared,
            "teacher": made.teachers,
        }
        rows = [part.test.of(k).numpy() for k in range(len(part))]
        found.append(
            {
                name: np.concatenate(
                    [
                        stand_in_people.fifth(made.x[r] @ w[k], rho) == made.texts.label[r]
                        for k, r in enumerate(rows)
                    ]
                ).mean()
                for name, w in models.items()
            }
        )
    return 100 * pd.DataFrame(found).mean()


def table(seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """By rho: the best global weight, predicted and measured; error at both ends and there."""
    lines = {}
    for name, rho in stand_in_people.RHOS.items():
        grid = np.linspace(0, 1, 101)
        mean, terms = errors(rho, grid, seeds).mean(0), predicted(rho)
        lines[stand_in_people.SOURCES[name]] = {
            "best global weight, predicted": 1 - terms.best_weight,
            "measured": grid[mean.argmin()],
            "error local only": mean[0],
            "error mixture": mean.min(),
            "error global": mean[-1],
        } | {f"accuracy {name}": value for name, value in accuracies(rho, seeds).items()}
    return pd.DataFrame(lines).T
