"""What a goal says: how much can be had without a picture, and what is sent up to other goals."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch

from lgfed_core.data.questions import Asked
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NOT_RUN

from ..communication.counts import System
from .run import ids
from .settings import Settings

GOALS = (40, 44, 48, 50)  # percent; the first is the paper's
BEST = "the device's own commonest answer to the question"


def floors(cfg: Settings, asked: Asked, seeds: Iterable[int]) -> pd.DataFrame:
    """Mean local test accuracy, in percent, of four answerers who see no picture, by seed.

    One says the commonest answer of all training questions; one, on each device, the commonest
    there; one the commonest to this very question, of all; and one that of the device's own.
    """
    train, test = asked.data.train, asked.data.test
    pixels = 3 * asked.side**2
    told = [[tuple(row) for row in part.x[:, pixels:].tolist()] for part in (train, test)]
    common, known = int(train.y.bincount().argmax()), _commonest(told[0], train.y.tolist())
    lines = {}
    for seed in seeds:
        split, right = cfg.split(asked, seed), defaultdict(list)
        for k in range(len(split)):
            mine, asks = split.train.of(k), split.test.of(k)
            y, words = test.y[asks], [told[1][i] for i in asks.tolist()]
            own = _commonest([told[0][i] for i in mine.tolist()], train.y[mine].tolist())
            at_home = int(train.y[mine].bincount().argmax())
            answers = {
                "the commonest answer of all": [common] * len(y),
                "the device's own commonest answer": [at_home] * len(y),
                "the commonest answer to the question": [known.get(w, common) for w in words],
                BEST: [own.get(w, known.get(w, common)) for w in words],
            }
            for name, said in answers.items():
                right[name].append(float((torch.tensor(said) == y).float().mean()))
        lines[seed] = {name: 100 * np.mean(values) for name, values in right.items()}
    return pd.DataFrame(lines).T.rename_axis("seed")


def _commonest(questions: Sequence[tuple], answers: Sequence[int]) -> dict[tuple, int]:
    """To each question its commonest answer."""
    found: dict[tuple, Counter] = defaultdict(Counter)
    for words, y in zip(questions, answers, strict=True):
        found[words][y] += 1
    return {words: counts.most_common(1)[0][0] for words, counts in found.items()}


def blind(found: pd.DataFrame, goal: float) -> str:
    """Whether the goal can be had without a picture, in Markdown; found: of `floors`."""
    mean = found.mean()
    # False if the best answerer without a picture fell to the other side of the goal.
    there = mean.max() >= 100 * goal
    return (
        f"**The goal of {100 * goal:g} % {'can' if there else 'cannot'} be had without looking at "
        f"a picture**: {mean.idxmax()} is right in {mean.max():.1f} %. "
        f"So reaching the goal {'does not show' if there else 'shows'} that a method looks."
    )


def by_goal(curves: pd.DataFrame, cfg: Settings, own: System) -> pd.DataFrame:
    """What LG-FedAvg has sent up to each of `GOALS`, in percent of what FedAvg has.

    curves: of `tables.curves`; own: what a round sends. A line per goal: how many seeds get there
    with either line, and of those with LG-FedAvg the geometric mean of the percent, with the least
    and the most. Where FedAvg does not get there, all of its rounds are counted, and the percent is
    at most that.
    """
    lines = {}
    for goal in GOALS:
        fed, lg = (_reached(curves, line, goal) for line in ("fedavg", "lg_fedavg"))
        both = pd.DataFrame(dict(fed=fed, lg=lg))
        there = both.dropna(subset="lg")
        sent = own.papers(1, 0) * there["fed"].fillna(cfg.rounds)
        share = 100 * (own.papers(cfg.start, 0) + own.papers(0, 1) * there["lg"]) / sent
        mean = f"{np.exp(np.log(share).mean()):.0f}" if len(share) else NOT_RUN
        lines[f"{goal} %"] = {
            "FedAvg there, seeds": f"{both['fed'].notna().sum()} of {len(both)}",
            "LG-FedAvg there, seeds": f"{len(there)} of {len(both)}",
            "sent, % of FedAvg's": mean,
            "from, to": f"{share.min():.0f}, {share.max():.0f}" if len(share) else "",
        }
    return pd.DataFrame(lines).T


def _reached(curves: pd.DataFrame, line: str, goal: float) -> pd.Series:
    """By seed, the first round (of the line) with the goal on validation rows; NaN where none."""
    where = {name: ids(line)[name] for name in ("method", "start")}
    mine = select(curves, metric="validation_acc", **where)
    rounds = mine["round"].astype(float).where(mine["value"] >= goal)
    return rounds.groupby(mine["seed"]).min()
