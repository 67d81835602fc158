"""Splits of layers against the extremes, and networks against guessing, in tables."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.papers.differences import table, tables

from ..levels import ends
from .claims import EXTREMES, SHARED, chosen, wide
from .settings import ALPHAS, Settings
from .stand_in_people import RHOS, SOURCES
from .tables import COMMONEST, NAMES, expected


def answer(rows: pd.DataFrame, lr: float = Settings.lr) -> str:
    """The chosen split in between against either extreme, by source.

    lr: Adam's rate; of another than the paper's only the sources that have run.
    """
    out = []
    for source, title in SOURCES.items():
        own = chosen(rows, source, lr)["test_acc"]
        if lr != Settings.lr and own.empty:
            continue
        tested = wide(rows, source, "test_acc", lr=lr)
        short = set(rows["scale"][rows["stand_in"] == title]) - {"paper"}
        pairs = [(name, own, tested[alpha]) for alpha, name in EXTREMES.items()]
        head = (
            f"{title}{', short runs' * bool(short)}: a split in between ahead of extremes, points"
        )
        out.append(table(head, pairs, digits=1, shared=SHARED.get(source, 0.0)))
    return tables(out)


def guessed(rows: pd.DataFrame, rules: pd.DataFrame, lr: float = Settings.lr) -> str:
    """Whether networks have learnt anything from chats: each share less the commonest label.

    rules: of `tables.alone`, by seed.
    """
    tested = wide(rows, "chats", "test_acc", lr=lr)
    pairs = [(f"share {NAMES[alpha]}", tested[alpha], rules[COMMONEST]) for alpha in ALPHAS]
    head = f"Chats: a network ahead of the commonest label, rate {lr:g}, points of accuracy"
    return table(head, pairs, shared=SHARED["chats"], digits=1)


def extremes(rows: pd.DataFrame) -> str:
    """The two extremes on made-up texts, where the theory says which of them is ahead."""
    pairs = []
    for source in RHOS:
        ahead = [alpha for alpha, name in EXTREMES.items() if expected(source).startswith(name)]
        for one in ahead:
            (other,) = EXTREMES.keys() - {one}
            tested = wide(rows, source, "test_acc")
            name = f"{SOURCES[source]}, {EXTREMES[one]} against {EXTREMES[other]}"
            pairs.append((name, tested[one], tested[other]))
    head = "The extreme that the theory puts ahead, points of accuracy"
    return table(head, pairs, digits=1)


def levelled(curves: pd.DataFrame, lr: float = Settings.lr) -> str:
    """By source and share, by how much validation accuracy still rose in the last third of rounds.

    curves: stored rows by round (`claims.stored` of `run.CURVES`).
    """
    mine = select(curves, lr=lr, metric="validation_acc")
    mine = mine.assign(round=mine["round"].astype(int), alpha=mine["alpha"].astype(float))
    pairs = [
        (f"{title}, share {alpha:g}", *ends(lines.pivot_table("value", "round", "seed"), of=3))
        for (title, alpha), lines in mine.groupby(["stand_in", "alpha"])
    ]
    return table(
        "Gain in validation accuracy from the second to the last third of the rounds, points",
        pairs,
        digits=1,
        fewest=2,
    )
