"""Three times as long: have the curves levelled, and who is ahead where they have? Of our own."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.papers.in_words import sentence

from . import tables
from .run import LONG, NAME
from .settings import Settings

WORDS = ("ahead", "behind", "not shown to be ahead or behind")


def stored(scale: str = "paper") -> pd.DataFrame:
    """The recorded rows of longer runs: method, start, lr, round, seed, metric, value."""
    found = select(NAME, columns=("method", "start", "round", "lr"), table=LONG, scale=scale)
    return found.assign(lr=found["lr"].astype(float), round=found["round"].astype(float))


def by_rate(rows: pd.DataFrame) -> dict[float, dict[str, pd.DataFrame]]:
    """`tables.by_line` of each learning rate; rows: of `stored`."""
    return {lr: tables.by_line(mine) for lr, mine in rows.groupby("lr")}


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
    for lr, lines in by_rate(rows).items():
        for line, words in (("lg_fedavg", "FedAvg's model"), ("lg_scratch", "the first weights")):
            begin = Settings.start if line == "lg_fedavg" else 0
            if line in lines and "fedavg" in lines:
                mine, fed = lines[line].rename(lambda n, begin=begin: n + begin), lines["fedavg"]
                if both := sorted({*mine.index} & {*fed.index}):
                    name = f"from {words}, rate {lr:g}, round {int(both[-1])}"
                    pairs.append((name, mine.loc[both[-1]], fed.loc[both[-1]]))
    # False if the interval of a pair moved to the other side of zero, or came to hold it.
    return sentence("**LG-FedAvg less FedAvg in the end**", pairs, WORDS, fewest=2, digits=1)
