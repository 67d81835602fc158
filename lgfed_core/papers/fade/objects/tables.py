"""What the page of FADE on objects shows in tables, from rows of `stored.rows`."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from lgfed_core.evidence.collapse import groups_of
from lgfed_core.evidence.printed import METHODS as WORDS, cells
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import PROTOCOLS

from .. import printed
from . import claims, stored
from .domains import NONIID, TASKS
from .run import stored_names
from .settings import METHODS, Settings

TRIED = {"rounds": "rounds", "lr": "rate", "weight": "λ"}
USERS = {"noniid": "20 classes", "noniid15": "15 classes", "iid": "i.i.d.", "central": "central"}
# The Transfer-Learning-Library's own runs (ResNet-50, end to end, best epoch on the target), as its
# documentation prints them: docs/dalib/benchmarks/image_classification.rst, 1cd7e04 (2021)
LIBRARY = pd.DataFrame(
    {
        "source only": (79.3, 75.8, 63.6, 95.5, 63.8, 99.0),
        "DANN": (83.6, 91.4, 73.3, 97.9, 70.4, 100.0),
        "CDAN": (89.9, 93.8, 73.4, 98.5, 70.4, 100.0),
    },
    index=pd.Index(TASKS["office31"], name="task"),
).T


def by_task(found: pd.DataFrame, data: str = "office31", **which) -> pd.DataFrame:
    """Mean target accuracy, %: lines (users, method), a column per task, their average, seeds.

    The average is of the seeds that have run all tasks; a method without any has none.
    """
    tasks, lines = list(TASKS[data]), {}
    named = USERS | ({"noniid": f"{NONIID[data]} classes"} if data in NONIID else {})
    for users, words in named.items():
        wide = stored.accuracy(found, users, **which)
        for method in (*stored.BEFORE.values(), *METHODS):
            if method not in wide or (method in stored.BEFORE.values() and users != "noniid"):
                continue
            means = wide[method].groupby("task").mean().reindex(tasks)
            seeds = wide[method].groupby("task").count().reindex(tasks, fill_value=0).min()
            name = WORDS.get(method, "source only, normalised")
            key = ("before" if method in stored.BEFORE.values() else words, name)
            lines[key] = [*means, stored.average(wide, data)[method].mean(), seeds]
    return pd.DataFrame(lines, [*tasks, "average", "seeds"]).T


def central_beside(found: pd.DataFrame) -> pd.DataFrame:
    """Our central methods beside the library's own runs, in percent: lines (who, method)."""
    wide = stored.accuracy(found, "central").groupby("task").mean()
    ours = wide.reindex(LIBRARY.columns).T.rename(index=lambda m: WORDS.get(m, m))
    ours = ours.reindex(["source only", "DANN", "CDAN", "SHOT"]).dropna(how="all")
    both = {"ours, features": ours, "library, ResNet-50 end to end": LIBRARY}
    both = {name: table for name, table in both.items() if len(table)}
    table = pd.concat(both)
    return table.assign(average=table.mean(axis=1, skipna=False))


def by_number(found: pd.DataFrame) -> pd.DataFrame:
    """Averages over tasks by users a round, %: lines (users, method), a column per number.

    Of the seeds that have run with every number.
    """
    numbers, lines = sorted({int(n) for n in found["per_round"].dropna()}), {}
    for users, words in list(USERS.items())[:-1] if len(numbers) > 1 else ():
        wide = {n: stored.average(stored.accuracy(found, users, per_round=n)) for n in numbers}
        for method in METHODS:
            if all(method in some for some in wide.values()):
                both = pd.DataFrame({n: some[method] for n, some in wide.items()}).dropna()
                if len(both):
                    lines[words, WORDS[method]] = both.mean().to_dict() | dict(seeds=len(both))
    return pd.DataFrame(lines).T


def by_protocol(found: pd.DataFrame) -> pd.DataFrame:
    """Averages over tasks, %: lines (users, method), as described, as released, and the paper's.

    Non-i.i.d. users have 20 classes as described and 15 as released; "15 classes" are both at 15,
    beside which the paper prints nothing.
    """
    own = select(cells(printed.TABLES["fade_table1_office"]), task=TASKS["office31"])
    own = stored_names(own)
    lines = {}
    for users in ("noniid", "noniid15", "iid", "central"):
        where = dict(setting="central") if users == "central" else dict(target_users=users)
        means = {p: stored.average(stored.accuracy(found, users, protocol=p)) for p in PROTOCOLS}
        for method in METHODS:
            ran = [some[method].dropna() for some in means.values() if method in some]
            if len(ran) == len(PROTOCOLS) and all(map(len, ran)):
                line = [*(some.mean() for some in ran)]
                line += [select(own, method=method, **where)["paper"].mean(), min(map(len, ran))]
                lines["20 or 15" if users == "noniid" else USERS[users], WORDS[method]] = line
    columns = [*(p.replace("_", " ") for p in PROTOCOLS), "paper", "seeds"]
    return pd.DataFrame(lines, columns).T


