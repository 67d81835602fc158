"""What the page of FADE on objects shows in tables, from rows of `stored.rows`."""

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.evidence.printed import METHODS as WORDS, cells
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers.differences import Pair, table, tables

from .. import printed
from . import stored
from .domains import NONIID, TASKS
from .run import stored_names
from .settings import METHODS, Settings, bottleneck

TRIED = {"rounds": "rounds", "lr": "rate", "weight": "λ"}
USERS = {"noniid": "20 classes", "noniid15": "15 classes", "iid": "i.i.d.", "central": "central"}
WAYS = {"": " rounds", "information": ", by information", "target_acc": ", by the target's labels"}
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
Means = Mapping[str, pd.DataFrame]  # by users: averages over tasks, a line per seed, %


def by_task(found: pd.DataFrame, data: str = "office31", **which) -> pd.DataFrame:
    """Mean target accuracy, %: lines (users, method), a column per task, their average, seeds.

    The average is of the seeds that have run all tasks; a method without any has none.
    """
    tasks, lines = list(TASKS[data]), {}
    named = USERS | ({"noniid": f"{NONIID[data]} classes"} if data in NONIID else {})
    kinds = [(users, words, METHODS) for users, words in named.items()]
    for users, words, methods in [("noniid", "before", stored.BEFORE.values()), *kinds]:
        wide = stored.accuracy(found, users, **which)
        averages = stored.average(wide, data)
        for method in (m for m in methods if m in wide):
            each = wide[method].groupby("task")
            means, seeds = each.mean().reindex(tasks), each.count().reindex(tasks, fill_value=0)
            name = WORDS.get(method, "source only, normalised")
            lines[words, name] = [*means, averages[method].mean(), seeds.min()]
    return pd.DataFrame(lines, [*tasks, "average", "seeds"]).T


def central_beside(found: pd.DataFrame) -> pd.DataFrame:
    """Our central methods beside the library's own runs, in percent: lines (who, method)."""
    wide = stored.accuracy(found, "central").groupby("task").mean()
    ours = wide.reindex(LIBRARY.columns).T.rename(index=lambda m: WORDS.get(m, m))
    ours = ours.reindex(["source only", "DANN", "CDAN", "SHOT"]).dropna(how="all")
    mine = {"ours, features": ours} if len(ours) else {}
    both = pd.concat(mine | {"library, ResNet-50 end to end": LIBRARY})
    return both.assign(average=both.mean(axis=1, skipna=False))


def by_number(found: pd.DataFrame) -> pd.DataFrame:
    """Averages over tasks by users a round, %: as `_beside`, a column per number."""
    numbers = sorted({int(n) for n in found["per_round"].dropna()})
    ways = {n: _means(found, per_round=n) for n in numbers if len(numbers) > 1}
    return _beside(ways, {users: USERS[users] for users in ("noniid", "iid")})


def by_protocol(found: pd.DataFrame) -> pd.DataFrame:
    """Averages over tasks, %: as `_beside`, as described, as released, and the paper's.

    Non-i.i.d. users have 20 classes as described and 15 as released; "15 classes" are both at 15,
    beside which the paper prints nothing.
    """
    own = stored_names(select(cells(printed.TABLES["fade_table1_office"]), task=TASKS["office31"]))
    own = own.assign(users=own["target_users"].where(own["setting"] != "central", "central"))
    paper = own.groupby(["users", "method"])["paper"].mean()
    paper = paper.rename(index=USERS | {"noniid": "20 or 15"}, level=0).rename(index=WORDS, level=1)
    ways = {p.replace("_", " "): _means(found, protocol=p) for p in PROTOCOLS}
    both = _beside(ways, USERS | {"noniid": "20 or 15"})
    if len(both):
        both.insert(len(ways), "paper", paper.reindex(both.index))
    return both


