"""The stored runs on Adult: leakage and fairness, the frontier of lambda, the sweep."""

from itertools import cycle, product

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core.colours import CASE, LOSS, METHOD, REFERENCE
from lgfed_core.data.adult import GROUPS
from lgfed_core.evidence import comparison, printed
from lgfed_core.evidence.printed import METHODS, METRICS
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import PROTOCOLS, plain
from lgfed_core.plotting import WIDTH, caption

from ..printed import TABLES
from . import run as adult, settings

_HOW = ["optimiser", "adversary_steps", "adversary_width", "adversary_dropout"]
COLUMNS = ("method", "split", "loss", "lambda", "round", *_HOW)
_LEAKS = ("adv_auc", "probe_logistic", "probe_trees", "probe_network", "probe_best")
_SWEPT = ["class_acc", "adv_auc", "probe_best", "validation_acc", "validation_probe"]
_APART = 0.7  # points of leakage: nearer neighbours on a line would have labels on each other
_MARKS = ((CASE[3], "X"), (CASE[0], "v"), (CASE[2], "p"))  # adversaries of the sweep
OVER_RUNS, OVER_DEVICES = "all between runs", "all between devices"


def stored_rows() -> pd.DataFrame:
    """All rows recorded by the experiment, with the columns that a table needs in any case."""
    return select(adult.NAME, columns=COLUMNS)


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
    for protocol, split, method in product(PROTOCOLS, settings.SPLITS, settings.METHODS):
        line = protocol.replace("_", " "), printed.row_name({"split": split}), METHODS[method]
        found = {METRICS[m]: cell(stored, m, method, split, protocol).mean() for m in metrics}
        lines[line] = found
    table = pd.DataFrame(lines).T.rename_axis(["protocol", "devices", "method"])
    return table.dropna(how="all")


def frontier(stored: pd.DataFrame, split: str = "iid", scale: str = "paper") -> pd.DataFrame:
    """Along lambda, over seeds: lines (loss, lambda), columns (metric, mean | std).

    Metrics: class_acc, class_auc, adv_auc, probe_best and by attribute, validation_acc and
    validation_probe. lambda = 0 belongs to both losses.
    """
    rows = select(stored, table=adult.FRONTIER, scale=scale, split=split)
    if rows.empty:
        return pd.DataFrame()
    rows = rows.astype({"lambda": float})
    zero = rows[(rows["lambda"] == 0) & (rows["loss"] == "vanilla")]
    rows = pd.concat([rows, zero.assign(loss="squared")])
    values = rows.groupby(["loss", "lambda", "metric"])["value"].agg(["mean", "std"])
    table = values.unstack("metric").swaplevel(axis=1).sort_index(axis=1)
    return table.sort_index(ascending=[False, True])


def chosen(stored: pd.DataFrame) -> float | None:
    """What `run.pick` picks from stored runs; None while the frontier is not whole."""
    table, wanted = frontier(stored), {0.0, *settings.Settings.frontier}
    if table.empty or not wanted <= set(table.loc["vanilla"].index):
        return None
    return adult.pick(table.loc["vanilla"].xs("mean", axis=1, level=1))


def swept_rows(stored: pd.DataFrame) -> pd.DataFrame:
    """The sweep at paper scale on i.i.d. devices, as far as lambda = 0 has run beside others.

    ``adversary`` says in words how the game was optimised.
    """
    rows = select(stored, table=adult.SWEEP, scale="paper", split="iid")
    rows = rows.assign(adversary_dropout=rows["adversary_dropout"].map(plain))
    rows = rows.astype({"lambda": float}).sort_values([*_HOW, "lambda"], kind="stable")
    rows["adversary"] = [_words(*how) for how in rows[_HOW].itertuples(index=False)]
    lambdas = rows.groupby("adversary")["lambda"]
    return rows[(lambdas.transform("min") == 0) & (lambdas.transform("nunique") > 1)]


def _words(optimiser: str, steps: float, width: float, dropout: str) -> str:
    name = {"adam": "Adam", "sgd": "SGD"}[optimiser]
    words = f"{name}, {steps:g} adversary steps of {width:g} units"
    return words + (f", its dropout {dropout}" if dropout else "")


