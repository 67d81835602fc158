"""What FedAvg's start is worth to LG-FedAvg, from made-up rows of which the answer is known."""

import itertools

import pandas as pd

from lgfed_core.papers.lgfedavg.cifar10 import run, scratch

SHIFT = {"last": 0.0, "best_test": 2.0}
STARTS = {  # table, method, FedAvg rounds, LG rounds, local test
    "alone": (run.CIFAR10.table, "local_only", 0, 0, 83.0),
    "0+300": (scratch.TABLE, "lg_fedavg", 0, 300, 85.0),
    "1200+100": (run.CIFAR10.table, "lg_fedavg", 1200, 100, 88.0),
}


def rows(*starts: str) -> pd.DataFrame:
    common = dict(scale="paper", protocol="as_released", classes_per_device=2)
    lines = []
    for name, seed, (when, shift) in itertools.product(starts, range(3), SHIFT.items()):
        table, method, fed, lg, value = STARTS[name]
        line = dict(table=table, method=method, fedavg_rounds=fed, lg_rounds=lg, seed=seed)
        line |= dict(metric="local_test_acc", selection=when, value=value + shift + seed / 10)
        lines.append(common | line)
    cut = lines[0] | dict(table="lgfedavg_cuts", method="lg_fedavg", value=0.0)  # of another table
    return pd.DataFrame([*lines, cut])


def test_starts_stand_beside_each_other_and_are_paired_by_seed():
    found = scratch.beside(rows(*STARTS), "as_released")
    assert found.index.tolist() == list(STARTS), "the worst first"
    assert found["local test"].round(6).tolist() == [83.1, 85.1, 88.1]
    assert found["local test, selected"].round(6).tolist() == [85.1, 87.1, 90.1]
    assert found["seeds"].tolist() == [3, 3, 3]
    lost = rows(*STARTS)  # a seed whose last round does not count is not in the selected one
    lost = lost[~((lost["seed"] == 2) & (lost["selection"] == "last"))]
    found = scratch.beside(lost, "as_released")
    assert found["local test, selected"].round(6).tolist() == [85.05, 87.05, 90.05]
    assert found["seeds"].tolist() == [2, 2, 2]
    assert scratch.worth_of_start(rows(*STARTS), "as_released").endswith("+3.00 [+3.00, +3.00] (3)")
    assert scratch.worth_of_start(rows("alone", "1200+100"), "as_released").endswith("not yet run")
