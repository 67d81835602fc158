"""Whether the methods got a fair chance: other lengths, rates and weights, in tables."""

import pandas as pd

from lgfed_core.evidence.printed import METHODS as WORDS

from . import stored, sweep
from .domains import TASKS
from .settings import METHODS, Settings
from .tables import USERS

WAYS = {"": " rounds", "information": ", by information", "target_acc": ", by the target's labels"}


def by_length(found: pd.DataFrame) -> pd.DataFrame:
    """Target accuracy by rounds, %: lines (users, tasks, method), a column per length, and seeds,
    the fewest of a task.

    Each line has the tasks and seeds that have run at every length it shows; how many batches a
    central method takes for so many rounds says `Parts.central`. Empty without another length.
    """
    longer = sorted({int(r) for r in found["rounds"].dropna()})
    lines = []
    for users, words in USERS.items():
        usual = stored.accuracy(found, users)
        for rounds in longer:
            wide = stored.accuracy(found, users, rounds=rounds)
            for method in (m for m in METHODS if m in wide and m in usual):
                both = pd.concat({Settings.rounds: usual[method], rounds: wide[method]}, axis=1)
                both = both.dropna()
                seeds = both.groupby("task").size().min()
                both = both.groupby("task").mean()
                names = "all" if len(both) == len(TASKS["office31"]) else ", ".join(both.index)
                line = dict(users=words, tasks=names, method=WORDS[method])
                lines += [line | both.mean().to_dict() | dict(seeds=seeds)] if len(both) else []
    table = pd.DataFrame(lines).set_index(["users", "tasks", "method"]) if lines else pd.DataFrame()
    return table[[*(c for c in table if c != "seeds"), "seeds"]] if lines else table


def chance(found: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """The methods of F7 and F8 in runs of the usual and of the released length, at the usual rate
    and weight and at what the sweep chose: way -> users -> averages, a line per seed, %."""
    usual, longer = (
        {users: of(found, users) for users in ("noniid", "iid")}
        for of in (stored.accuracy, sweep.longer)
    )
    ways = {f"{Settings.rounds} rounds": usual}
    for way, words in WAYS.items():
        own = {users: some.get(way, ()) for users, some in longer.items()}
        ways[f"{sweep.RELEASED_ROUNDS}{words}"] = own
    return {
        name: {users: stored.average(wide) for users, wide in some.items()}
        for name, some in ways.items()
        if all(len(wide) for wide in some.values())
    }


def table(found: pd.DataFrame) -> pd.DataFrame:
    """`chance` for people: lines (users, method), a column per way, means in %, and seeds: of those
    that all ways have."""
    ways, lines = chance(found), {}
    for users in ("noniid", "iid"):
        for method in sweep.FAIR:
            each = {
                name: some[users][method] for name, some in ways.items() if method in some[users]
            }
            both = pd.DataFrame(each).dropna()
            if len(both):
                seeds = dict(seeds=len(both))
                lines[USERS[users], WORDS[method]] = both.mean().to_dict() | seeds
    return pd.DataFrame(lines).T


def by_setting(found: pd.DataFrame) -> pd.DataFrame:
    """`sweep.swept` for people: lines (method, rate, weight), what each choice would take, whether
    that is at the edge of what was tried, and how many runs collapsed, where any did."""
    lines, fell = sweep.swept(found), sweep.lost(found)
    if lines.empty:
        return lines
    said = pd.Series("", lines.index)
    for by, words in {"information": "information", "target_acc": "labels"}.items():
        for method, mine in lines.groupby("method"):
            at = mine[by].idxmax()
            edge = " (edge)" if sweep.at_edge(at, lines.loc[[method]].index) else ""
            said[at] += f"{', ' if said[at] else ''}{words}{edge}"
    lines = lines.assign(best=said)
    lines = lines.reindex(lines.index.union(fell.index)).fillna(dict(best=""))
    lines["fell"] = [f"{fell[at]:.0f}" if at in fell.index else "" for at in lines.index]
    order = {m: n for n, m in enumerate(METHODS)}
    lines = lines.sort_index(key=lambda of: of.map(order) if of.name == "method" else of)
    names = dict(information="information, nats", target_acc="target accuracy, %")
    names |= dict(best="best by", fell="collapsed")
    lines = lines.rename(index=lambda m: WORDS.get(m, m), level=0).rename(columns=names)
    return lines.rename_axis(["method", "rate", "λ"]).rename_axis(columns=None)
