"""What has been recorded of adaptation on objects: accuracies and collapses, by task and seed.

A run has *collapsed* if its target accuracy after the last round is below half of what the model
had before the game (`run.COLLAPSED`, fixed before the first run), or if it left the finite numbers.
"""

from collections.abc import Iterable, Iterator

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import DIVERGED

from .domains import TASKS
from .run import COLLAPSED, NAME, PRETRAINED, TRIED, stored_names
from .settings import METHODS, USERS, Settings, bottleneck

BEFORE = {kind: lines[0][0] for kind, lines in PRETRAINED.items()}  # by bottleneck
_IDS = (
    *("data", "task", "method", "setting", "target_users", "per_round", "backbone", "round"),
    *(*TRIED, "stand_in"),
)


def rows(data: str = "office31", scale: str = "paper") -> pd.DataFrame:
    """Recorded rows of one set; empty before the first. Methods go by their plain names.

    Of several backbones those of the paper's count alone as soon as there are some.
    """
    found = select(NAME, columns=_IDS, scale=scale, data=data)
    own = select(found, stand_in="")
    found = found if own.empty else own
    return stored_names(found)


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
    mine = select(found, metric=metric, selection=selection, protocol=protocol, round="")
    mine = select(mine, **(dict.fromkeys(TRIED, "") | tried))
    before = select(mine, method=list(BEFORE.values()), setting="federated")
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


def collapsed(found: pd.DataFrame, users: str = "noniid", **which) -> pd.DataFrame:
    """Which runs have collapsed: as `accuracy`, 1 or 0, NaN where one has not run."""
    wide = accuracy(found, users, **which)
    lost = accuracy(found, users, DIVERGED, **which)
    out = pd.DataFrame(index=wide.index.union(lost.index))
    for method in METHODS:
        start = BEFORE[bottleneck(method)]
        if method in wide and start in wide:
            fell = (wide[method] < COLLAPSED * wide[start]).astype(float)
            out[method] = fell.where(wide[method].notna() & wide[start].notna())
        if method in lost:
            out.loc[lost.index[lost[method].notna()], method] = 1.0
    return out


def numbers(found: pd.DataFrame) -> list[int]:
    """How many users a round there are runs with, the usual ones first."""
    usual = list(Settings.per_round)
    return [*usual, *sorted({int(n) for n in found["per_round"].dropna()} - set(usual))]


def elsewhere(
    found: pd.DataFrame, kinds: Iterable[str] = (*USERS, "central")
) -> Iterator[tuple[dict[str, float], str, pd.DataFrame]]:
    """`collapsed` as described wherever rounds, rate or weight are not the usual ones: those that
    are not, the users (of ``kinds``), and the runs."""
    ends = ("target_acc", DIVERGED)  # all that `collapsed` reads, of many times as many rows
    found = select(found, protocol="as_described", selection="last", round="", metric=ends)
    for values, some in found.groupby(list(TRIED), dropna=False):
        tried = {name: value for name, value in zip(TRIED, values, strict=True) if pd.notna(value)}
        for users in kinds if tried else ():
            fell = collapsed(some, users, **tried)
            if fell.size:
                yield tried, users, fell
