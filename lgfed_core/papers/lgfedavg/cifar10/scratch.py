"""LG-FedAvg on CIFAR-10 without FedAvg before it: how others have run it, and what they found.

The papers' LG-FedAvg goes on from a FedAvg model. Its released script starts anew unless it is
given one, and a user who ran the command of its README reports numbers below the paper's. Here
devices start from random weights, for 300 rounds or more.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from lgfed_core.evidence.records import select

from . import run as cifar10

NAME, TABLE = "lgfedavg.scratch", "lgfedavg_from_scratch"  # of our own
TESTS = {
    "local_test_acc": "local test",
    "new_test_acc_weights": "new test, averaged weights",
    "new_test_acc_outputs": "new test, averaged outputs",
}
REPORTED = {  # rounds 297 to 301 of a run of the README's command: lowest and highest
    "local_test_acc": (84.51, 85.08),
    "new_test_acc_weights": (10.42, 11.21),
    "new_test_acc_outputs": (23.85, 24.88),
}
SOURCE = "https://github.com/pliang279/LG-FedAvg/issues/1"


@dataclass(frozen=True)
class Settings(cifar10.Settings):
    """As for CIFAR-10, from the first round on with private layers."""

    lg_rounds: int = 300


class Scratch(cifar10.Cifar10):
    """One part: ``lg_0``."""

    name, table, Settings = NAME, TABLE, Settings
    scales = cifar10.SCALES | {"smoke": cifar10.SCALES["smoke"] | dict(shrink=0.02)}
    chooses = frozenset({"classes", "lg_rounds"})
    splits = tuple(dict(classes=2, lg_rounds=rounds) for rounds in (300, 2000))

    def rounds(self, cfg: Settings) -> dict[str, int]:
        return {"lg_0": cfg.rounds(cfg.lg_rounds)}

    def places(self, cfg: Settings) -> tuple[str, Iterable[str]]:
        start, free = super().places(cfg)
        return f"{start}-{cfg.lg_rounds}", {*free, "lg_rounds"}


def beside(classes: int = 2) -> pd.DataFrame:
    """Stored runs after their last round beside what was reported: a line per protocol and length.

    Columns: a mean of seeds for each of `TESTS`, and how many there are; empty before the first.
    """
    rows = select(NAME, scale="paper", classes_per_device=classes, selection="last", metric=TESTS)
    if rows.empty:
        return pd.DataFrame()
    ids = ["protocol", "lg_rounds"]
    wide = rows.pivot_table("value", ids, "metric")[list(TESTS)].rename(columns=TESTS)
    return wide.assign(seeds=rows.groupby(ids)["seed"].nunique())


SCRATCH = Scratch()
