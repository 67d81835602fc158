"""Claims F6 to F9 of FADE, from stored runs on objects (`run`), and F15 beside them.

Seeds pair the comparisons; an average is over the tasks, so that a seed gives one number. A run has
*collapsed* if its target accuracy after the last round is below half of what the model had before
the game (`run.COLLAPSED`, fixed before the first run), or if it left the finite numbers.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from lgfed_core.evidence import claims
from lgfed_core.evidence.claims import Claim, Part, paired
from lgfed_core.evidence.records import select, stand_in
from lgfed_core.evidence.verdict import Evidence, greater
from lgfed_core.papers.experiment import DIVERGED

from .domains import TASKS
from .run import COLLAPSED, FEDERATED, NAME, TRIED
from .settings import METHODS, Settings, bottleneck

PRINTED_SHARE = 1 / 3  # of collapsed runs that make the printed D->A, 43.1 with a deviation of 33
RELEASED_ROUNDS = 300  # of the shortest released sweeps
BEFORE = ("source_only", "source_only_norm")  # by bottleneck
FAIR = ("dann", "cdan", "shot")  # what F7 and F8 compare
SWEPT = ("lr", "weight")
_PLAIN = {printed: name for name, printed in FEDERATED.items()}
_IDS = (
    *("data", "task", "method", "setting", "target_users", "per_round", "backbone", "round"),
    *(*TRIED, "stand_in"),
)


def stored(data: str = "office31", scale: str = "paper") -> pd.DataFrame:
    """Recorded rows of one set; empty before the first. Methods go by their plain names.

    Of several backbones those of the paper's count alone as soon as there are some.
    """
    found = select(NAME, columns=_IDS, scale=scale, data=data)
    own = select(found, stand_in="")
    found = found if own.empty else own
    return found.assign(method=found["method"].replace(_PLAIN))


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
    before = select(mine, method=BEFORE, setting="federated")
    if users == "central":
        mine = select(mine, setting="central")
    else:
        mine = select(mine, setting="federated", target_users=users, per_round=per_round)
    both = pd.concat([before, mine[~mine["method"].isin(BEFORE)]])
    return both.pivot_table("value", ["task", "seed"], "method")


def average(wide: pd.DataFrame, data: str = "office31") -> pd.DataFrame:
    """Means over all tasks, by seed: a line per seed, NaN where a task has not run."""
    counted = wide.groupby("seed").count()
    return wide.groupby("seed").mean().where(counted == len(TASKS[data]))


def collapsed(found: pd.DataFrame, users: str = "noniid", **which) -> pd.DataFrame:
    """Which runs have collapsed: as `accuracy`, 1 or 0, NaN where one has not run."""
    wide = accuracy(found, users, **which)
    lost = accuracy(found, users, DIVERGED, **which)
    out = pd.DataFrame(index=wide.index.union(lost.index))
    for method in METHODS:
        start = f"source_only{'_norm' * (bottleneck(method) == 'norm')}"
        if method in wide and start in wide:
            fell = (wide[method] < COLLAPSED * wide[start]).astype(float)
            out[method] = fell.where(wide[method].notna() & wide[start].notna())
        if method in lost:
            out.loc[lost.index[lost[method].notna()], method] = 1.0
    return out


def swept(found: pd.DataFrame) -> pd.DataFrame:
    """The sweep: lines (method, lr, weight), columns ``information``, ``target_acc``.

    Means over the tasks, of non-i.i.d. users after the usual rounds, of the seeds that it has; a
    line of which a task has not run is left out. Empty before the sweep.
    """
    mine = select(found, setting="federated", target_users="noniid", per_round=2, rounds="")
    mine = select(mine, protocol="as_described", selection="last", round="")
    mine = select(mine, metric=("information", "target_acc"), method=FAIR)
    mine = mine.assign(**{n: mine[n].fillna(getattr(Settings, n)).astype(float) for n in SWEPT})
    other = (mine[list(SWEPT)] != [getattr(Settings, n) for n in SWEPT]).any(axis=1)
    mine = mine[mine["seed"].isin(mine.loc[other, "seed"])]
    lines = mine.groupby(["method", *SWEPT, "metric"])["value"]
    whole = lines.count() == len(TASKS["office31"]) * mine["seed"].nunique()
    return lines.mean()[whole].unstack("metric")


def chosen(found: pd.DataFrame, by: str) -> dict[str, dict[str, float]]:
    """Each method's rate and weight as far as they are not the usual ones: the best of the sweep.

    by: "information", which takes no label, or "target_acc", as the released sweeps choose.
    """
    lines, out = swept(found), {}
    for method, mine in lines.groupby("method"):
        best = dict(zip(SWEPT, mine[by].idxmax()[1:], strict=True))
        out[method] = {n: v for n, v in best.items() if v != getattr(Settings, n)}
    return out


def longer(found: pd.DataFrame, users: str, by: str = "") -> pd.DataFrame:
    """`accuracy` of the methods that F7 and F8 compare at the length of the released sweeps; empty
    until all of it has run. by: of `chosen`; "": at the usual rate and weight."""
    at = chosen(found, by) if by else {}
    wide = {m: accuracy(found, users, rounds=RELEASED_ROUNDS, **at.get(m, {})) for m in FAIR}
    if not all(m in some and average(some)[m].notna().any() for m, some in wide.items()):
        return pd.DataFrame()
    return pd.DataFrame({m: some[m] for m, some in wide.items()})


def longest(found: pd.DataFrame, users: str) -> pd.DataFrame:
    """`longer`, or `accuracy` after the usual rounds until that has run."""
    wide = longer(found, users)
    return accuracy(found, users) if wide.empty else wide


def dann_fails(found: pd.DataFrame) -> list[Part]:
    """F6: some run of FADE-DANN with non-i.i.d. users collapses.

    One example proves it. Without any, what speaks against it is how improbable that is in so many
    runs of D->A, if one in three collapses as the printed deviation says.
    """
    fell = collapsed(found).get("dann", pd.Series(dtype=float)).dropna()
    if fell.empty:
        return []
    n, some = len(fell), int(fell.sum())
    exact = stats.binomtest(some, n).proportion_ci()
    where = int((fell.index.get_level_values("task") == "D->A").sum())
    against = 1.0 if some else (1 - PRINTED_SHARE) ** where
    evidence = Evidence(100 * some / n, 100 * exact.low, 100 * exact.high, float(not some), against)
    return [
        Part("share of collapsed runs", fell.index.get_level_values("seed").nunique(), evidence)
    ]


def better(method: str, others: Sequence[str], wide: pd.DataFrame) -> list[Part]:
    """``method`` has the higher average accuracy than each of ``others``; wide: of `accuracy`."""
    mean = average(wide)
    return [
        paired(f"{method} over {other}", mean[method].dropna(), mean[other].dropna(), greater)
        for other in others
        if {method, other} <= set(mean) and mean[[method, other]].dropna().size
    ]


def cdan_is_best(found: pd.DataFrame) -> list[Part]:
    """F7: with non-i.i.d. users FADE-CDAN is better than FADE-DANN and FedAvg-SHOT on average."""
    return better("cdan", ("dann", "shot"), longest(found, "noniid"))


def shot_is_best(found: pd.DataFrame) -> list[Part]:
    """F8: with i.i.d. users FedAvg-SHOT is better than the other two on average."""
    return better("shot", ("dann", "cdan"), longest(found, "iid"))


def order_on_visda(found: pd.DataFrame) -> list[Part]:
    """F9: on VisDA-C, CDAN+SHOT > SHOT > DANN > source only; nothing before it has run there."""
    mean = average(accuracy(stored("visda")), "visda")
    order = ("cdan+shot", "shot", "dann", "source_only")
    return [
        paired(f"{high} over {low}", mean[high], mean[low], greater)
        for high, low in pairwise(order)
        if {high, low} <= set(mean)
    ]


def users_keep_classes(found: pd.DataFrame) -> list[Part]:
    """F15 on objects: within non-i.i.d. users CDAN's predictions tell more than DANN's, in nats.

    Where a user has collapsed, its rows look alike and their predictions tell nothing.
    """
    told = average(accuracy(found, metric="information"))
    if not {"cdan", "dann"} <= set(told):
        return []
    return [paired("information within users", told["cdan"], told["dann"], greater)]


_PAGE = "fade/objects"
CLAIMS = (
    Claim("F6", _PAGE, "non-i.i.d. users: some runs of DANN fail", dann_fails),
    Claim("F7", _PAGE, "non-i.i.d. users: CDAN beats DANN and SHOT", cdan_is_best, total=2),
    Claim("F8", _PAGE, "i.i.d. users: SHOT beats DANN and CDAN", shot_is_best, total=2),
    Claim("F9", _PAGE, "VisDA-C: CDAN+SHOT, SHOT, DANN, source", order_on_visda, total=3),
)
BESIDE = (
    Claim("F15, on objects", _PAGE, "classes keep users apart", users_keep_classes),
    Claim(
        "CDAN+SHOT is best",
        _PAGE,
        "non-i.i.d. users: CDAN+SHOT beats all others (section 5.2)",
        lambda found: better("cdan+shot", tuple(METHODS)[:-1], accuracy(found)),
        total=4,
    ),
)


def judged(found: pd.DataFrame, which: Sequence[Claim] = CLAIMS) -> pd.DataFrame:
    """Lines of `evidence.claims.judged`, from rows of `stored`; verdicts say how these ran."""
    some = f"{Settings.rounds} {'of' if longer(found, 'noniid').empty else 'or'}"
    limits = f", frozen backbone, {some} {RELEASED_ROUNDS} rounds, usual rate and weight"
    return claims.judged(which, found, stand_in(found), limits)


def from_stored() -> pd.DataFrame:
    """The claims on the recorded runs."""
    return judged(stored())


def one_collapse(mean: float, sd: float, runs: int = 3, sample: bool = True) -> tuple[float, float]:
    """Where one run, and all the others alike, must lie to make a printed mean and deviation.

    sample: whether the deviation is over ``runs`` - 1; else over the population.

    >>> one_collapse(43.1, 33)  # FADE-DANN's D->A
    (5.0, 62.2)
    >>> one_collapse(43.1, 33, sample=False)  # no accuracy
    (-3.6, 66.4)
    """
    apart = sd * np.sqrt(runs if sample else runs**2 / (runs - 1))
    low = mean - apart * (runs - 1) / runs
    return round(float(low), 1), round(float(low + apart), 1)


def highest_run(mean: float, sd: float) -> float:
    """The least that the best of three runs can be, none below 0, if ``sd`` is a population one.

    >>> highest_run(43.1, 33)  # the best number printed for D->A, by any method, is 74.7
    80.2
    """
    sum_, squares = 3 * mean, 3 * (sd**2 + mean**2)
    high, low = mean + sd / np.sqrt(2), mean - np.sqrt(2) * sd  # two runs alike, one below them
    if low < 0:  # the lowest is 0, and the other two are as they must
        high = (sum_ + np.sqrt(2 * squares - sum_**2)) / 2
    return round(float(high), 1)
