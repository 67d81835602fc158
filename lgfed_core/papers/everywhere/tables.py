"""Tables of the page: each method's numbers on each task, at the learning rate that it chose."""

import html

import pandas as pd

from lgfed_core.evidence.display import Page, mean_and_sd, opened
from lgfed_core.evidence.records import select
from lgfed_core.evidence.tuning import best_by_cell
from lgfed_core.evidence.verdict import NOT_RUN
from lgfed_core.papers import commands

from .run import NAME, TABLE
from .settings import METHODS, missing
from .tasks import TASKS

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


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each task and method the learning rate that is best on validation rows.

    Chosen as by `tuning.best_by_cell`. Index (task, method, seed), without seeds that diverged;
    beside `MEASURES` there are ``lr`` and ``rates``, how many had run. A method for which fewer
    have run than for others is left out until its sweep is whole.
    """
    found = every(rows)
    if found.empty:
        return found.reset_index("lr").assign(rates=0)
    best = best_by_cell(found, "validation_acc", "lr", ["task", "method"])
    out = found.reset_index("lr")
    rates = out.groupby(level=["task", "method"])["lr"].nunique()
    cell = out.index.droplevel("seed")
    out = out.assign(rates=rates.reindex(cell).to_numpy())
    kept = (out["lr"] == best.reindex(cell).to_numpy()) & (out["rates"] == rates.max())
    return out[kept & out["validation_acc"].notna()]


def of(values: pd.DataFrame, task: str, method: str) -> pd.DataFrame:
    """The seeds of one cell; empty where it has not run. values: of `chosen`."""
    at = values.index.get_level_values
    return values[(at("task") == task) & (at("method") == method)].droplevel(["task", "method"])


def page(values: pd.DataFrame, metric: str = "local_test_acc", tasks=tuple(TASKS)) -> Page:
    """A line per method, a column per task: the mean of ``metric``; all else on opening a cell.

    values: of `chosen`. A dash opens on the reason why a method cannot be put to a task.
    """
    head = "".join(f"<th>{html.escape(WORDS[task])}</th>" for task in tasks)
    body = []
    for method, words in METHODS.items():
        cells = "".join(f"<td>{_cell(values, task, method, metric)}</td>" for task in tasks)
        name = f'<th style="text-align:left;font-weight:normal">{html.escape(words)}</th>'
        body.append(f"<tr>{name}{cells}</tr>")
    return Page(
        '<div style="overflow-x:auto"><table class="lgfed" style="font-size:.85em">'
        f"<caption>{html.escape(MEASURES[metric])}</caption>"
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(values: pd.DataFrame, task: str, method: str, metric: str) -> str:
    if why := missing(task, method):
        return opened("–", why)
    mine, changes = of(values, task, method), (("tasks", (task,)), ("methods", (method,)))
    command = commands.again(NAME, "as_described", changes, len(mine))
    if mine.empty or mine[metric].isna().all():
        return opened(NOT_RUN if mine.empty else "–", "", [command] if mine.empty else [])
    line = mine.iloc[0]
    found = {words: mine[name] for name, words in MEASURES.items() if name in mine}
    said = [
        f"{words} {mean_and_sd(v, seeds=False)}" for words, v in found.items() if v.notna().any()
    ]
    rate = f"learning rate {line['lr']:g}, best of {line['rates']:.0f} on validation rows"
    return opened(
        f"{mine[metric].mean():.1f}", "; ".join([*said, f"{len(mine)} seeds", rate]), [command]
    )
