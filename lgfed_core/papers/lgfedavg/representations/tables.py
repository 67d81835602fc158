"""Which weight of an auxiliary loss is shown, and tables of each way's numbers."""

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.display import mean_and_sd
from lgfed_core.evidence.records import select
from lgfed_core.evidence.tuning import best_by_cell
from lgfed_core.evidence.verdict import NOT_RUN
from lgfed_core.papers.differences import less

from ..levels import ends
from .measures import CHOOSING, PROBES
from .run import NAME, TABLE
from .settings import LABELS, WAYS, WITHOUT

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


def stored(table: str = TABLE, scale: str = "paper") -> pd.DataFrame:
    """The recorded rows; of table `CURVES` by round."""
    columns = ("way", "labels", "weight", "round")
    return select(NAME, columns=columns, table=table, scale=scale, selection="last")


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


def at_chosen(curves: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Of curves (columns way, labels, weight, ...) those of the weights whose tests are shown.

    values: of `chosen`.
    """
    if curves.empty or values.empty:
        return curves.iloc[:0]
    best = values["weight"].groupby(level=["labels", "way"]).first()
    shown = {(int(n), way, float(weight)) for (n, way), weight in best.dropna().items()}
    of = zip(curves["labels"], curves["way"], curves["weight"], strict=True)
    return curves[[(int(n), way, float(weight)) in shown for n, way, weight in of]]


def shown(values: pd.DataFrame, labels: int) -> pd.DataFrame:
    """A line per way: means over seeds ± deviation, in percent; "–" where a way has no such number.

    values: of `chosen`.
    """
    lines = {}
    for way, words in WORDS.items():
        mine = cell(values, labels, way)
        line = {name: _mean(mine.get(metric)) for metric, name in MEASURES.items()}
        weight = _weight(mine) if len(mine) and way not in WITHOUT else "–"
        lines[words] = {"weight": weight} | line | {"seeds": len(mine)}
    return pd.DataFrame(lines).T


def start(rows: pd.DataFrame) -> str:
    """What probes read off h before any training, in percent: with which the tables compare."""
    found = every(rows)
    if found.empty:
        return NOT_RUN
    means = found.groupby(level="seed").mean().mean()
    said = [f"{MEASURES[name]} {means[f'{name}_before']:.1f}" for name in PROBES]
    return "before any training: " + ", ".join(said)


def against(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """How far each way is ahead of g alone on one test, in points, with 95 % intervals.

    values: of `chosen`. A line per way, a column per number of labels.
    """
    ways = [way for way in WAYS if way != "plain"]
    return pd.DataFrame(
        {words(n): {WORDS[way]: _ahead(values, n, way, metric) for way in ways} for n in LABELS}
    )


def tried(rows: pd.DataFrame) -> pd.DataFrame:
    """What the weight of the auxiliary loss does: means in percent, over seeds that ran with all.

    rows: of `stored`. A line per number of labels and way, a column per test and weight; validation
    rows and the probe on them, by which weights are chosen, come first. Where a seed diverged, it
    says so.
    """
    found = every(rows).drop(list(WITHOUT), level="way", errors="ignore")
    names = {"validation_acc": "validation", CHOOSING: "digit from h, validation"} | TESTS
    lines = {}
    for labels, way in ((n, way) for n in LABELS for way in WAYS if way not in WITHOUT):
        mine = cell(found, labels, way)
        if mine.empty:
            continue
        ran = mine.groupby(level="seed").size()
        mine = mine[mine.index.get_level_values("seed").isin(ran.index[ran == ran.max()])]
        line = {
            (words, f"{weight:g}"): _mean_or_lost(some[metric])
            for metric, words in names.items()
            for weight, some in mine.groupby(level="weight")
        }
        lines[f"{labels or 'all'} labels, {WORDS[way]}"] = line | {
            ("", "seeds"): int((ran == ran.max()).sum())
        }
    return pd.DataFrame(lines).T.fillna("–")


def late(curves: pd.DataFrame) -> pd.DataFrame:
    """How far the last quarter of the rounds is from the one before, in points, of each way.

    curves: rows of table `CURVES`, of one weight each (`at_chosen`). Changes of means over
    seeds and looks: a line per way, a column per number of `LABELS`, in that order, and test.
    """
    found, many = {}, curves["labels"].astype(int)
    for labels in sorted(many.unique(), key=lambda n: n or float("inf")):
        for metric, mine in curves[many == labels].groupby("metric"):
            wide = mine.pivot_table("value", "round", "way")
            last, before = ends(wide)
            found[words(labels), TESTS[metric]] = (last - before).rename(WORDS)
    return pd.DataFrame(found).reindex([WORDS[way] for way in WAYS])


def words(labels: int) -> str:
    """ "10 labels" or "all labels"."""
    return f"{labels or 'all'} labels"


def cell(values: pd.DataFrame, labels: int, way: str) -> pd.DataFrame:
    """The seeds of one cell; empty where it has not run."""
    if values.empty:
        return pd.DataFrame()
    index = values.index
    there = (index.get_level_values("labels") == labels) & (index.get_level_values("way") == way)
    return values[there].droplevel(["labels", "way"])


def _weight(mine: pd.DataFrame) -> str:
    """The weight of a cell of `chosen`: "1", or "0.1, h: 10" where it is another for h."""
    tests, of_h = (f"{mine[name].max():g}" for name in ("weight", "weight of h"))
    return tests if tests == of_h else f"{tests}, h: {of_h}"


def _mean(found: pd.Series | None) -> str:
    return "–" if found is None else mean_and_sd(found, seeds=False, missing="–")


def _ahead(values: pd.DataFrame, labels: int, way: str, metric: str) -> str:
    none = pd.Series(dtype=float)
    mine, plain = (cell(values, labels, w).get(metric, none) for w in (way, "plain"))
    gap, seeds = less(mine, plain)
    return said(gap, seeds, digits=1) if seeds else NOT_RUN


def _mean_or_lost(found: pd.Series) -> str:
    lost = int(found.isna().sum())
    mean = "" if lost == len(found) else f"{found.mean():.1f}"
    return mean + f"{' ' * bool(mean)}({lost} diverged)" * bool(lost)
