"""Three times as long: have the curves levelled, and who is ahead where they have? Of our own."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.papers.in_words import sentence

from . import tables
from .run import LONG, NAME

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
    """LG-FedAvg less FedAvg in the last round of all, in points of local test; rows: of `stored`.

    Both have the same learning rate, and are compared over seeds that have run to the end.
    """
    pairs, last = [], 0
    for lr, lines in by_rate(rows).items():
        ends = {line: wide.iloc[-1].dropna() for line, wide in lines.items()}
        last = int(lines["fedavg"].index[-1]) if "fedavg" in lines else last
        for line, begin in (("lg_fedavg", "FedAvg's model"), ("lg_scratch", "the first weights")):
            if line in ends and "fedavg" in ends:
                pairs.append((f"from {begin} at rate {lr:g}", ends[line], ends["fedavg"]))
    when = f" after {last} rounds in all" if last else ""
    # False if the interval of a pair moved to the other side of zero, or came to hold it.
    return sentence(f"**LG-FedAvg less FedAvg{when}**", pairs, WORDS, fewest=2, digits=1)
