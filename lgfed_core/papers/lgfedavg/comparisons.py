"""The comparisons behind LG-FedAvg's claims L1 to L9, on stored runs at paper scale.

Each is paired over seeds: what a claim needs of one number of classes, one budget, one test. A
claim is a list of them; `claims` judges it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from lgfed_core.evidence import verdict
from lgfed_core.evidence.claims import Comparison, Line, paired
from lgfed_core.evidence.printed import cells
from lgfed_core.evidence.rows import plain

from .printed import TABLES
from .records import IDS, PRINTED, by_seed

CLASSES = (2, 3, 4, 5, 10)  # per device; 10 is i.i.d.
BUDGETS = {"mnist": (400, 800), "cifar10": (1200, 1800)}  # FedAvg rounds of the headline rows
FULL = {dataset: ("fedavg", budgets[-1]) for dataset, budgets in BUDGETS.items()}
LOCAL = ("local_only", 0)
WORDS = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
FAILS = 10.0  # points behind FedAvg on new devices
WITHIN = 0.5  # points, which the paper names for L9; that L7 has it is ours, as Table 6 reads
READINGS = {
    "as described, best on validation": ("as_described", "best_val"),
    "as described, last round": ("as_described", "last"),
    "as released, best on test": ("as_released", "best_test"),
    "as released, last round": ("as_released", "last"),
}
SOUND = "as described, best on validation"


@dataclass(frozen=True)
class Read:
    """Stored numbers (of `by_seed`) read one way: reading is (protocol, selection)."""

    numbers: dict[tuple, pd.Series]
    reading: tuple[str, str]

    def get(self, dataset: str, classes: int, who: tuple[str, int], metric: str) -> pd.Series:
        """Any number by seed, named by its line; empty where it has not run."""
        key = (dataset, classes, who, metric, self.reading)
        ids = tuple((id, plain(value)) for id, value in zip(IDS, (classes, *who), strict=False))
        found = self.numbers.get(key, pd.Series(dtype=float))
        return found.rename(Line(f"lgfedavg.{dataset}", ids))


def printed(dataset: str, classes: int) -> dict[tuple, float]:
    """((method, FedAvg rounds), metric) -> the mean that Table 6 or 8 prints, for one split."""
    found = cells(TABLES[PRINTED[dataset][0]])
    found = found[found["classes_per_device"].astype(int) == classes]
    return {((c.method, int(c.fedavg_rounds)), c.metric): c.paper for c in found.itertuples()}


def lg(rounds: int) -> tuple[str, int]:
    """LG-FedAvg from so many rounds of FedAvg."""
    return "lg_fedavg", rounds


def _split(classes: int) -> str:
    return "i.i.d." if classes == 10 else f"{classes} classes"


def _printed(dataset: str, classes: int, metric: str, *pair: tuple[str, int]) -> float:
    """The first of a pair less the second in Table 6 or 8, MTL's of Table 1; NaN if not printed."""
    means = printed(dataset, classes)
    a, b = (means.get((who, metric), np.nan) for who in pair)
    return a - b


def ahead(
    read: Read,
    dataset: str,
    rival: tuple[str, int],
    metric: str = "local_test_acc",
    test: Callable[..., Any] = verdict.greater,
    splits: Sequence[int] = CLASSES,
    budgets: Sequence[int] = (),
    side: str = "",
    **how,
) -> list[Comparison]:
    """LG-FedAvg minus a rival on one test, at each number of classes and headline budget.

    side: behind a comparison's name; how: of `paired`, and of the test.
    """
    return [
        paired(
            f"{_split(classes)}, {budget} + 100 rounds{side}",
            *(read.get(dataset, classes, who, metric) for who in (lg(budget), rival)),
            test,
            _printed(dataset, classes, metric, lg(budget), rival),
            **how,
        )
        for classes in splits
        for budget in budgets or BUDGETS[dataset]
    ]


def local_fails(read: Read) -> list[Comparison]:
    """L6: FedAvg minus local only on new devices, however its models are averaged."""
    return [
        paired(
            f"{WORDS[dataset]}, {_split(classes)}, averaged {way}",
            read.get(dataset, classes, FULL[dataset], "new_test_acc"),
            read.get(dataset, classes, LOCAL, f"new_test_acc_{way}"),
            verdict.greater,
            _printed(dataset, classes, "new_test_acc", FULL[dataset], LOCAL),
            f"L6, {dataset}, {way}",
            by=FAILS,
        )
        for way in ("weights", "outputs")
        for dataset in BUDGETS
        for classes in CLASSES
    ]


def keeps_both(read: Read) -> list[Comparison]:
    """L7: MNIST, local test at or above FedAvg and new test within half a point of it."""
    mnist, new = (read, "mnist", FULL["mnist"]), ("new_test_acc", verdict.equivalent)
    own = ahead(*mnist, side=", own classes", family="L7 own")
    others = ahead(*mnist, *new, side=", new devices", family="L7 new", margin=WITHIN)
    return [part for both in zip(own, others, strict=True) for part in both]


def grows_with_variance(read: Read) -> list[Comparison]:
    """L8: CIFAR-10, the advantage over FedAvg, one slope per seed over the five splits, in points
    from one split to the next."""
    parts, steps = [], ", ".join(str(n) for n in reversed(CLASSES))
    for budget in BUDGETS["cifar10"]:
        ours, theirs = (
            [read.get("cifar10", n, who, "local_test_acc") for n in reversed(CLASSES)]
            for who in (lg(budget), FULL["cifar10"])
        )
        gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
        whole = pd.concat(gaps, axis=1, join="inner").dropna()  # [seeds, splits]
        slope = verdict.rising(np.arange(len(CLASSES)), whole.to_numpy(float))
        of = tuple(series.name for series in (*ours, *theirs))
        parts.append(
            Comparison(f"{budget} + 100 rounds, a step of {steps} classes", len(whole), slope, of)
        )
    return parts


def same_served(read: Read) -> list[Comparison]:
    """L9: averaged weights against averaged outputs of LG-FedAvg's models; as released in the last
    round, as the best round's outputs are not averaged."""
    if read.reading[0] == "as_released":
        read = Read(read.numbers, ("as_released", "last"))
    return [
        paired(
            f"{WORDS[dataset]}, {_split(classes)}, {who[1]} + 100 rounds",
            *(read.get(dataset, classes, who, f"new_test_acc_{w}") for w in ("weights", "outputs")),
            verdict.equivalent,
            family=f"L9, {dataset}",
            margin=WITHIN,
        )
        for dataset, budgets in BUDGETS.items()
        for classes in CLASSES
        for who in map(lg, budgets)
    ]


def accuracies(stored: pd.DataFrame) -> pd.DataFrame:
    """CIFAR-10, local test of FedAvg, local only and LG-FedAvg at each number of classes, percent.

    stored: rows of `records.load`; as described, chosen on validation rows. One line per method and
    number of classes: mean, low, high (95 %), seeds (0: not run, mean NaN), and paper, the printed
    mean.
    """
    read, lines = Read(by_seed(stored), READINGS[SOUND]), []
    for who, classes in product((FULL["cifar10"], LOCAL, lg(1800)), CLASSES):
        mine = read.get("cifar10", classes, who, "local_test_acc")
        found = verdict.greater(mine.to_numpy())
        paper = printed("cifar10", classes)[who, "local_test_acc"]
        lines.append((who[0], classes, paper, found.estimate, found.low, found.high, len(mine)))
    columns = ["method", "classes", "paper", "mean", "low", "high", "seeds"]
    return pd.DataFrame(lines, columns=columns)
