"""Seeds come in steps, so that nobody stops because a verdict pleases.

Before anything runs it is fixed that a comparison is judged at `STEPS` seeds. At each step it is
*decided* (for or against, alike) or goes on to the next; after the last one it stays open. Looking
several times errs more often than looking once: `errors` says by how much.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from .verdict import reach_of

STEPS = (3, 5, 10)


def next_step(seeds: int) -> int | None:
    """The step after ``seeds`` runs; None after the last."""
    return next((step for step in STEPS if step > seeds), None)


def standing(seeds: int) -> str:
    """At which step a verdict on so many seeds stands: "at 3 seeds", "between 3 and 5 seeds"."""
    after = next_step(seeds)
    before = max((step for step in STEPS if step <= seeds), default=0)
    if before == seeds:
        return f"at {seeds} seeds"
    if not before:
        return f"before {after} seeds"
    return f"between {before} and {after} seeds" if after else f"beyond {before} seeds"


def missing(there: Collection[int], step: int) -> list[int]:
    """The seeds of 0, 1, ..., step - 1 that have not run."""
    return [seed for seed in range(step) if seed not in there]


def errors(
    true: float, margin: float, sd: float = 1.0, runs: int = 20_000, seed: int = 0
) -> pd.DataFrame:
    """How often a cell's verdict comes out which way, if ours is ``true`` off the printed number.

    true, margin, sd (of a run): in one unit; the printed mean is taken as a constant. Lines "one
    step of 10" and "steps of 3, 5, 10"; columns reproduced, differs, inconclusive (shares of
    ``runs`` simulated cells) and seeds (mean number spent).
    """
    draws = np.random.default_rng(seed).normal(true, sd, (runs, STEPS[-1]))  # [runs, seeds]
    seen = np.array([_seen(draws, n, margin) for n in STEPS])  # [looks, 2, runs]
    inside, outside = seen[:, 0], seen[:, 1]
    lines = {}
    for name, looks in (
        (f"one step of {STEPS[-1]}", [len(STEPS) - 1]),
        (f"steps of {', '.join(map(str, STEPS))}", range(len(STEPS))),
    ):
        found = (inside | outside)[list(looks)]  # [looks, runs]
        at = np.where(found.any(0), found.argmax(0), len(found) - 1)
        at = np.array(list(looks))[at]  # the look at which a cell stops
        mine = {
            "reproduced": inside[at, np.arange(runs)].mean(),
            "differs": outside[at, np.arange(runs)].mean(),
        }
        spent = np.array(STEPS)[at].mean()
        lines[name] = mine | {"inconclusive": 1 - sum(mine.values()), "seeds": spent}
    return pd.DataFrame(lines).T


def _seen(draws: NDArray, seeds: int, margin: float) -> tuple[NDArray, NDArray]:
    """Whether the 95 % interval of the first ``seeds`` lies inside the margin, and outside."""
    mean, error = draws[:, :seeds].mean(1), draws[:, :seeds].std(1, ddof=1) / np.sqrt(seeds)
    reach = reach_of(error, seeds - 1)
    return np.abs(mean) + reach <= margin, np.abs(mean) - reach > margin


def cell_chance(
    difference: float,
    sd: float,
    seeds: int,
    step: int,
    margin: float,
    paper_variance: float = 0.0,
    paper_df: int = 1,
) -> float:
    """The chance that a cell is decided at ``step`` seeds, from what ``seeds`` of them say.

    The interval at that step is taken to be as wide as ``sd`` (of a run) makes it, and its middle
    to be normal around today's, with variance sd^2 (1/seeds - 1/step): the part of it that new
    seeds can still move. Of no seeds, ours is taken to be as the paper says.
    """
    error = paper_variance + sd**2 / step
    df = error**2 / (paper_variance**2 / paper_df + (sd**2 / step) ** 2 / (step - 1) + 1e-300)
    reach = float(reach_of(np.sqrt(error), df)) if error > 0 else 0.0
    moves = error if not seeds else sd**2 * (1 / seeds - 1 / step)
    middle, spread = difference if seeds else 0.0, np.sqrt(max(moves, 1e-12))

    def below(value: float) -> float:
        return special.ndtr((value - middle) / spread)

    inside = max(0.0, below(margin - reach) - below(reach - margin))
    outside = below(-margin - reach) + 1 - below(margin + reach)
    return float(inside + outside)


def comparison_chance(p: float, seeds: int, step: int, alpha: float) -> float:
    """The chance that a one-sided t-test has a p-value below ``alpha`` at ``step`` paired seeds.

    p: its p-value today, of ``seeds`` pairs (two at least). The statistic grows with the root of
    the seeds, and scatters as the new ones do.
    """
    now = np.clip(-special.stdtrit(seeds - 1, p), -50, 50)
    more, needed = step / seeds, -special.stdtrit(step - 1, alpha)
    return float(special.ndtr((now * np.sqrt(more) - needed) / np.sqrt(more - 1)))
