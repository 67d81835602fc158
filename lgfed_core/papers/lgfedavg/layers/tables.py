"""Tables of "which layers should be shared?": means and paired differences."""

import numpy as np
import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.display import Page
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NOT_RUN, Evidence, reach_of
from lgfed_core.papers import differences

from .run import NEW_TESTS, TABLE, TASKS, TITLES, chosen, layers

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


def against(values: pd.DataFrame, one: tuple[str, int], other: tuple[str, int]) -> pd.DataFrame:
    """How far cut ``one`` is ahead of ``other`` in points, seed by seed.

    values: of `cell`. Index metric; columns difference, low, high (95 %, paired t), seeds. NaN
    where a cut has not run, or, for the interval, with one seed.
    """
    tests = [m for m in ("local_test_acc", *NEW_TESTS) if m in values]
    both = [
        values[tests].xs(cut, level=[0, 1]) if cut in values.index.droplevel(2) else None
        for cut in (one, other)
    ]
    if both[0] is None or both[1] is None:
        return pd.DataFrame(float("nan"), tests, ["difference", "low", "high"]).assign(seeds=0)
    gap = both[0] - both[1]  # [seeds, metrics]; a metric that a run did not measure is NaN
    n = gap.count()
    reach = reach_of(gap.std() / n**0.5, n - 1)
    mean = gap.mean()
    return pd.DataFrame({"difference": mean, "low": mean - reach, "high": mean + reach, "seeds": n})


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


def questions(values: pd.DataFrame, data: str) -> pd.DataFrame:
    """The paper's cut against five others, in points: "difference [95 % interval] (seeds)"."""
    side, n = chosen(data)
    other = "first" if side == "last" else "last"
    asked = {
        "FedAvg going on (all shared)": ("last", 5),
        "fine-tuning (none shared)": ("last", 0),
        f"the {other} {n} layers": (other, n),
        "one layer fewer": (side, n - 1),
        "one layer more": (side, n + 1),
    }
    lines = {}
    for words, cut in asked.items():
        gaps = against(values, (side, n), cut)
        lines[words] = {WORDS[metric]: _gap(gap) for metric, gap in gaps.iterrows()}
    name = f"{TITLES[data]}: {layers(data, side, n)} against"
    return pd.DataFrame(lines, list(WORDS.values())).T.fillna(NOT_RUN).rename_axis(name)


def elsewhere(rows: pd.DataFrame) -> Page:
    """`sharing` in the other settings that ``rows`` of full length have, as described chosen on
    validation rows, as released after the last round."""
    out = []
    for where in settings(rows):
        data, (way, words) = where["data"], read_by(where)
        if (where["classes"], where["start"], way) != (2, TASKS[data][1], "best_val"):
            words += f", {where['protocol'].replace('_', ' ')}"
            out.append(sharing(cell(rows, selection=way, **where), data, way, words))
    return differences.tables(out)


def read_by(where: dict) -> tuple[str, str]:
    """By which selection one of `settings` is read without a choice on test rows, and its devices
    and start in words."""
    split = "i.i.d." if where["classes"] == 10 else f"{where['classes']} classes"
    way = "last" if where["protocol"] == "as_released" else "best_val"
    return way, f"{split}, {where['start']}+100"


def sharing(values: pd.DataFrame, data: str, selection: str = "best_val", setting: str = "") -> str:
    """The paper's cut against all layers shared and none, on both tests.

    values: of `cell` with this ``selection``, and of a ``setting`` in words where it is not two
    classes and the usual start; in points, from the same FedAvg model.
    """
    side, n = chosen(data)
    pairs = []
    for metric, test in (("local_test_acc", "local test"), (OUTPUTS, "new test")):
        wide = values[metric].unstack(["side", "shared_layers"]) if metric in values else {}
        none = pd.Series(dtype=float)
        for end, words in ((5, "all shared"), (0, "none shared")):
            both = (wide.get(cut, none) for cut in ((side, n), ("last", end)))
            pairs.append((f"{test}, {words}", *both))
    head = (
        f"{TITLES[data]}: the paper's cut ({layers(data, side, n)}), points ahead of the other cuts"
    )
    head += "".join(f", {words}" for words in (setting, SELECTIONS[selection]) if words)
    return differences.table(head, pairs)


def _gap(gap: pd.Series) -> str:
    return said(Evidence(gap["difference"], gap["low"], gap["high"]), int(gap["seeds"]))
