"""What the page on the newcomer says in words, from rows; beside each what would make it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.papers.in_words import AHEAD, Pair, bullets, sentence

from .claims import SIDES, WORDS, values
from .settings import SPLITS
from .tables import words


def of(rows: pd.DataFrame) -> str:
    """Three sentences in Markdown; rows: of `claims.stored`."""
    return bullets([_alone(rows), _learnt(rows), _together(rows)])


def _alone(rows: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**What becomes of the old devices at C = 0**, after less before, in points"
    lines = ("fedavg_0", "lg_fedavg_0")
    return sentence(head, _change(rows, lines, "normal"), ("gained", "lost", "not shown to change"))


def _learnt(rows: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it. That FedAvg and
    # LG-FedAvg give the newcomer one model at C = 0 is so by definition, and no line here.
    head = "**What the newcomer learns beside others**, at C = 0.1, after less before, in points"
    lines = ("fedavg_0.1", "fedprox_0.1", "lg_fedavg_0.1")
    return sentence(head, _change(rows, lines, "rotated"), ("gained", "lost", "not shown to gain"))


def _together(rows: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**LG-FedAvg less its rivals at C = 0.1**, in points"
    return sentence(head, _rivals(rows), AHEAD)


def _change(rows: pd.DataFrame, lines: tuple[str, ...], side: str) -> Iterator[Pair]:
    for classes, split in SPLITS.items():
        for line in lines:
            both = (values(rows, line, classes, metric) for metric in (side, f"{side}_before"))
            yield f"{WORDS[split]}, {_method(line)}", *both


def _rivals(rows: pd.DataFrame) -> Iterator[Pair]:
    for classes, split in SPLITS.items():
        for rival in ("fedavg_0.1", "fedprox_0.1"):
            for side, name in SIDES.items():
                both = (values(rows, line, classes, side) for line in ("lg_fedavg_0.1", rival))
                yield f"{WORDS[split]}, {name}, {_method(rival)}", *both


def _method(line: str) -> str:
    """A line without its C, which the sentence says for all: "LG-FedAvg"."""
    return words(line).partition(",")[0]
