"""What start, choice of round and way to serve change on pictures, at two classes, in tables."""

from functools import partial

import pandas as pd

from lgfed_core.papers.differences import table

from .layers import tables as cuts
from .layers.run import TITLES, chosen
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


def sharing(stored: pd.DataFrame, **only: object) -> str:
    """Sharing against sharing nothing, from the same FedAvg model, on own classes, by setting.

    stored: rows of ``lgfedavg.layers``; only: of `layers.tables.settings` those with these values,
    e.g. ``data="mnist"``. Best on validation rows as described, the last round as released.
    """
    pairs = []
    for where in (s for s in cuts.settings(stored) if only.items() <= s.items()):
        data, (selection, words) = where["data"], cuts.read_by(where)
        values = cuts.cell(stored, selection=selection, **where)["local_test_acc"]
        wide, none = values.unstack(["side", "shared_layers"]), pd.Series(dtype=float)
        words = f"{TITLES[data]}, {words}" + ", as released, last round" * (selection == "last")
        pairs.append((words, *(wide.get(cut, none) for cut in (chosen(data), ("last", 0)))))
    return table("What sharing adds on own classes, points of accuracy", pairs, fewest=2)


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


def served(stored: pd.DataFrame, data: str, few: int) -> str:
    """What averaging outputs gives new devices over averaging weights, last round, two classes."""
    values, pairs = by_seed(stored), []
    for name, who in {"devices alone": ("local_only", 0), "LG-FedAvg": ("lg_fedavg", few)}.items():
        for protocol in ("as_described", "as_released"):
            ends = (
                _cell(values, data, who, f"new_test_acc_{way}", (protocol, "last"))
                for way in ("outputs", "weights")
            )
            pairs.append((f"{name}, {protocol.replace('_', ' ')}", *ends))
    head = (
        "Averaged outputs against averaged weights on new devices, last round, points of accuracy"
    )
    return table(head, pairs, fewest=2)


def alone(stored: pd.DataFrame, data: str, few: int, full: int) -> str:
    """Devices that send nothing against each method that sends, own classes, two classes."""
    values, reading = by_seed(stored), ("as_described", "best_val")
    cell = partial(_cell, values, data, metric="local_test_acc", reading=reading)
    others = {"FedAvg": ("fedavg", full), "LG-FedAvg": ("lg_fedavg", few)}
    pairs = [(name, cell(("local_only", 0)), cell(who)) for name, who in others.items()]
    head = f"Models trained alone ahead of others on own classes of {TITLES[data]}, points"
    return table(head, pairs, fewest=2)


_TESTS = {"own classes": "local_test_acc", "new devices": "new_test_acc"}
_SOUND = {  # what is read is not chosen on test rows; as released, the start is
    ("as_described", "best_val"): "as described",
    ("as_released", "last"): "as released, last round",
}


def _cell(values: dict, data: str, who: tuple, metric: str, reading: tuple) -> pd.Series:
    """Values by seed at two classes per device; empty where none has run."""
    return values.get((data, 2, who, metric, reading), pd.Series(dtype=float))
