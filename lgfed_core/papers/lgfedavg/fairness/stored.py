"""The stored runs on Adult as tables: leakage and fairness, the frontier of lambda, the sweep."""

from dataclasses import dataclass

import pandas as pd

from lgfed_core.data.adult import GROUPS
from lgfed_core.evidence import printed
from lgfed_core.evidence.printed import METHODS, METRICS
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import PROTOCOLS, plain

from . import run as adult

_HOW = ("optimiser", "adversary_steps", "adversary_width", "adversary_dropout")
_IDS = ("method", "split", "loss", "lambda", "round", *_HOW)
_OPTIMISER = {"adam": "Adam", "sgd": "SGD"}
_LEAKS = ("adv_auc", "probe_logistic", "probe_trees", "probe_network", "probe_best")


def stored_rows() -> pd.DataFrame:
    """All rows recorded by the experiment, with the columns that a table needs in any case."""
    return select(adult.NAME, columns=_IDS)


def by_seed(stored: pd.DataFrame, metric: str, scale: str = "paper", **ids: object) -> pd.Series:
    """One number of every run: values by seed; empty where nothing has run.

    ``metric`` may be a kind of probe without an attribute (``probe_network``): then it is the mean
    over race and sex. ids: columns and the values they must have, e.g. method="fedavg".
    """
    rows = select(stored, scale=scale, **ids)
    names = [metric] if (rows["metric"] == metric).any() else [f"{metric}_{g}" for g in GROUPS]
    values = rows[rows["metric"].isin(names)].groupby("seed")["value"].agg(["mean", "count"])
    return values.loc[values["count"] == len(names), "mean"]


def cell(stored: pd.DataFrame, metric: str, method: str, split: str, protocol: str) -> pd.Series:
    """`by_seed` for a cell of Table 4."""
    ids = dict(table=adult.TABLE, method=method, split=split, protocol=protocol)
    return by_seed(stored, metric, **ids)


def leakage(stored: pd.DataFrame, metrics: tuple[str, ...] = _LEAKS) -> pd.DataFrame:
    """Means at paper scale: a line per protocol, split and method, a column per metric."""
    lines = {}
    for protocol in PROTOCOLS:
        for split in adult.SPLITS:
            for method in adult.METHODS:
                found = {m: cell(stored, m, method, split, protocol).mean() for m in metrics}
                words = printed.row_name({"split": split})
                lines[protocol.replace("_", " "), words, METHODS[method]] = found
    table = pd.DataFrame(lines).T.rename_axis(["protocol", "devices", "method"])
    return table.dropna(how="all").rename(columns=METRICS)


def frontier(stored: pd.DataFrame, split: str = "iid", scale: str = "paper") -> pd.DataFrame:
    """Along lambda, over seeds: lines (loss, lambda), columns (metric, mean | std).

    Metrics: class_acc, class_auc, adv_auc, probe_best and by attribute, validation_acc and
    validation_probe. lambda = 0 belongs to both losses.
    """
    rows = select(stored, table=adult.FRONTIER, scale=scale, split=split)
    if rows.empty:
        return pd.DataFrame()
    zero = rows[(rows["lambda"].astype(float) == 0) & (rows["loss"] == "vanilla")]
    rows = pd.concat([rows, zero.assign(loss="squared")])
    rows = rows.assign(**{"lambda": rows["lambda"].astype(float)})
    values = rows.groupby(["loss", "lambda", "metric"])["value"].agg(["mean", "std"])
    table = values.unstack("metric").swaplevel(axis=1).sort_index(axis=1)
    return table.sort_index(ascending=[False, True])


def chosen(stored: pd.DataFrame, loss: str = "vanilla", split: str = "iid") -> float | None:
    """What `run.pick` picks from stored runs; None while the frontier is not whole."""
    table, wanted = frontier(stored, split), {0.0, *adult.Settings().frontier}
    if table.empty or not wanted <= set(table.loc[loss].index):
        return None
    line = table.loc[loss].xs("mean", axis=1, level=1)
    return adult.pick(line)


@dataclass(frozen=True)
class Tried:
    """One way of the sweep: how the game was optimised; lambda as chosen on validation rows."""

    optimiser: str
    adversary_steps: int
    adversary_width: int
    adversary_dropout: str  # "" for that of the text
    strength: float
    lambdas: tuple[float, ...]  # that were run, 0 left out
    validation_probe: float  # at ``strength``

    @property
    def how(self) -> str:
        words = f"{_OPTIMISER[self.optimiser]}, {self.adversary_steps} adversary steps"
        words += f" of {self.adversary_width} units"
        return words + (f", its dropout {self.adversary_dropout}" if self.adversary_dropout else "")

    def values(self, stored: pd.DataFrame, metric: str, strength: float | None = None):
        """`by_seed` at a lambda, by default the chosen one."""
        ids = {name: getattr(self, name) for name in _HOW}
        ids["lambda"] = self.strength if strength is None else strength
        return by_seed(stored, metric, table=adult.SWEEP, split="iid", **ids)


def sweep(stored: pd.DataFrame) -> list[Tried]:
    """The ways that were run at paper scale on i.i.d. devices, lambda = 0 among them."""
    rows = select(stored, table=adult.SWEEP, scale="paper", split="iid")
    found = []
    rows = rows.assign(adversary_dropout=rows["adversary_dropout"].map(plain))
    for how, mine in rows.groupby(list(_HOW)):
        mine = mine.assign(**{"lambda": mine["lambda"].astype(float)})
        line = mine.pivot_table("value", "lambda", "metric")
        if 0.0 in line.index and len(line) > 1:
            best = adult.pick(line)
            optimiser, steps, width, dropout = how
            leak = line.loc[best, "validation_probe"]
            lambdas = tuple(line.index[line.index > 0])
            found.append(Tried(optimiser, int(steps), int(width), dropout, best, lambdas, leak))
    return found


def sweep_table(stored: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds: a line per way and lambda; accuracy, leaks, and how many seeds."""
    names = ("class_acc", "adv_auc", "probe_best", "validation_acc", "validation_probe")
    lines = {}
    for way in sweep(stored):
        for x in (0.0, *way.lambdas):
            found = {n: way.values(stored, n, x) for n in names}
            means = {METRICS.get(n, n.replace("_", " ")): v.mean() for n, v in found.items()}
            lines[way.how, f"{x:g}"] = means | {"seeds": len(found["class_acc"])}
    table = pd.DataFrame(lines).T
    return table.rename_axis(["adversary", "lambda"]) if lines else table


def sweep_points(stored: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Words for each way of the sweep -> (leakage, accuracy) at its lambda, means over seeds."""
    metrics = ("probe_best", "class_acc")
    return {
        f"{way.how}, lambda {way.strength:g}": tuple(
            way.values(stored, metric).mean() for metric in metrics
        )
        for way in sweep(stored)
    }


def tried(stored: pd.DataFrame) -> list[tuple[str, tuple[float, ...]]]:
    """What was tried before a verdict on the method: ways in words, and the lambdas of each.

    The first is the frontier's, by SGD; none where that has not run.
    """
    line = frontier(stored)
    if line.empty:
        return []
    along = tuple(x for x in line.loc["vanilla"].index if x > 0)
    first = "SGD, 1 adversary step of 32 units", along
    return [first, *((way.how, way.lambdas) for way in sweep(stored))]