def choices(found: pd.DataFrame) -> pd.DataFrame:
    """What a choice of the round is worth, %: as `_beside`, a column per choice."""
    ways = {
        "last round": _means(found),
        "most information": _means(found, selection="best_val"),
        "target's labels": _means(found, metric="oracle_acc"),
    }
    return _beside(ways)


def chances(found: pd.DataFrame) -> dict[str, Means]:
    """The methods of F7 and F8 in runs of the usual and of the released length, at the usual rate
    and weight and at what the sweep chose, by way; without those that have not run."""
    kinds = ("noniid", "iid")
    longer = {users: stored.longer(found, users) for users in kinds}
    ways: dict[str, Means] = {f"{Settings.rounds} rounds": _means(found)}
    for way, words in WAYS.items():
        if all(way in longer[users] for users in kinds):
            each = {users: stored.average(longer[users][way]) for users in kinds}
            ways[f"{stored.RELEASED_ROUNDS}{words}"] = each
    return ways


def fair_chance(found: pd.DataFrame) -> pd.DataFrame:
    """`chances`, %: as `_beside`, a column per way."""
    users = {kind: USERS[kind] for kind in ("noniid", "iid")}
    return _beside(chances(found), users, stored.FAIR)


def by_setting(found: pd.DataFrame) -> pd.DataFrame:
    """`stored.swept` for people: lines (method, rate, weight), what each choice would take, whether
    that is at the edge of what was tried, and how many runs collapsed, where any did."""
    lines, fell = stored.swept(found), stored.lost(found)
    if lines.empty:
        return lines
    best = pd.Series("", lines.index)
    for by, words in {"information": "information", "target_acc": "labels"}.items():
        for method, mine in lines.groupby("method"):
            at = mine[by].idxmax()
            edge = " (edge)" if stored.at_edge(at, lines.loc[[method]].index) else ""
            best[at] += f"{', ' if best[at] else ''}{words}{edge}"
    names = dict(information="information, nats", target_acc="target accuracy, %")
    lines = lines.rename(columns=names).reindex(lines.index.union(fell.index))
    lines["best by"] = best.reindex(lines.index, fill_value="")
    lines["collapsed"] = (
        fell.map("{:.0f}".format).astype(object).reindex(lines.index, fill_value="")
    )
    lines = lines.reindex([m for m in METHODS if m in lines.index.unique(0)], level=0)
    lines = lines.rename(index=WORDS, level=0).rename_axis(["method", "rate", "λ"])
    return lines.rename_axis(columns=None)


def collapses(found: pd.DataFrame) -> pd.DataFrame:
    """How many runs have collapsed under each protocol, with any number of users a round, and
    which; other settings apart: a line each, columns runs, collapsed, which."""
    runs: dict[str, list[pd.Series]] = {}
    for protocol, users, words in _ran():
        some = runs.setdefault(protocol.replace("_", " "), [])
        # of central runs there is no such number
        for many in stored.numbers(found) if users != "central" else Settings.per_round:
            fell = stored.collapsed(found, users, protocol=protocol, per_round=many)
            other = many not in Settings.per_round
            some.append(_named(fell, f"{words}, {many} a round" if other else words))
    for tried, users, mine in stored.elsewhere(found):
        words = ", ".join(f"{TRIED[name]} {value:g}" for name, value in tried.items())
        some = runs.setdefault("other rounds, rates and λ", [])
        some.append(_named(mine, f"{USERS[users]}, {words}"))
    lines = {}
    for words, some in runs.items():
        fell = pd.concat(some)
        lost = fell[fell == 1].groupby(lambda at: f"{at[2]}, {at[0]}").size()
        which = "; ".join(f"{name}: {n}" for name, n in lost.items())
        lines[words] = {"runs": len(fell), "collapsed": int(lost.sum()), "which": which}
    return pd.DataFrame(lines).T


