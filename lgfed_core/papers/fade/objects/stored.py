"""What has been recorded of adaptation on objects: accuracies and collapses by task and seed, the
sweep of rates and weights.

A run has *collapsed* if its target accuracy after the last round is below half of what the model
had before the game (`run.COLLAPSED`, fixed before the first run), or if it left the finite numbers.
The sweep has seed 0, users of 20 classes and the usual rounds; what is chosen of it runs for as
long as the released sweeps.
"""

from collections.abc import Sequence

import pandas as pd

from lgfed_core.evidence.printed import cells
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import DIVERGED
from lgfed_core.evidence.tuning import best_setting
from lgfed_core.papers import printed

from .domains import METHODS, TASKS, Settings, bottleneck
from .run import COLLAPSED, NAME, PRETRAINED, TRIED, stored_names

USUAL = ("", "gradients", "resnet50", "inception_v3")  # backbones of the claims
BEFORE = {kind: lines[0][0] for kind, lines in PRETRAINED.items()}  # by bottleneck
RELEASED_ROUNDS = 300  # of the shortest released sweeps
FAIR = ("dann", "cdan", "shot")  # what F7 and F8 compare
WAYS = ("information", "", "target_acc")  # to choose rate and weight; "": the usual ones
SWEPT = ("lr", "weight")
_IDS = (
    *("data", "task", "method", "setting", "target_users", "per_round", "backbone", "round"),
    *(*TRIED, "stand_in"),
)


def rows(
    data: str = "office31", scale: str = "paper", backbones: Sequence[str] = USUAL
) -> pd.DataFrame:
    """Recorded rows of one set; empty before the first. Methods go by their plain names.

    Of several backbones those of the paper's count alone as soon as there are some.
    """
    where = dict(scale=scale, data=data, backbone=backbones)
    return stored_names(select(NAME, columns=_IDS, own=True, **where))


def accuracy(
    found: pd.DataFrame,
    users: str = "noniid",
    metric: str = "target_acc",
    selection: str = "last",
    per_round: int = 2,
    protocol: str = "as_described",
    **tried: float,
) -> pd.DataFrame:
    """One measure: lines (task, seed), a column per method, among them those before the game.

    users: of `run.USERS`, or "central". tried: of `run.TRIED`, values other than the usual ones. A
    method has a column as soon as one of its runs is here.
    """
    tried = dict.fromkeys(TRIED, "") | tried
    mine = select(found, metric=metric, selection=selection, protocol=protocol, round="", **tried)
    before = select(mine, method=BEFORE.values(), setting="federated")
    if users == "central":
        mine = select(mine, setting="central")
    else:
        mine = select(mine, setting="federated", target_users=users, per_round=per_round)
    both = pd.concat([before, mine[~mine["method"].isin(BEFORE.values())]])
    return both.pivot_table("value", ["task", "seed"], "method")


def average(wide: pd.DataFrame, data: str = "office31") -> pd.DataFrame:
    """Means over all tasks, by seed: a line per seed, NaN where a task has not run."""
    counted = wide.groupby("seed").count()
    return wide.groupby("seed").mean().where(counted == len(TASKS[data]))


def mean(users: str, method: str, metric: str = "target_acc", **which) -> pd.Series:
    """Means over all tasks of one method, by seed, of the recorded runs; which: of `accuracy`."""
    return average(accuracy(rows(), users, metric, **which))[method].dropna()


def paper_means() -> pd.Series:
    """The averages over the tasks that the paper's Table 1 has, by users and method, %."""
    own = stored_names(select(cells(printed.TABLES["fade_table1_office"]), task=TASKS["office31"]))
    users = own["target_users"].where(own["setting"] != "central", "central")
    return own.groupby([users, "method"])["paper"].mean()


def ended(found: pd.DataFrame) -> pd.DataFrame:
    """Every run: protocol, rounds, lr, weight (0: the usual one), users, per_round (0: central),
    task, seed, method, and whether it has ``fallen``, that is collapsed."""
    last = select(found, selection="last", round="", metric=("target_acc", DIVERGED))
    last = last.assign(users=last["target_users"].where(last["setting"] != "central", "central"))
    last = last.fillna(dict.fromkeys((*TRIED, "per_round"), 0) | {"users": ""})
    at = ["protocol", *TRIED, "task", "seed"]
    wide = last.pivot_table("value", [*at, "users", "per_round", "method"], "metric")
    wide = wide.reindex(columns=["target_acc", DIVERGED]).reset_index()
    before = select(wide, users="", method=BEFORE.values())[[*at, "method", "target_acc"]]
    before = before.rename(columns={"method": "start", "target_acc": "before"})
    runs = select(wide, method=METHODS)
    runs = runs.assign(start=runs["method"].replace({m: BEFORE[bottleneck(m)] for m in METHODS}))
    runs = runs.merge(before, how="left", on=[*at, "start"])
    runs["fallen"] = runs[DIVERGED].notna() | (runs["target_acc"] < COLLAPSED * runs["before"])
    known = runs[DIVERGED].notna() | runs[["target_acc", "before"]].notna().all(axis=1)
    twice = (runs["protocol"] == "as_released") & (runs["users"] == "noniid")  # are "noniid15"
    return runs[known & ~twice].drop(columns=["target_acc", DIVERGED, "before", "start"])


def swept(found: pd.DataFrame) -> pd.DataFrame:
    """The sweep: lines (method, lr, weight), columns ``information``, ``target_acc``.

    Means over the tasks, of non-i.i.d. users after the usual rounds, of the seeds that it has; a
    line of which a task has not run, or `lost` runs, is left out. Empty before the sweep.
    """
    where = dict(setting="federated", target_users="noniid", per_round=2, rounds="", round="")
    where |= dict(protocol="as_described", selection="last", method=FAIR)
    mine = select(found, metric=("information", "target_acc"), **where)
    usual = {name: getattr(Settings, name) for name in SWEPT}
    mine = mine.assign(**mine[list(SWEPT)].fillna(usual).astype(float))
    other = mine[list(SWEPT)].ne(usual).any(axis=1)
    mine = mine[mine["seed"].isin(mine.loc[other, "seed"])]
    lines = mine.groupby(["method", *SWEPT, "metric"])["value"]
    whole = lines.count() == len(TASKS["office31"]) * mine["seed"].nunique()
    kept = lines.mean()[whole].unstack("metric")
    return kept[~kept.index.isin(lost(found).index)]


def lost(found: pd.DataFrame) -> pd.Series:
    """Settings of the sweep under which runs collapsed: how many, by (method, lr, weight)."""
    where = dict(protocol="as_described", rounds=0, users="noniid", per_round=2, method=FAIR)
    mine = select(ended(found), fallen=True, **where)
    mine = mine[mine[list(SWEPT)].any(axis=1)]
    mine = mine.replace({name: {0: getattr(Settings, name)} for name in SWEPT})
    return mine.groupby(["method", *SWEPT]).size()


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


def longer(found: pd.DataFrame, users: str) -> dict[str, pd.DataFrame]:
    """`accuracy` of the methods in `FAIR` at the released length: one for each of `WAYS` of which
    all has run, in their order."""
    out = {}
    for way in WAYS:
        at = chosen(found, way)
        wide = {m: accuracy(found, users, rounds=RELEASED_ROUNDS, **at.get(m, {})) for m in FAIR}
        if (at or not way) and all(m in some for m, some in wide.items()):
            both = pd.DataFrame({m: some[m] for m, some in wide.items()})
            if len(average(both).dropna()):
                out[way] = both
    return out
