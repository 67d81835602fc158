"""What training with the newcomer changes, in tables."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.papers.differences import Pair, table, tables

from .claims import SIDES, WORDS, values
from .settings import SPLITS
from .tables import words


def of(rows: pd.DataFrame) -> Page:
    """rows: of `claims.stored`."""
    return tables([_alone(rows), _learnt(rows), _together(rows)])


def _alone(rows: pd.DataFrame) -> str:
    head = "The old devices after against before, C = 0, points of accuracy"
    lines = ("fedavg_0", "lg_fedavg_0")
    return table(head, _change(rows, lines, "normal"))


def _learnt(rows: pd.DataFrame) -> str:
    head = "The newcomer after against before, C = 0.1, points of accuracy"
    lines = ("fedavg_0.1", "fedprox_0.1", "lg_fedavg_0.1")
    return table(head, _change(rows, lines, "rotated"))


def _together(rows: pd.DataFrame) -> str:
    head = "LG-FedAvg ahead of its rivals, C = 0.1, points of accuracy"
    return table(head, _rivals(rows))


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
    """A line without its C, which the title says for all: "LG-FedAvg"."""
    return words(line).partition(",")[0]
