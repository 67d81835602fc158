"""What the page on impairment says in words, from rows; beside each what would make it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.papers.in_words import Pair, bullets, sentence

from . import claims
from .figures import WHO

_KINDS = ("higher", "lower", "not shown to be higher or lower")


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown, on the users that train and on people left out; found: of
    `claims.stored`."""
    lines = []
    for who, words in WHO.items():
        for metric, name in (("delta_eo", "Delta EO"), ("f1", "F1")):
            # False if an interval moved to the other side of zero, or came to hold it.
            head = f"**{name} of {words}, with the game less without** (stand-ins)"
            pairs = _against_none(found, f"{who}_{metric}")
            lines.append(sentence(head, pairs, _KINDS, digits=3))
    return bullets(lines)


def _against_none(found: pd.DataFrame, metric: str) -> Iterator[Pair]:
    table = claims.wide(found, metric)
    for (name, per_round), mine in table.groupby(["stand_in", "per_round"]):
        mine = mine.droplevel(["stand_in", "per_round"])
        for loss in mine.columns.drop("none", errors="ignore"):
            if "none" in mine:
                yield f"{name}, {per_round:g} a round, {loss}", mine[loss], mine["none"]
