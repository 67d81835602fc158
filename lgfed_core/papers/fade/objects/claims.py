"""Claims F6 to F9 of FADE, from stored runs on objects (`stored`).

Seeds pair the comparisons; an average is over the tasks, so that a seed gives one number. F7 and F8
compare methods, and so depend on how each one's rate and weight are chosen (`stored`): a verdict
stands where all ways to choose that have run agree, at the length of the released sweeps, and says
what the released code's settings make of the claim.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from lgfed_core.evidence import records
from lgfed_core.evidence.claims import Claim, Comparison, agreed, paired
from lgfed_core.evidence.printed import METHODS as WORDS
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import Evidence, greater
from lgfed_core.papers.guards import gap
from lgfed_core.papers.live_claims import Judged

from . import stored
from .domains import LEARNING, PER_ROUND, Settings
from .stored import FAIR, accuracy, average, longer, paper_means

NEAREST = ("A->D", "A->W")  # a shop's images to photographs, as VisDA-C's drawings to photographs
PRINTED_SHARE = 1 / 3  # of collapsed runs that make the printed D->A, 43.1 with a deviation of 33


def dann_fails(found: pd.DataFrame) -> list[Comparison]:
    """F6: some run of FADE-DANN with non-i.i.d. users collapses, of however many users a round.

    One example proves it. Without any, what speaks against it is how improbable that is in so many
    runs of D->A with two users a round, if one in three collapses as the printed deviation says.
    """
    runs = _usual(found)
    if runs.empty:
        return []
    n, some = len(runs), int(runs["fallen"].sum())
    exact = stats.binomtest(some, n).proportion_ci()
    many = len(select(runs, task="D->A", per_round=Settings.per_round))
    against = 1.0 if some else (1 - PRINTED_SHARE) ** many
    evidence = Evidence(100 * some / n, 100 * exact.low, 100 * exact.high, float(not some), against)
    return [Comparison("some run of DANN collapses", runs["seed"].nunique(), evidence)]


def _usual(found: pd.DataFrame) -> pd.DataFrame:
    """The runs that F6 is about."""
    where = dict(rounds=0, lr=0, weight=0, users="noniid", method="dann")
    return select(stored.ended(found), protocol="as_described", **where)


def better(method: str, others: Sequence[str], wide: pd.DataFrame) -> list[Comparison]:
    """``method`` has the higher average than each of ``others``; wide: of `stored.accuracy`."""
    mean = average(wide)
    return [
        paired(f"{WORDS[method]} ahead of {WORDS[other]}", mean[method], mean[other], greater)
        for other in others
        if {method, other} <= set(mean) and mean[[method, other]].dropna().size
    ]


def best(method: str, users: str) -> Callable[[pd.DataFrame], list[Comparison]]:
    """F7, F8: ``method`` is better than the others of `FAIR` on average, whichever way rate and
    weight are chosen; after the usual rounds at the usual ones until the longer runs are there."""

    def comparisons(found: pd.DataFrame) -> list[Comparison]:
        paper, each = paper_means()[users], _by_way(found, method, users)
        return [
            replace(agreed(some), printed=paper[method] - paper[other])
            for other, some in zip(_others(method), each, strict=False)
        ]

    return comparisons


def _others(method: str) -> tuple[str, ...]:
    return tuple(m for m in FAIR if m != method)


def _by_way(found: pd.DataFrame, method: str, users: str) -> list[tuple[Comparison, ...]]:
    """`better` than each other of `FAIR`: a part for each way to choose rate and weight."""
    ways = longer(found, users) or {"": accuracy(found, users)}
    each = (better(method, _others(method), wide) for wide in ways.values())
    return list(zip(*each, strict=True))


def _released(found: pd.DataFrame, method: str, users: str) -> list[Comparison]:
    """`better` than the others of `FAIR` as released, at the usual rate and weight."""
    mine = accuracy(found, users.replace("noniid", "noniid15"), protocol="as_released")
    return better(method, _others(method), mine) if method in mine else []


def order(found: pd.DataFrame) -> list[Comparison]:
    """F9: CDAN+SHOT > SHOT > DANN > source only, non-i.i.d. users of VisDA-C, one a round as in
    section 5.2. Until that has run, on `NEAREST`, with the usual users a round."""
    (many,) = PER_ROUND["visda"]
    wide = accuracy(stored.rows("visda"), per_round=many)
    if wide.empty:
        usual = accuracy(found)
        wide = usual[usual.index.get_level_values("task").isin(NEAREST)]
    by_seed = wide.groupby("seed")
    mean = by_seed.mean().where(by_seed.count() == wide.index.get_level_values("task").nunique())
    methods = ("cdan+shot", "shot", "dann", "source_only")
    return [
        paired(f"{WORDS[high]} ahead of {WORDS[low]}", mean[high], mean[low], greater)
        for high, low in pairwise(methods)
        if {high, low} <= set(mean)
    ]


def stand_in(found: pd.DataFrame) -> dict[str, str]:
    """What stands in for the paper's data, by claim."""
    usual = records.stand_in(found)
    nearest = ", ".join(filter(None, ("Office-31 from A for VisDA-C", usual)))
    return dict.fromkeys(("F6", "F7", "F8"), usual) | {
        "F9": nearest if stored.rows("visda").empty else records.stand_in(stored.rows("visda"))
    }