def sweep(stored: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of `swept_rows`: a line per adversary and lambda; and how many seeds."""
    rows = swept_rows(stored)
    table = rows.pivot_table("value", ["adversary", "lambda"], "metric", sort=False)
    seeds = rows.groupby(["adversary", "lambda"])["seed"].nunique()
    return table.reindex(columns=_SWEPT).assign(seeds=seeds)


def picked(table: pd.DataFrame) -> list[tuple[str, float]]:
    """The adversaries of a `sweep`, each with the lambda that validation rows pick."""
    ways = table.groupby("adversary", sort=False)
    return [(adversary, adult.pick(lines.droplevel(0))) for adversary, lines in ways]


def tried(stored: pd.DataFrame) -> int:
    """How many settings of the game were tried before a verdict on the method: lambdas along the
    frontier, which is by SGD, and lines of the sweep; none where the frontier has not run."""
    line = frontier(stored)
    if line.empty:
        return 0
    both = *line.loc["vanilla"].index, *sweep(stored).index.get_level_values("lambda")
    return sum(strength > 0 for strength in both)


def both_ends(stored: pd.DataFrame, protocol: str = "as_released") -> pd.DataFrame:
    """Each cell of Table 4 that has run, judged at both ends of what its deviations can mean.

    The released script takes them over devices and runs together. If the devices of a run were
    alike, all of it would be between runs; if runs did not differ but by their devices, a run's
    mean would deviate by 1 / sqrt(10) of it. A verdict that is not the same at both ends is none.

    Index: row in words, number; columns: paper, its deviation, ours, the two verdicts
    (`OVER_RUNS`, `OVER_DEVICES`), and ``stands``: whether they agree.
    """
    spec, lines = TABLES[adult.TABLE], []
    least = {metric.name: metric.least for metric in spec.metrics}
    for one in printed.cells(spec).to_dict("records"):
        name, mean, sd = one["metric"], one["paper"], one["paper_sd"]
        ours = cell(stored, name, one["method"], one["split"], protocol).to_numpy()
        if ours.size:
            how = mean, sd, spec.runs, ours, least[name](mean), spec.pooled
            wide, narrow = comparison.ends(*how)
            stands = wide == narrow
            lines.append([one["row"], METRICS[name], mean, sd, ours.mean(), wide, narrow, stands])
    columns = ["row", "number", "paper", "±", "ours", OVER_RUNS, OVER_DEVICES, "stands"]
    return pd.DataFrame(lines, columns=columns).set_index(["row", "number"])


def draw_frontier(
    table: pd.DataFrame,
    points: dict[str, tuple[float, float]],
    base_rate: float,
    bits: pd.DataFrame,
    swept: dict[str, tuple[float, float]],
) -> Figure:
    """Leakage to the best probe against accuracy, along lambda; up and to the left is better.

    table: of `frontier`; points: method -> (leakage, accuracy), e.g. FedAvg's;
    base_rate: accuracy of saying "no" to everyone, who leaks nothing; bits: of
    `measures.best_bits`; swept: words -> (leakage, accuracy) of the sweep. All in percent.
    """
    figure, ax = plt.subplots(figsize=(WIDTH, 4.2))
    ax.axhline(base_rate, color=REFERENCE, linestyle=":", linewidth=1.2)
    ax.plot(50, base_rate, marker="s", color=REFERENCE, linestyle="", label='"no" to everyone')
    for loss, (colour, marker) in LOSS.items():
        if len(table) and loss in table.index.get_level_values(0):
            _path(ax, table.loc[loss], colour, marker, f"{loss} loss, by λ")
    look = dict(markersize=8, linestyle="", markeredgecolor="white")
    for method, point in points.items():
        colour, marker = METHOD[method]
        words = f"{METHODS[method]}, Table 4"
        ax.plot(*point, marker=marker, color=colour, label=words, **look)
    for (words, point), (colour, marker) in zip(swept.items(), cycle(_MARKS)):
        ax.plot(*point, marker=marker, color=colour, label=words, markeredgewidth=0.6, **look)
    line = bits.sort_values("leak")
    best = line["accuracy"].cummax()
    far = max(ax.get_xlim()[1], line["leak"].max())  # who may leak more is no worse
    ax.step([*line["leak"], far], [*best, best.iloc[-1]], where="post", color=CASE[1])
    ax.plot([], [], color=CASE[1], label="the best bit found")
    ax.set_xlabel("leakage: AUC of the best probe, mean of race and sex, %")
    ax.set_ylabel("accuracy on income, %")
    ax.set_xlim(left=49)
    marks = zip(*ax.get_legend_handles_labels(), strict=True)
    marks = sorted(marks, key=lambda mark: mark[1] in swept)  # long names in one column
    figure.legend(*zip(*marks, strict=True), loc="outside lower center", ncols=2)
    below = (
        "Leakage to the best probe against accuracy along lambda, under two losses of "
        "the adversary; bars are one deviation over seeds; up and to the left is better."
    )
    return caption(figure, below)


def _path(ax: Axes, table: pd.DataFrame, colour: str, marker: str, words: str) -> None:
    x, y = (table[metric, "mean"] for metric in ("probe_best", "class_acc"))
    reach = [table[metric, "std"].fillna(0) for metric in ("probe_best", "class_acc")]
    ax.errorbar(x, y, reach[1], reach[0], color=colour, marker=marker, elinewidth=0.7, label=words)
    crowds = (x.diff().abs() > _APART).cumsum()  # those of a crowd share one label
    for _, at in x.groupby(crowds).groups.items():
        words = f"{at[0]:g}" if len(at) == 1 else f"{at[0]:g} to {at[-1]:g}"
        if marker == LOSS["vanilla"][1]:
            corner, off, side = (x[at].min(), y[at].min()), (-4, -11), "right"
        else:
            corner, off, side = (x[at].max(), y[at].max()), (3, 6), "left"
        look = dict(fontsize=7, color=colour, textcoords="offset points", ha=side)
        ax.annotate(words, corner, off, **look)
