"""Longer runs: have the curves levelled, and who is ahead where they have? Of our own."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.papers.differences import table

from . import tables
from .run import LONG, NAME
from .settings import Settings


def stored(scale: str = "paper") -> pd.DataFrame:
    """The recorded rows of longer runs, of each line and rate the longest: method, start, lr,
    long, round, seed, metric, value."""
    columns = ("method", "start", "round", "lr", "long")
    found = select(NAME, columns=columns, table=LONG, scale=scale)
    found = found.astype(dict(lr=float, round=float, long=int))
    longest = found.groupby(["method", "start", "lr"])["long"].transform("max")
    return found[found["long"] == longest]


def by_rate(rows: pd.DataFrame, start: int) -> dict[float, dict[str, pd.DataFrame]]:
    """`tables.by_line` of each learning rate, by round in all; rows: of `stored`.

    start: rounds of FedAvg before LG-FedAvg goes on from its model.
    """
    found = {lr: tables.by_line(mine) for lr, mine in rows.groupby("lr")}
    for lines in found.values():
        if "lg_fedavg" in lines:
            lines["lg_fedavg"].index += start
    return found


def late(rows: pd.DataFrame) -> pd.DataFrame:
    """`tables.late` of each learning rate, a line per line; rows: of `stored`."""
    found = {f"rate {lr:g}": tables.late(mine) for lr, mine in rows.groupby("lr")}
    return pd.concat(found) if found else pd.DataFrame()


def ahead(rows: pd.DataFrame) -> str:
    """LG-FedAvg less FedAvg, in points of local test, after as many rounds in all as both have.

    rows: of `stored`. Both have the same learning rate, and are compared over the seeds that both
    have run so far.
    """
    pairs = []
    for lr, lines in by_rate(rows, Settings.start).items():
        for line, words in (("lg_fedavg", "FedAvg's model"), ("lg_scratch", "the first weights")):
            if line in lines and "fedavg" in lines:
                mine, fed = lines[line], lines["fedavg"]
                if both := sorted({*mine.index} & {*fed.index}):
                    name = f"from {words}, rate {lr:g}, round {int(both[-1])}"
                    pairs.append((name, mine.loc[both[-1]], fed.loc[both[-1]]))
    return table(
        "LG-FedAvg minus FedAvg after the last common round, points on own classes",
        pairs,
        1,
        fewest=2,
    )
