"""Curves of the page on questions about pictures, and how far answers come without a picture."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from lgfed_core.data.questions import Asked
from lgfed_core.evidence.records import select

from .run import CURVES, LONG, NAME, ids
from .settings import Settings

LINES = {
    "fedavg": "FedAvg",
    "lg_fedavg": "LG-FedAvg from FedAvg's model",
    "lg_scratch": "LG-FedAvg from the first weights",
}


def curves() -> pd.DataFrame:
    """Accuracies by round at paper scale: columns method, start, seed, round, metric, value."""
    columns = ("method", "start", "round")
    return select(NAME, columns=columns, own=True, table=CURVES, scale="paper")


def longer() -> pd.DataFrame:
    """The recorded rows of longer runs, of each line and rate the longest: method, start, lr,
    long, round, seed, metric, value."""
    columns = ("method", "start", "round", "lr", "long")
    found = select(NAME, columns=columns, table=LONG, scale="paper")
    found = found.astype(dict(lr=float, round=float, long=int))
    longest = found.groupby(["method", "start", "lr"])["long"].transform("max")
    return found[found["long"] == longest]


def by_line(curves: pd.DataFrame, start: int) -> dict[str, pd.DataFrame]:
    """Local test of each of `LINES` that ran, in percent: index round in all, a column per seed.

    curves: of `curves`, `longer` at one rate or `Questions.progress`. start: rounds of FedAvg
    before LG-FedAvg goes on from its model.
    """
    found = {}
    for line in LINES if len(curves) else ():
        where = {name: ids(line)[name] for name in ("method", "start")}
        mine = select(curves, metric="local_test_acc", **where)
        if len(mine):
            found[line] = mine.pivot_table("value", "round", "seed")
            found[line].index += start if line == "lg_fedavg" else 0
    return found


def floors(cfg: Settings, asked: Asked, seeds: Iterable[int]) -> pd.DataFrame:
    """Mean local test accuracy, in percent, of two answerers who see no picture, by seed.

    "one answer": the commonest of all training questions. "own answers": on each device its
    commonest to this very question; of a question it has not had, the commonest of all devices.
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
            own = known | _commonest([told[0][i] for i in mine.tolist()], train.y[mine].tolist())
            y, said = test.y[asks].numpy(), [own.get(told[1][i], common) for i in asks.tolist()]
            right["one answer"].append((y == common).mean())
            right["own answers"].append((y == said).mean())
        lines[seed] = {name: 100 * np.mean(values) for name, values in right.items()}
    return pd.DataFrame(lines).T.rename_axis("seed")


def _commonest(questions: Sequence[tuple], answers: Sequence[int]) -> dict[tuple, int]:
    """To each question its commonest answer."""
    found: dict[tuple, Counter] = defaultdict(Counter)
    for words, y in zip(questions, answers, strict=True):
        found[words][y] += 1
    return {words: counts.most_common(1)[0][0] for words, counts in found.items()}
