"""What LG-FedAvg buys on its part of the bytes: accuracy beside FedAvg's, smaller budgets."""

import pandas as pd

from lgfed_core.evidence.printed import METRICS
from lgfed_core.papers import differences

from ..comparisons import READINGS, SOUND, WORDS, lg
from ..stored import by_seed
from .bytes_sent import TESTS

BUDGETS = (("mnist", 400, 800), ("cifar10", 1200, 1800))  # data set, FedAvg rounds of either method


def pairs(stored: pd.DataFrame) -> list[differences.Pair]:
    """LG-FedAvg's and FedAvg's accuracy by seed, at two classes, as described, chosen on validation
    rows; stored: rows of `records.load`."""
    values, none = by_seed(stored), pd.Series(dtype=float)
    out = []
    for data, few, full in BUDGETS:
        for test in TESTS:
            where = ((data, 2, who, test, READINGS[SOUND]) for who in (lg(few), ("fedavg", full)))
            both = (values.get(key, none) for key in where)
            out.append((f"{WORDS[data]}, {METRICS[test]}", *both))
    return out


def table(stored: pd.DataFrame) -> str:
    """`pairs` as a table that folds."""
    head = "LG-FedAvg ahead of FedAvg on these parts of the bytes, points of accuracy"
    return differences.table(head, pairs(stored), fewest=2)
