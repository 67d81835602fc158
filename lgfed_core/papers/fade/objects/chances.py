"""Whether the methods got a fair chance: other lengths, rates and weights, in tables."""

import pandas as pd

from lgfed_core.evidence.printed import METHODS as WORDS

from . import stored, sweep
from .domains import TASKS
from .settings import METHODS, Settings
from .tables import USERS

WAYS = {"": " rounds", "information": ", by information", "target_acc": ", by the target's labels"}


def by_length(found: pd.DataFrame) -> pd.DataFrame:
    """Target accuracy by rounds, %: lines (users, tasks, method), a column per length.

    Each line has the tasks and seeds that have run at every length it shows; a central method takes
    as many batches as a federated run of so many rounds. Empty without another length than usual.
    """
    longer = sorted({int(r) for r in found["rounds"].dropna()})
    lines = []
    for users, words in USERS.items():
        usual = stored.accuracy(found, users)
        for rounds in longer:
            wide = stored.accuracy(found, users, rounds=rounds)
            for method in (m for m in METHODS if m in wide and m in usual):
                both = pd.concat({Settings.rounds: usual[method], rounds: wide[method]}, axis=1)
                both = both.dropna().groupby("task").mean()
                names = "all" if len(both) == len(TASKS["office31"]) else ", ".join(both.index)
                line = dict(users=words, tasks=names, method=WORDS[method])
                lines += [line | both.mean().to_dict()] if len(both) else []
    return pd.DataFrame(lines).set_index(["users", "tasks", "method"]) if lines else pd.DataFrame()


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
    """`chance` for people: lines (users, method), a column per way, means over seeds, %."""
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for name, some in chance(found).items():
        for users, means in some.items():
            for method in (m for m in sweep.FAIR if m in means):
                lines.setdefault((USERS[users], WORDS[method]), {})[name] = means[method].mean()
    return pd.DataFrame(lines).T


def by_setting(found: pd.DataFrame) -> pd.DataFrame:
    """`sweep.swept` for people: lines (method, rate, weight), and what each choice would take."""
    lines = sweep.swept(found)
    if lines.empty:
        return lines
    best = {
        by: lines.groupby("method")[by].transform("max") for by in ("information", "target_acc")
    }
    said = [
        ", ".join(name for name, by in best.items() if lines.loc[at, name] == by[at])
        for at in lines.index
    ]
    said = [words.replace("target_acc", "labels") for words in said]
    order = {m: n for n, m in enumerate(METHODS)}
    lines = lines.assign(best=said).sort_index(
        key=lambda of: of.map(order) if of.name == "method" else of
    )
    names = dict(information="information, nats", target_acc="target accuracy, %", best="best by")
    return lines.rename(index=lambda m: WORDS.get(m, m), level=0).rename(columns=names)