_PAGE = "fade/objects"
_POINTS = "points of accuracy, above 0: the first is ahead"
CLAIMS = (
    Claim(
        "F6",
        _PAGE,
        "non-i.i.d. users: some runs of DANN fail",
        dann_fails,
        question="Do some runs of FADE-DANN fail when users have only some of the classes?",
        answer="**No.** None of 43 runs at the text's settings collapsed. From D to A the paper's "
        "deviation suggests one collapse in three; none in our ten there has a chance of 2 %. Our "
        "backbone is frozen, the paper's trained; one run with learning upper blocks did not "
        "collapse either.",
        guard=lambda told: (
            told.tally(0, 1)
            and told.between(0, 0)
            and bool(told.lines["p_against"].lt(0.02).all())
            and len(_usual(stored.rows())) == 43
            and _learnt("dann") == [False]
        ),
        unit="percent of runs that collapse",
    ),
    Claim(
        "F7",
        _PAGE,
        "non-i.i.d. users: CDAN beats DANN and SHOT",
        best("cdan", "noniid"),
        total=2,
        question="Is FADE-CDAN better than DANN and SHOT when users have only some of the classes?",
        answer="**Yes in 1 of 2 comparisons.** After 300 rounds it is under a point ahead of a "
        "well-tuned DANN. Against SHOT it is 1 point behind to 2 ahead, depending on how rate and "
        "weight are chosen. After 100 rounds it is 2 behind SHOT, and level with DANN.",
        guard=lambda told: (
            told.tally(1, 0, 1)
            and told.between(0.5, 1, at="ahead of DANN")
            and told.between(-0.6, -0.4, at="ahead of SHOT")
            and _ways("cdan", "shot") == [-1, -1, 2]
            and _ways("cdan", "dann") == [0, 1, 3]
            and _shorter("cdan", "dann") == (0, False)
            and _shorter("cdan", "shot") == (-2, True)
        ),
        unit=_POINTS,
    ),
    Claim(
        "F8",
        _PAGE,
        "i.i.d. users: SHOT beats DANN and CDAN",
        best("shot", "iid"),
        total=2,
        question="Is SHOT the best when users have all classes?",
        answer="**Yes.** With the text's settings it is at least 2.5 points ahead of CDAN and 3.5 "
        "of DANN, two adversarial methods; with the released ones 16 behind both, most of it on "
        "two of six tasks. A released rule for rare classes may be the cause: we have not run "
        "without it. With 15 classes the released settings do no harm.",
        guard=lambda told: (
            told.tally(2)
            and told.between(4.5, 5, at="ahead of DANN")
            and told.between(2.5, 3, at="ahead of CDAN")
            and _least("shot", "iid") == {"dann": 3.5, "cdan": 2.5}
            and all(
                -16.5 < part.evidence.estimate < -15 and part.evidence.high < 0
                for part in _released(stored.rows(), "shot", "iid")
            )
            and 0.75 < _lost_on_two() < 0.95
            and all(
                -1 < part.evidence.estimate < 0  # as the errata have it
                for part in _released(stored.rows(), "shot", "noniid")
            )
        ),
        unit=_POINTS,
    ),
    Claim(
        "F9",
        _PAGE,
        "VisDA-C: CDAN+SHOT, SHOT, DANN, source",
        order,
        total=3,
        question="On VisDA-C, is CDAN+SHOT ahead of SHOT, SHOT of DANN, and DANN of no adaptation?",
        answer="**Yes in 2 of 3 comparisons.** On two tasks of Office-31, from product images "
        "to photographs, SHOT is 3.5 points ahead of DANN, and DANN 1.3 ahead of no adaptation. "
        "Adding CDAN to SHOT, as the paper does, gains nothing: less than half a point either "
        "way. We could not get VisDA-C's data.",
        guard=lambda told: (
            told.tally(2, 0, 1)
            and stored.rows("visda").empty  # then it is about `NEAREST`, two tasks
            and told.between(3.2, 3.8, at="SHOT ahead of DANN")
            and told.between(1.2, 1.4, at="DANN ahead of source only")
            and bool(-0.5 < told.lines["low"].iloc[0] < told.lines["high"].iloc[0] < 0.5)
        ),
        unit=_POINTS,
    ),
)


def _learnt(method: str) -> list[bool]:
    """Of each run of ``method`` in which upper blocks learn, whether it collapsed."""
    found = stored.ended(stored.rows(backbones=(LEARNING,)))
    return select(found, method=method)["fallen"].tolist()


def _ways(method: str, other: str) -> list[int]:
    """How far ``method`` is ahead with non-i.i.d. users, by each way to choose rate and weight, in
    whole points, the least first."""
    means = [average(wide).mean() for wide in longer(stored.rows(), "noniid").values()]
    return sorted(round(mean[method] - mean[other]) for mean in means)


def _shorter(method: str, other: str) -> tuple[int, bool]:
    """How far ``method`` is ahead with non-i.i.d. users after the usual 100 rounds, in whole
    points, and whether that is told from none."""
    one = gap(stored.mean("noniid", method), stored.mean("noniid", other))
    return round(one.estimate), one.low > 0 or one.high < 0


def _lost_on_two() -> float:
    """Of what SHOT as released is behind DANN with i.i.d. users, the share of the tasks from A."""
    wide = stored.accuracy(stored.rows(), "iid", protocol="as_released")
    behind = (wide["dann"] - wide["shot"]).groupby("task").mean()
    return float(behind[["A->D", "A->W"]].sum() / behind.sum())


def _least(method: str, users: str) -> dict[str, float]:
    """How far ``method`` is ahead of each other at least, however rate and weight are chosen, in
    half points, rounded down."""
    each = _by_way(stored.rows(), method, users)
    least = [min(part.evidence.estimate for part in some) for some in each]
    return dict(zip(_others(method), np.floor(2 * np.array(least)) / 2, strict=True))


PAGE = Judged(CLAIMS, stored.rows, stand_in)
judged, from_stored, told = PAGE.judged, PAGE.from_stored, PAGE.told
