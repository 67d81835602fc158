"""Other rates and weights: how two ways to choose from them choose, and what they then reach.

The sweep has seed 0, users of 20 classes and the usual rounds; what is chosen then runs for as long
as the released sweeps.
"""

import pandas as pd

from lgfed_core.evidence.cache import once
from lgfed_core.evidence.records import select
from lgfed_core.evidence.tuning import best_setting

from . import stored
from .domains import TASKS
from .settings import Settings
from .stored import accuracy, average

RELEASED_ROUNDS = 300  # of the shortest released sweeps
FAIR = ("dann", "cdan", "shot")  # what F7 and F8 compare
WAYS = ("information", "", "target_acc")  # to choose rate and weight; "": the usual ones
SWEPT = ("lr", "weight")
_NONE = pd.Series(dtype=float, index=pd.MultiIndex.from_tuples([], names=["method", *SWEPT]))


@once
def swept(found: pd.DataFrame) -> pd.DataFrame:
    """The sweep: lines (method, lr, weight), columns ``information``, ``target_acc``.

    Means over the tasks, of non-i.i.d. users after the usual rounds, of the seeds that it has; a
    line of which a task has not run, or `lost` runs, is left out. Empty before the sweep.
    """
    mine = select(found, setting="federated", target_users="noniid", per_round=2, rounds="")
    mine = select(mine, protocol="as_described", selection="last", round="")
    mine = select(mine, metric=("information", "target_acc"), method=FAIR)
    mine = mine.assign(**{n: mine[n].fillna(getattr(Settings, n)).astype(float) for n in SWEPT})
    other = (mine[list(SWEPT)] != [getattr(Settings, n) for n in SWEPT]).any(axis=1)
    mine = mine[mine["seed"].isin(mine.loc[other, "seed"])]
    lines = mine.groupby(["method", *SWEPT, "metric"])["value"]
    whole = lines.count() == len(TASKS["office31"]) * mine["seed"].nunique()
    kept = lines.mean()[whole].unstack("metric")
    return kept[~kept.index.isin(lost(found).index)]


@once
def lost(found: pd.DataFrame) -> pd.Series:
    """Settings of the sweep under which runs collapsed: how many, by (method, lr, weight)."""
    out = {}
    for tried, _, fell in stored.elsewhere(found, ["noniid"]):
        if "rounds" not in tried:
            at = tuple(tried.get(name, getattr(Settings, name)) for name in SWEPT)
            out |= {(m, *at): n for m, n in fell.sum().items() if n and m in FAIR}
    return pd.Series(out, dtype=float).rename_axis(["method", *SWEPT]) if out else _NONE


def at_edge(at: tuple, whole: pd.MultiIndex) -> bool:
    """Whether a line (method, lr, weight) has the least or the most that was tried without a loss
    of what it varies; what varies nothing is at no edge."""
    edges = []
    for n, name in enumerate(SWEPT, 1):
        usual, tried = getattr(Settings, name), whole.get_level_values(name)
        edges.append(at[n] != usual and at[n] in (tried.min(), tried.max()))
    return any(edges)


def chosen(found: pd.DataFrame, way: str) -> dict[str, dict[str, float]]:
    """Each method's rate and weight as far as they are not the usual ones, by one of `WAYS`.

    "information" takes no label; "target_acc" is how the released sweeps choose. Empty at the usual
    ones, and before the sweep.
    """
    lines, out = swept(found) if way else pd.DataFrame(), {}
    for method, mine in lines.groupby("method") if len(lines) else ():
        at = dict(zip(SWEPT, best_setting(mine[way])[1:], strict=True))
        out[method] = {n: v for n, v in at.items() if v != getattr(Settings, n)}
    return out


@once
def longer(found: pd.DataFrame, users: str) -> dict[str, pd.DataFrame]:
    """`stored.accuracy` of the methods in `FAIR` at the released length: one for each of `WAYS` of
    which all has run, in their order."""
    out = {}
    for way in WAYS:
        at = chosen(found, way)
        wide = {m: accuracy(found, users, rounds=RELEASED_ROUNDS, **at.get(m, {})) for m in FAIR}
        if (at or not way) and all(m in some for m, some in wide.items()):
            both = pd.DataFrame({m: some[m] for m, some in wide.items()})
            if len(average(both).dropna()):
                out[way] = both
    return out
