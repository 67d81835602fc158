"""LG-FedAvg on CIFAR-10 without FedAvg before it: how others have run it, and what they found.

The papers' LG-FedAvg goes on from a FedAvg model. Its released script starts anew unless it is
given one, and a user who ran the command of its README reports numbers below the paper's. Here
devices start from random weights, for 300 rounds or more.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import greater

from ..stored import unbroken
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


def beside(rows: pd.DataFrame, protocol: str, classes: int = 2) -> pd.DataFrame:
    """What the start is worth: a line for each that has run, FedAvg + LG rounds, or alone.

    rows: of `records.load`; of Table 8's runs only what is `unbroken` counts. Columns: means over
    seeds of `TESTS` after the last round, in %, of the local test where the protocol's selection
    has it, and seeds: those whose last round counts.
    """
    rows = _starts(unbroken(rows, "cifar10"), protocol, classes)
    last = rows[rows["selection"] == "last"]
    out = last.pivot_table("value", "start", "metric").reindex(columns=list(TESTS))
    best = rows[(rows["selection"] != "last") & (rows["metric"] == "local_test_acc")]
    same = pd.MultiIndex.from_frame(last[["start", "seed"]])
    best = best[pd.MultiIndex.from_frame(best[["start", "seed"]]).isin(same)]
    chosen = {"local test, selected": best.groupby("start")["value"].mean()}
    out = out.rename(columns=TESTS).assign(**chosen, seeds=last.groupby("start")["seed"].nunique())
    return out.sort_values("local test").rename_axis(columns=None)


def worth_of_start(rows: pd.DataFrame, protocol: str, classes: int = 2) -> str:
    """What 1,200 rounds of FedAvg before it add to LG-FedAvg's local test, in a sentence."""
    rows = _starts(rows, protocol, classes)
    rows = rows[(rows["selection"] == "last") & (rows["metric"] == "local_test_acc")]
    wide = rows.pivot_table("value", "seed", "start").reindex(columns=["1200+100", "0+300"])
    both = wide.dropna()
    gain = greater(both["1200+100"], both["0+300"])
    return (
        f"{protocol.replace('_', ' ')}: starting from FedAvg adds, in points on own classes after "
        f"the last round (1200 + 100 against 0 + 300 rounds): {said(gain, len(both))}"
    )


def _starts(rows: pd.DataFrame, protocol: str, classes: int) -> pd.DataFrame:
    """With a column start: "1200+100", "0+300", or "alone"."""
    rows = select(
        rows,
        scale="paper",
        protocol=protocol,
        classes_per_device=classes,
        table=(TABLE, cifar10.CIFAR10.table),
        method=("lg_fedavg", "local_only"),
    )
    budget = rows[["fedavg_rounds", "lg_rounds"]].astype(int).astype(str)
    start = budget["fedavg_rounds"] + "+" + budget["lg_rounds"]
    return rows.assign(start=start.where(rows["method"] == "lg_fedavg", "alone"))


SCRATCH = Scratch()