def differences(found: pd.DataFrame) -> Page:
    """What methods, users and settings differ by, averages over tasks paired by seed."""
    text, code = _means(found), _means(found, protocol="as_released")
    told = _means(found, metric="information")["noniid"]
    labels = _means(found, metric="oracle_acc")["noniid"]
    start = {method: stored.BEFORE[bottleneck(method)] for method in METHODS}
    fair = {f"{USERS['noniid']}, {way}": of["noniid"] for way, of in chances(found).items()}
    usual = f"{USERS['noniid15']}, {Settings.rounds} rounds"
    fair |= {usual: text["noniid15"], f"{usual}, as released": code["noniid15"]}
    others = {"dann": WORDS["dann"], start["cdan"]: "the model before the game"}
    points, some = "points of target accuracy", ("noniid15", "iid")  # as released, 15 classes
    released = f"as released, {Settings.rounds} rounds, {points}"
    parts = {
        f"What adaptation adds to the source's model, {points}": _pairs(
            {USERS[u]: (text[u], _as(text[u], start)) for u in ("noniid", *some)}
        ),
        f"CDAN ahead of SHOT, {points}": [
            (way, of["cdan"], of["shot"]) for way, of in fair.items() if {"cdan", "shot"} <= set(of)
        ],
        f"SHOT ahead of others, {released}": _pairs(
            {USERS[u]: (_as(code[u], dict(dann="shot", cdan="shot")), code[u]) for u in some}
        ),
        f"Fewer classes for each user, {points}": _pairs(
            {
                "20 against i.i.d.": (text["noniid"], text["iid"]),
                "15 against 20": (text["noniid15"], text["noniid"]),
            }
        ),
        "Information in CDAN's predictions within users, more than in others', 20 classes, nats": [
            (words, told["cdan"], told[m])
            for m, words in others.items()
            if {m, "cdan"} <= set(told)
        ],
        "What choosing the round on the target's labels adds, 20 classes, points": _pairs(
            {USERS["noniid"]: (labels, text["noniid"])}
        ),
        f"{released[0].upper()}{released[1:]}, against as described": _pairs(
            {USERS[u]: (code[u], text[u]) for u in some}
        ),
    }
    return tables(table(h, pairs, digits=2 + h.endswith("nats")) for h, pairs in parts.items())


def _means(found: pd.DataFrame, **which) -> Means:
    """Averages over tasks by users; which: of `stored.accuracy`."""
    return {users: stored.average(stored.accuracy(found, users, **which)) for users in USERS}


def _beside(
    ways: Mapping[object, Means], users: Mapping[str, str] = USERS, methods: Iterable[str] = METHODS
) -> pd.DataFrame:
    """Lines (users, method), a column per way, and seeds: means of those that all ways have."""
    lines = {}
    for kind, words in users.items() if ways else ():
        for method in methods:
            if all(method in of[kind] for of in ways.values()):
                both = pd.DataFrame({way: of[kind][method] for way, of in ways.items()}).dropna()
                if len(both):
                    lines[words, WORDS[method]] = both.mean().to_dict() | dict(seeds=len(both))
    return pd.DataFrame(lines).T


def _as(of: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Columns of ``of`` under other names, new -> old, those that are there."""
    return pd.DataFrame({new: of[old] for new, old in names.items() if old in of})


def _pairs(kinds: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]) -> list[Pair]:
    """Each method of both tables against itself, by kind."""
    return [
        (f"{words}, {WORDS[method]}", a[method], b[method])
        for words, (a, b) in kinds.items()
        for method in METHODS
        if method in a and method in b
    ]


def _ran() -> Iterator[tuple[str, str, str]]:
    """Each protocol with its kinds of users, once: as released non-i.i.d. ones have 15 classes."""
    for protocol in PROTOCOLS:
        for users, words in USERS.items():
            if protocol == "as_described" or users != "noniid":
                yield protocol, users, words


def _named(fell: pd.DataFrame, words: str) -> pd.Series:
    """Runs of `stored.collapsed` in one column; lines (task, seed, users and method)."""
    mine = fell.rename(columns=lambda method: f"{words}, {WORDS[method]}")
    return mine.stack().dropna() if mine.size else pd.Series(dtype=float)
