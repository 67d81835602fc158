"""Tables of the page on representations: each way's numbers, and how far it is from plain."""

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.display import mean_and_sd
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NOT_RUN, Evidence, reach_of

from ..levels import ends
from .measures import PROBES
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


def stored(table: str = TABLE, scale: str = "paper") -> pd.DataFrame:
    """The recorded rows; of table `CURVES` by round."""
    columns = ("way", "labels", "weight", "round")
    return select(NAME, columns=columns, table=table, scale=scale, selection="last")


def every(rows: pd.DataFrame) -> pd.DataFrame:
    """A column per metric, in percent: index (labels, way, weight, seed). rows: of `stored`."""
    rows = rows[rows["table"] == TABLE]
    return rows.pivot_table("value", ["labels", "way", "weight", "seed"], "metric")


def shown(values: pd.DataFrame, labels: int) -> pd.DataFrame:
    """A line per way: means over seeds ± deviation, in percent; "–" where a way has no such number.

    values: of `weights.chosen`.
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


def gaps(values: pd.DataFrame, than: str = "plain") -> pd.DataFrame:
    """How far each way is ahead of ``than``, in points: estimate, low, high (95 %, paired), seeds.

    values: of `weights.chosen`. Index (labels, way, metric), for `TESTS`.
    """
    lines = {}
    for labels in LABELS:
        for way in (w for w in WAYS if w != than):
            mine, base = (cell(values, labels, w).reindex(columns=list(TESTS)) for w in (way, than))
            gap = mine - base  # [seeds, tests]
            for metric in TESTS:
                found = gap[metric].dropna()
                n, mean = len(found), found.mean()
                reach = float(reach_of(found.std() / max(1, n) ** 0.5, n - 1))
                lines[labels, way, metric] = (mean, mean - reach, mean + reach, n)
    names = ["estimate", "low", "high", "seeds"]
    return pd.DataFrame.from_dict(lines, "index", columns=names).set_axis(
        pd.MultiIndex.from_tuples(lines, names=["labels", "way", "metric"])
    )


def against(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """`gaps` from plain on one test for people: a line per way, a column per number of labels."""
    found = gaps(values).xs(metric, level="metric")
    table = {
        words(labels): {WORDS[way]: _gap(found.loc[labels, way]) for way in found.loc[labels].index}
        for labels in LABELS
    }
    return pd.DataFrame(table)


def late(curves: pd.DataFrame) -> pd.DataFrame:
    """How far the last quarter of the rounds is from the one before, in points, of each way.

    curves: rows of table `CURVES`, of one weight each (`weights.at_chosen`). Changes of means over
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
    """The weight of a cell of `weights.chosen`: "1", or "0.1, h: 10" where it is another for h."""
    tests, of_h = (f"{mine[name].max():g}" for name in ("weight", "weight of h"))
    return tests if tests == of_h else f"{tests}, h: {of_h}"


def _mean(found: pd.Series | None) -> str:
    return "–" if found is None else mean_and_sd(found, seeds=False, missing="–")


def _gap(gap: pd.Series) -> str:
    if not gap["seeds"]:
        return NOT_RUN
    return said(Evidence(gap["estimate"], gap["low"], gap["high"]), int(gap["seeds"]), digits=1)
