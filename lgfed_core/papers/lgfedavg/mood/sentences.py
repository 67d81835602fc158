"""What the page on mood says in words, from rows; beside each what would make it false."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.papers.in_words import AHEAD, bullets, less, sentence

from ..levels import ends
from .claims import EXTREMES, SHARED, chosen, wide
from .people import RHOS, SOURCES
from .settings import ALPHAS, Settings
from .tables import COMMONEST, NAMES, expected


def answer(rows: pd.DataFrame, lr: float = Settings.lr) -> str:
    """What became of the splits in between: a sentence per source, in Markdown.

    lr: Adam's rate; of another than the paper's only the sources that have run.
    """
    lines = []
    for source, title in SOURCES.items():
        own = chosen(rows, source, lr)["test_acc"]
        if lr != Settings.lr and own.empty:
            continue
        tested = wide(rows, source, "test_acc", lr=lr)
        short = set(rows["scale"][rows["stand_in"] == title]) - {"paper"}
        pairs = [(f"than {name}", own, tested[alpha]) for alpha, name in EXTREMES.items()]
        # False if an interval moved to the other side of zero, or came to hold it.
        head = f"**{title}{', short runs' * bool(short)}**: a split in between, in points"
        kinds = ("better", "worse", "not shown to be better or worse")
        lines.append(sentence(head, pairs, kinds, shared=SHARED.get(source, 0.0), digits=1))
    return bullets(lines)


def guessed(rows: pd.DataFrame, rules: pd.DataFrame, lr: float = Settings.lr) -> str:
    """Whether networks have learnt anything from chats: each share less the commonest label.

    rules: of `tables.alone`, by seed.
    """
    tested = wide(rows, "chats", "test_acc", lr=lr)
    pairs = [(f"share {NAMES[alpha]}:", tested[alpha], rules[COMMONEST]) for alpha in ALPHAS]
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**Chats, a network less the commonest label**, rate {lr:g}, in points"
    kinds = ("better", "worse", "not shown to be better or worse")
    return sentence(head, pairs, kinds, shared=SHARED["chats"], digits=1)


def extremes(rows: pd.DataFrame) -> str:
    """The two extremes on made-up texts, where the theory says which of them is ahead."""
    pairs = []
    for source in RHOS:
        ahead = [alpha for alpha, name in EXTREMES.items() if expected(source).startswith(name)]
        for one in ahead:
            (other,) = EXTREMES.keys() - {one}
            tested = wide(rows, source, "test_acc")
            name = f"{SOURCES[source]}, {EXTREMES[one]} less {EXTREMES[other]}"
            pairs.append((name, tested[one], tested[other]))
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**The extreme that the theory puts ahead**, in points"
    return sentence(head, pairs, AHEAD, digits=1)


def levelled(curves: pd.DataFrame, lr: float = Settings.lr) -> str:
    """Of which sources and shares validation accuracy still rose in the last third of the rounds.

    curves: stored rows by round (`claims.stored` of `run.CURVES`).
    """
    mine = select(curves, lr=lr, metric="validation_acc")
    mine = mine.assign(round=mine["round"].astype(int), alpha=mine["alpha"].astype(float))
    rising, every = [], 0
    for (title, alpha), lines in mine.groupby(["stand_in", "alpha"]):
        gain, runs = less(*ends(lines.pivot_table("value", "round", "seed"), of=3))
        every += runs > 1
        if runs > 1 and gain.low > 0:
            rising.append(f"{title}, {alpha:g} ({gain.estimate:+.1f})")
    # False if an interval of the rise moved across zero.
    head = "**Shown to rise still**, validation accuracy of the last third of the rounds less the"
    every_one = f"{len(rising)} of {every} curves"
    named = f": {'; '.join(rising)}" if rising else ""
    return f"{head} third before, in points: {every_one}{named}."
