"""Tables of "which layers should be shared?": means and paired differences."""

import numpy as np
import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import reach_of
from lgfed_core.papers import differences

from .run import TABLE, TASKS, TITLES, chosen, layers

ENDS = {0: "none", 5: "all"}  # shared: the same cut from either side
SELECTIONS = {"best_val": "each device's best round on validation rows", "last": "last round"}
OUTPUTS = "new_test_acc_outputs"  # how new devices are served as described
WORDS = {
    "local_test_acc": "local test",
    OUTPUTS: "new test, outputs",
    "new_test_acc_probabilities": "new test, probabilities",
    "new_test_acc_weights": "new test, weights",
}


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


def settings(rows: pd.DataFrame) -> list[dict]:
    """What `cell` takes to find each setting that ``rows`` of full length have."""
    names = ["dataset", "protocol", "classes_per_device", "fedavg_rounds"]
    rows = select(rows, columns=names, table=TABLE, scale="paper")
    rows = rows.dropna(subset=names).drop_duplicates(names).sort_values(names)
    return [
        dict(data=data, protocol=protocol, classes=int(classes), start=int(start))
        for data, protocol, classes, start in rows[names].itertuples(index=False)
    ]


def table(values: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds: index (side, shared_layers), columns (metric, mean | sd | reach | seeds).

    values: of `cell`. ``reach`` is half a 95 % interval of the mean (Student's t), NaN of one seed.
    """
    out = values.groupby(level=["side", "shared_layers"]).agg(["mean", "std", "count"])
    out = out.rename(columns={"std": "sd", "count": "seeds"}, level=1)
    for metric in values.columns:
        n = out[metric, "seeds"]
        out[metric, "reach"] = reach_of(out[metric, "sd"] / n**0.5, n - 1)
    return out.sort_index(axis=1)


def shown(values: pd.DataFrame, data: str) -> pd.DataFrame:
    """For a page: a line per cut with its layers, their parameters, and "mean ± sd (seeds)"."""
    means, lines = table(values), {}
    total = values["params_shared"].max() if len(values) else 1
    for side, n in sorted(means.index, key=lambda i: (i[0] != "start", i[0] == "first", i[1])):
        cut = means.loc[(side, n)]
        shared = int(cut["params_shared", "mean"])
        name = "FedAvg, before any cut" if side == "start" else ENDS.get(n, f"{side} {n}")
        line = {"shared": layers(data, side, n), "parameters": f"{shared:,} ({shared / total:.1%})"}
        for metric, words in WORDS.items():
            mean, sd, seeds = (cut.get((metric, k), np.nan) for k in ("mean", "sd", "seeds"))
            spread = "" if np.isnan(sd) else f" ± {sd:.2f}"
            line[words] = "" if np.isnan(mean) else f"{mean:.2f}{spread} ({seeds:.0f})"
        lines[name] = line
    return pd.DataFrame(lines).T.rename_axis(TITLES[data])


def elsewhere(rows: pd.DataFrame) -> Page:
    """`sharing` in the other settings that ``rows`` of full length have, as described chosen on
    validation rows, as released after the last round."""
    out = []
    for where in settings(rows):
        data, classes, start = where["data"], where["classes"], where["start"]
        way = "last" if where["protocol"] == "as_released" else "best_val"
        if (classes, start, way) != (2, TASKS[data][1], "best_val"):
            split = "i.i.d." if classes == 10 else f"{classes} classes"
            words = f"{split}, {start}+100, {where['protocol'].replace('_', ' ')}"
            out.append(sharing(cell(rows, selection=way, **where), data, way, words))
    return differences.tables(out)


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
