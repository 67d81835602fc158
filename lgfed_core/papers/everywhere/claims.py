"""Each method's numbers on each task, at the learning rate that it chose, and who is ahead."""

from collections.abc import Sequence

import pandas as pd

from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, paired
from lgfed_core.evidence.records import select
from lgfed_core.evidence.tuning import best_by_cell
from lgfed_core.papers.differences import Pair

from .methods import METHODS
from .run import NAME, TABLE

MARGIN = 1.0  # points: less is level
SUCCESSORS = (
    *("fedper", "fedrep", "fedbabu", "per_fedavg", "ditto", "apfl", "pfedme"),
    *("fedavgm", "fedadam", "scaffold", "fednova"),
)
WORDS = {  # task -> as people call it
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "adult": "incomes",
    "digits": "two sets of digits",
    "office31": "Office-31",
}
MEASURES = {  # metric -> in words, in percent but for the last two
    "local_test_acc": "local test",
    "decile_acc": "lowest decile",
    "worst_acc": "worst device",
    "new_test_acc": "new test",
    "odds_gap": "gap of equalised odds",
    "leak_auc": "group from h, AUC",
    "megabytes": "MB sent",
    "seconds": "seconds",
}


def stored(scale: str = "paper") -> pd.DataFrame:
    """The recorded rows of the last round, of all learning rates."""
    return select(NAME, columns=("task", "method", "lr"), table=TABLE, scale=scale)


def every(rows: pd.DataFrame) -> pd.DataFrame:
    """A column per metric: index (task, method, lr, seed). rows: of `stored`, or of a live run.

    A seed that diverged has NaN throughout.
    """
    rows = rows[rows["table"] == TABLE]
    wide = rows.pivot_table("value", ["task", "method", "lr", "seed"], "metric")
    spent = rows.groupby(["task", "method", "lr", "seed"])["seconds"].first()
    return wide.reindex(columns=[*MEASURES, "validation_acc"]).assign(seconds=spent)


def chosen(rows: pd.DataFrame, sweep: int = 0) -> pd.DataFrame:
    """Of each task and method the learning rate that is best on validation rows.

    Chosen as by `tuning.best_by_cell`. Index (task, method, seed), without seeds that diverged;
    beside `MEASURES` there are ``lr`` and ``rates``, how many had run. A method for which fewer
    have run than for others, or than ``sweep``, is left out until its sweep is whole.
    """
    found = every(rows)
    if found.empty:
        return found.reset_index("lr").assign(rates=0)
    best = best_by_cell(found, "validation_acc", "lr", ["task", "method"])
    out = found.reset_index("lr")
    rates = out.groupby(level=["task", "method"])["lr"].nunique()
    cell = out.index.droplevel("seed")
    out = out.assign(rates=rates.reindex(cell).to_numpy())
    kept = (out["lr"] == best.reindex(cell).to_numpy()) & (out["rates"] == max(rates.max(), sweep))
    return out[kept & out["validation_acc"].notna()]


def of(values: pd.DataFrame, task: str, method: str) -> pd.DataFrame:
    """The seeds of one cell; empty where it has not run. values: of `chosen`."""
    at = values.index.get_level_values
    return values[(at("task") == task) & (at("method") == method)].droplevel(["task", "method"])


def both(values: pd.DataFrame, metric: str, one: str, other: str) -> list[Pair]:
    """Two methods' values by seed, for each task that has both."""
    pairs = (
        (WORDS[task], *(of(values, task, method)[metric].dropna() for method in (one, other)))
        for task in WORDS
    )
    return [pair for pair in pairs if len(pair[1]) and len(pair[2])]


def race(task: str, measure: str, words: str, unit: str, against: Sequence[Pair]) -> Claim:
    """Whether the first of each pair is ahead at a ``measure`` of a task, ``words`` for people.

    Variances are shared within a task and measure; less than `MARGIN` is level.
    """
    return Claim(
        f"{task} {measure}",
        "everywhere",
        words,
        lambda _: [paired(*pair, verdict.greater) for pair in against],
        question=f"{WORDS.get(task, 'your data')}: {words}",
        unit=unit,
        family=f"{task} {measure}",
        level=MARGIN,
    )


def ahead_of(values: pd.DataFrame, base: str, methods: Sequence[str]) -> list[Told]:
    """For each task, by how many points each of ``methods`` is ahead of ``base`` on devices' own
    rows, paired by seed, with Holm's correction over them. values: of `chosen`."""
    words, unit = "accuracy on devices' own rows", f"points ahead of {METHODS[base]}"
    claims = []
    for task in WORDS:
        found = {m: of(values, task, m)["local_test_acc"] for m in (base, *methods)}
        ran = [(METHODS[m], found[m], found[base]) for m in methods if len(found[m])]
        if ran:
            claims.append(race(task, "local_test_acc", words, unit, ran))
    return [*answers.told(claims, None).values()]


def behind_best(values: pd.DataFrame, method: str) -> dict[str, float]:
    """By how many points ``method`` is behind the best on devices' own rows, on those tasks where
    Tukey's range shows that it is (`verdict.behind`), over the seeds that all have. values: of
    `chosen`."""
    found = {}
    for task in WORDS:
        wide = values.loc[task]["local_test_acc"].unstack("method")
        wide = wide.dropna(axis=1, how="all").dropna()
        if dict(zip(wide, verdict.behind(wide), strict=True))[method]:
            found[task] = wide.mean().max() - wide[method].mean()
    return found
