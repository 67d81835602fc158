"""The stored numbers of each cut, and paired differences between the paper's and others."""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.papers import differences

from .run import TABLE, TASKS, TITLES, chosen, layers

SELECTIONS = {"best_val": "each device's best round on validation rows", "last": "last round"}
OUTPUTS = "new_test_acc_outputs"  # how new devices are served as described


def cell(
    rows: pd.DataFrame,
    data: str,
    selection: str = "best_val",
    scale: str = "paper",
    classes: int = 2,
    protocol: str = "as_described",
    start: int | None = None,
) -> pd.DataFrame:
    """One value per seed and cut: index (side, shared_layers, seed), a column per metric.

    rows: of `run.rows` or `records.select`. start: FedAvg rounds before the cut; None: the data
    set's usual. The start's line ("start", 5) has no selection and is there for each. Empty when
    there is nothing of the kind.
    """
    start = TASKS[data][1] if start is None else start
    where = dict(table=TABLE, dataset=data, scale=scale, protocol=protocol)
    where |= dict(classes_per_device=classes, fedavg_rounds=start)
    rows = select(rows, columns=("side", "shared_layers"), **where)
    rows = rows[(rows["selection"] == selection) | (rows["side"] == "start")]
    return rows.pivot_table("value", ["side", "shared_layers", "seed"], "metric")


def sharing(values: pd.DataFrame, data: str, selection: str = "best_val", setting: str = "") -> str:
    """The paper's cut against the five others that say most, on both tests; a line for each that
    has run.

    values: of `cell` with this ``selection``, and of a ``setting`` in words where it is not two
    classes and the usual start; in points, from the same FedAvg model.
    """
    side, n = chosen(data)
    other = "first" if side == "last" else "last"
    cuts = {
        "all shared": ("last", 5),
        "none shared": ("last", 0),
        f"the {other} {n} layers shared": (other, n),
        "one layer fewer": (side, n - 1),
        "one layer more": (side, n + 1),
    }
    pairs, none = [], pd.Series(dtype=float)
    for metric, test in (("local_test_acc", "local test"), (OUTPUTS, "new test")):
        wide = values[metric].unstack(["side", "shared_layers"]) if metric in values else {}
        mine = wide.get((side, n), none)
        pairs += [(f"{test}, {words}", mine, wide.get(cut, none)) for words, cut in cuts.items()]
    head = (
        f"{TITLES[data]}: the paper's cut ({layers(data, side, n)}), points ahead of the other cuts"
    )
    head += "".join(f", {words}" for words in (setting, SELECTIONS[selection]) if words)
    return differences.table(head, pairs)