def choices(found: pd.DataFrame) -> pd.DataFrame:
    """What a choice of the round is worth: lines (users, method), means over tasks and seeds, %."""
    lines = {}
    for users, words in USERS.items():
        ways = {
            "last round": stored.accuracy(found, users),
            "most information": stored.accuracy(found, users, selection="best_val"),
            "target's labels": stored.accuracy(found, users, "oracle_acc"),
        }
        for method in METHODS:
            if all(method in wide for wide in ways.values()):
                means = {name: stored.average(w)[method].mean() for name, w in ways.items()}
                lines[words, WORDS[method]] = means
    return pd.DataFrame(lines).T


def one_in_three() -> pd.DataFrame:
    """Printed numbers that one collapsed run of three would explain; a line per task.

    Columns, %: the print and its deviation; where the collapsed run and the others must lie if that
    is a sample's, or a population's; what the best run must reach in any case if it is a
    population's; and beside it the highest number that the table prints for the task.
    """
    table, lines = printed.TABLES["fade_table1_office"], {}
    found = cells(table)
    for cell in found.to_dict("records"):
        reading = groups_of(table, cell)
        if reading and reading.collapsed:
            mean, sd = cell["paper"], cell["paper_sd"]
            lines[cell["task"]] = {
                ("printed", "mean"): mean,
                ("printed", "deviation"): sd,
                ("printed", "highest of all methods"): found.loc[
                    found["task"] == cell["task"], "paper"
                ].max(),
                **_levels("of a sample", claims.one_collapse(mean, sd)),
                **_levels("of a population", claims.one_collapse(mean, sd, sample=False)),
                ("of a population", "best run, at least"): claims.highest_run(mean, sd),
            }
    return pd.DataFrame(lines).T.rename_axis("task")


def _levels(words: str, found: tuple[float, float]) -> dict[tuple[str, str], float]:
    return dict(zip([(words, "one"), (words, "the others")], found, strict=True))


def failures(found: pd.DataFrame) -> pd.DataFrame:
    """Collapsed runs, %, with two users a round: lines (protocol, users, method): runs, share, mean
    of the others over tasks, and the lowest accuracy of all."""
    lines = {}
    for protocol, users, words in _ran():
        wide, fell = (
            of(found, users, protocol=protocol) for of in (stored.accuracy, stored.collapsed)
        )
        for method in fell.columns.intersection(list(METHODS), sort=False):
            runs = fell[method].dropna()
            values = wide[method] if method in wide else pd.Series(dtype=float)
            whole = values[(runs == 0).reindex(values.index, fill_value=False)]
            lines[protocol.replace("_", " "), words, WORDS[method]] = {
                "runs": len(runs),
                "collapsed": 100 * runs.mean(),
                "mean of the others": whole.groupby("task").mean().mean(),
                "lowest": values.min(),
            }
    return pd.DataFrame(lines).T


def _ran() -> Iterator[tuple[str, str, str]]:
    """Each protocol with its kinds of users, once: as released non-i.i.d. ones have 15 classes."""
    for protocol in PROTOCOLS:
        for users, words in USERS.items():
            if protocol == "as_described" or users != "noniid":
                yield protocol, users, words


def collapses(found: pd.DataFrame) -> pd.DataFrame:
    """How many runs have collapsed under each protocol, with any number of users a round, and
    which; other settings apart: a line each, columns runs, collapsed, which."""
    runs: dict[str, list[pd.Series]] = {}
    for protocol, users, words in _ran():
        for many in stored.numbers(found):
            fell = stored.collapsed(found, users, protocol=protocol, per_round=many)
            named = _named(fell, words)
            if many not in Settings.per_round:  # of central runs there is no such number
                named = _named(fell if users != "central" else fell[:0], f"{words}, {many} a round")
            runs.setdefault(protocol.replace("_", " "), []).append(named)
    for tried, users, mine in stored.elsewhere(found):
        words = ", ".join(f"{TRIED[name]} {value:g}" for name, value in tried.items())
        named = _named(mine, f"{USERS[users]}, {words}")
        runs.setdefault("other rounds, rates and λ", []).append(named)
    lines = {}
    for words, some in runs.items():
        fell = pd.concat(some)
        lost = fell[fell == 1].groupby(lambda at: f"{at[2]}, {at[0]}").size()
        which = "; ".join(f"{name}: {n}" for name, n in lost.items())
        lines[words] = {"runs": len(fell), "collapsed": int(lost.sum()), "which": which}
    return pd.DataFrame(lines).T


def _named(fell: pd.DataFrame, words: str) -> pd.Series:
    """Runs of `stored.collapsed` in one column; lines (task, seed, users and method)."""
    mine = fell.rename(columns=lambda method: f"{words}, {WORDS[method]}")
    return mine.stack().dropna() if mine.size else pd.Series(dtype=float)


def probe(x: NDArray, y: NDArray, on: NDArray, right: NDArray) -> float:
    """Accuracy in percent on rows ``on`` [m, d] of a linear classifier of x [n, d], y [n]."""
    return 100 * LogisticRegression(max_iter=300).fit(x / 3, y).score(on / 3, right)
