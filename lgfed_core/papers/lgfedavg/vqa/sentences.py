"""What the page on questions says in words, from counts and rows; beside each what would make it
false."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.verdict import greater
from lgfed_core.papers.in_words import AHEAD, bullets, kind, seeds

from . import claims, tables
from .settings import Settings


def of(rows: pd.DataFrame) -> str:
    """Four sentences in Markdown; rows: of `claims.stored`."""
    return bullets([counted(tables.sent()), _sent(rows), _before(rows), _ahead(rows)])


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
    # False if an interval moved to the other side of 100, or came to hold it.
    ratio = greater(np.log(share.to_numpy() / 100))
    ends = {end: 100 * np.exp(getattr(ratio, end)) for end in ("estimate", "low", "high")}
    words = kind(ratio)
    found = said(replace(ratio, **ends), len(share), sign="", digits=1)
    return (
        "**What LG-FedAvg has sent at the goal**, on stand-in data, in percent of what FedAvg sent "
        f"(in print {claims.printed_share():.1f}), geometric mean: "
        f"{f'{words}: ' * bool(len(share))}{found}{claims.bound(rows)}."
    )


def _before(rows: pd.DataFrame) -> str:
    share, start = claims.shares(rows).dropna(), Settings.start
    rounds = claims.at_goal(rows, "fedavg", "fedavg_rounds").reindex(share.index)
    there = claims.at_goal(rows, "fedavg", "goal_reached").reindex(share.index) == 1
    early = there & (rounds <= start)
    # False if FedAvg had come to the goal after round `start` in a seed that is counted here.
    return (
        f"**FedAvg was at the goal by round {start}, from which LG-FedAvg goes on**, in "
        f"{int(early.sum())} of {seeds(len(share))}: there LG-FedAvg has sent more, whatever it "
        "does."
    )


def _ahead(rows: pd.DataFrame) -> str:
    lines = []
    for scratch, begin in ((False, "FedAvg's model"), (True, "the first weights")):
        (part,) = claims.ahead(rows, scratch)
        found = said(part.evidence, part.runs)
        # False if the interval moved to the other side of zero, or came to hold it.
        words = kind(part.evidence, AHEAD)
        lines.append(f"from {begin}, {words}: {found}" if part.runs else f"from {begin}, {found}")
    return (
        f"**LG-FedAvg less FedAvg after {Settings.figure} rounds**, each at the learning rate that "
        "validation rows choose of those tried, in points of local test: "
        f"{'; '.join(lines)}."
    )
