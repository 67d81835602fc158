"""Which weight of an auxiliary loss is shown, chosen on validation rows, and what others do."""

import pandas as pd

from lgfed_core.evidence.tuning import best_by_cell

from .measures import CHOOSING, PROBES
from .settings import LABELS, WAYS, WITHOUT
from .tables import TESTS, WORDS, cell, every

OF_H = (*PROBES, CHOOSING, "auxiliary")  # what is read off h, or said by a network on top of it


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


def _mean_or_lost(found: pd.Series) -> str:
    lost = int(found.isna().sum())
    mean = "" if lost == len(found) else f"{found.mean():.1f}"
    return mean + f"{' ' * bool(mean)}({lost} diverged)" * bool(lost)
