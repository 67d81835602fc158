"""What start, choice of round and way to serve change on pictures, at two classes, in tables."""

from functools import partial

import pandas as pd

from lgfed_core.papers.differences import table

from .stored import by_seed

_READINGS = {  # where nothing is chosen on test rows: as released, the start is
    "as described, chosen on validation rows": ("as_described", "best_val"),
    "as described, last round": ("as_described", "last"),
}


def selection(stored: pd.DataFrame, starts: tuple[int, ...] = (400, 800), full: int = 800) -> str:
    """LG-FedAvg against FedAvg on own classes of MNIST where no test row chooses, at two classes.

    stored: rows of `records.load`; starts: FedAvg rounds before LG-FedAvg.
    """
    values, pairs = by_seed(stored), []
    for start in starts:
        for words, reading in _READINGS.items():
            cell = partial(_cell, values, "mnist", metric="local_test_acc", reading=reading)
            ends = cell(("lg_fedavg", start)), cell(("fedavg", full))
            pairs.append((f"{start} + 100 rounds, {words}", *ends))
    return table("LG-FedAvg ahead of FedAvg on own classes, points of accuracy", pairs, fewest=2)


def dial(stored: pd.DataFrame, data: str, few: int, many: int) -> str:
    """What more FedAvg rounds before LG-FedAvg change, on both tests, at two classes.

    stored: rows of `records.load`; few, many: FedAvg rounds of the two headline budgets.
    """
    values, pairs = by_seed(stored), []
    for words, metric in _TESTS.items():
        for reading, how in _SOUND.items():
            cell = partial(_cell, values, data, metric=metric, reading=reading)
            ends = cell(("lg_fedavg", many)), cell(("lg_fedavg", few))
            pairs.append((f"{words}, {how}", *ends))
    head = f"A later start: {many} + 100 rounds against {few} + 100, points of accuracy"
    return table(head, pairs, fewest=2)


def flattered(stored: pd.DataFrame, data: str, few: int, full: int) -> str:
    """How much choosing the round on test rows adds to each method, as released, at two classes."""
    values, pairs = by_seed(stored), []
    rows = {"LG-FedAvg": ("lg_fedavg", few), "FedAvg": ("fedavg", full)}
    for words, metric in _TESTS.items():
        for name, who in (rows | {"devices alone": ("local_only", 0)}).items():
            ends = (
                _cell(values, data, who, metric, ("as_released", how))
                for how in ("best_test", "last")
            )
            pairs.append((f"{name}, {words}", *ends))
    head = "What choosing the round on test rows adds, as released, points of accuracy"
    return table(head, pairs, fewest=2)


_TESTS = {"own classes": "local_test_acc", "new devices": "new_test_acc"}
_SOUND = {  # what is read is not chosen on test rows; as released, the start is
    ("as_described", "best_val"): "as described",
    ("as_released", "last"): "as released, last round",
}


def _cell(values: dict, data: str, who: tuple, metric: str, reading: tuple) -> pd.Series:
    """Values by seed at two classes per device; empty where none has run."""
    return values.get((data, 2, who, metric, reading), pd.Series(dtype=float))
