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
    lines = [_rates(found)]
    for who, words in WHO.items():
        for metric, name in (("delta_eo", "Delta EO"), ("f1", "F1")):
            # False if an interval moved to the other side of zero, or came to hold it.
            head = f"**{name} of {words}, with the game less without** (stand-ins)"
            pairs = _against_none(found, f"{who}_{metric}")
            lines.append(sentence(head, pairs, _KINDS, digits=3))
    return bullets(lines)


def _rates(found: pd.DataFrame) -> str:
    f1, best = claims.by_rate(found, "train_f1"), claims.chosen(found)
    said = [
        f"{name}, "
        + "; ".join(f"{lr:g}: {f1.loc[name, lr].mean():.1f}" for lr in f1.loc[name].dropna(axis=1))
        + f" (shown: {best[name]:g})"
        for name in f1.index.unique("stand_in")
    ]
    # False if the text's rate did as well as the other: nothing below is of the worse one.
    head = "**F1 of the model without the game, on the users it trains with, by learning rate**"
    return f"{head}: {'; '.join(said)}." if said else f"{head}: not yet run."


def _against_none(found: pd.DataFrame, metric: str) -> Iterator[Pair]:
    table = claims.wide(found, metric)
    for (name, per_round), mine in table.groupby(["stand_in", "per_round"]):
        mine = mine.droplevel(["stand_in", "per_round"])
        for loss in mine.columns.drop("none", errors="ignore"):
            if "none" in mine:
                yield f"{name}, {per_round:g} a round, {loss}", mine[loss], mine["none"]
