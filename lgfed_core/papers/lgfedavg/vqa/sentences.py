"""What the page on questions says in words, from counts and rows; beside each what would make it
false."""

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.papers.in_words import bullets, kind, sentence

from . import claims, tables
from .settings import Settings


def of(rows: pd.DataFrame) -> str:
    """Three sentences in Markdown; rows: of `claims.stored`."""
    return bullets([counted(tables.sent()), _sent(rows), _ahead(rows)])


def counted(sent: pd.DataFrame) -> str:
    """Whether Table 2's parameters follow from its rounds; sent: of `tables.sent`."""
    # False if a line's count by the papers' formula did not round to what is printed.
    agree = int(sent["agrees"].sum())
    return (
        f"**The printed count of parameters follows from the printed rounds in {agree} of "
        f"{len(sent)} lines**; it needs no data."
    )


def _sent(rows: pd.DataFrame) -> str:
    share = claims.shares(rows).dropna()
    # False if LG-FedAvg had sent as much as FedAvg when it came to the goal.
    head = (
        "**What LG-FedAvg has sent at the goal**, on stand-in data, in percent of FedAvg's less "
        f"100 (in print {claims.printed_share() - 100:+.1f})"
    )
    return sentence(head, [("by then", share, share * 0 + 100)], digits=1)


def _ahead(rows: pd.DataFrame) -> str:
    lines = []
    for scratch, begin in ((False, "FedAvg's model"), (True, "the first weights")):
        (part,) = claims.ahead(rows, scratch)
        found = said(part.evidence, part.runs)
        # False if the interval moved to the other side of zero, or came to hold it.
        words = kind(part.evidence, ("ahead", "behind", "not shown to be ahead or behind"))
        lines.append(f"from {begin}, {words}: {found}" if part.runs else f"from {begin}, {found}")
    return (
        f"**LG-FedAvg less FedAvg after {Settings.figure} rounds**, in points of local test: "
        f"{'; '.join(lines)}."
    )
