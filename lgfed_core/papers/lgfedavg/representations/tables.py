"""The stored numbers of each way, at the weight of its loss that validation rows choose."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.evidence.tuning import best_by_cell

from .measures import CHOOSING, PROBES
from .run import NAME, TABLE

WORDS = {  # way -> what is on the page
    "plain": "g alone",
    "supervised": "own head",
    "autoencoder": "autoencoder",
    "jigsaw": "jigsaw",
    "rotation": "rotation",
    "adversarial": "against an adversary",
    "fedavg": "FedAvg",
}
TESTS = {"local_test_acc": "local test", "new_test_acc": "new test", "probe_digit": "digit from h"}
MEASURES = TESTS | {
    "probe_common": "digit from all h",
    "probe_slant": "slant from h",
    "auxiliary": "auxiliary task",
}
OF_H = (*PROBES, CHOOSING, "auxiliary")  # what is read off h, or said by a network on top of it


def stored(table: str = TABLE) -> pd.DataFrame:
    """The recorded rows; of table `CURVES` by round."""
    columns = ("way", "labels", "weight", "round")
    return select(NAME, columns=columns, table=table, scale="paper", selection="last")


def every(rows: pd.DataFrame) -> pd.DataFrame:
    """A column per metric, in percent: index (labels, way, weight, seed). rows: of `stored`."""
    rows = rows[rows["table"] == TABLE]
    return rows.pivot_table("value", ["labels", "way", "weight", "seed"], "metric")


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """`every`, of each way and number of labels the weight that is best on validation rows.

    The two tests are those of the weight with the best accuracy there, what is read off h (`OF_H`)
    of the weight whose h gives the best probe there, fitted and judged on two halves of them. Index
    (labels, way, seed), without seeds that diverged; columns ``weight`` and ``weight of h``.
    """
    found = every(rows)
    if found.empty:
        return found
    tests, of_h = (_at_best(found, by) for by in ("validation_acc", CHOOSING))
    read = [name for name in OF_H if name in found]
    of_h = of_h[["weight", *read]].rename(columns={"weight": "weight of h"})
    return tests.drop(columns=read).join(of_h, how="outer")


def _at_best(found: pd.DataFrame, by: str) -> pd.DataFrame:
    """Lines of `every` at each cell's best weight, by a number on validation rows.

    The choice is that of `tuning.best_by_cell`, by means to a hundredth of a point.
    """
    best = best_by_cell(found, by, "weight", ["labels", "way"], digits=2)
    kept = found.index.droplevel("seed").isin([(*at, weight) for at, weight in best.items()])
    return found[kept & found[by].notna()].reset_index("weight")


def cell(values: pd.DataFrame, labels: int, way: str) -> pd.DataFrame:
    """The seeds of one cell; empty where it has not run."""
    if values.empty:
        return pd.DataFrame()
    index = values.index
    there = (index.get_level_values("labels") == labels) & (index.get_level_values("way") == way)
    return values[there].droplevel(["labels", "way"])
