"""Claims F1, F2, F3 and F14 of FADE, from stored runs on digits (`fade_digits`).

A claim is read over both directions: it holds where it holds in each. Seeds pair the comparisons.
While comparisons are missing a claim can be refuted, but not confirmed. Only runs of the largest
number of rounds that is stored count; a verdict says which that is where it is not the full one.
"""

import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import records as results, stand_ins
from lgfed_core.evidence.verdict import (
    NO_EVIDENCE,
    REFUTED,
    Evidence,
    equivalent,
    every,
    greater,
    judge,
)

from . import run as digits

PARTS = {"F1": 4, "F2": 4, "F3": 4, "F14": 2 * len(digits.Settings.opt_outs)}  # comparisons
MARGIN = 1.0  # points of accuracy: the book's margin where the paper prints no deviation
_IDS = (
    "table",
    "direction",
    "loss",
    "probability",
    "opt_out",
    "statistics",
    "rounds",
    "round",
    "stand_in",
    "metric",
    "seed",
    "value",
    "scale",
)


def stored(scale: str = "paper") -> pd.DataFrame:
    """Recorded rows of the experiment, of the longest runs; empty before the first.

    Those on stand-in data are left out as soon as there are others.
    """
    try:
        found = results.load(digits.NAME)
    except ResultsError:
        return pd.DataFrame(columns=_IDS)
    found = found.reindex(columns=list(dict.fromkeys([*found, *_IDS])))
    found = found[found["scale"] == scale]
    for name in ("probability", "opt_out", "rounds", "round"):
        found[name] = pd.to_numeric(found[name])
    found = stand_ins.papers_own(found)
    long = found.loc[found["loss"] != "pretraining", "rounds"].max()
    return found[(found["rounds"] == long) | (found["loss"] == "pretraining")]


def wide(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One measure at the end: lines (direction, seed), columns (loss, probability)."""
    mine = found[(found["table"] == digits.TABLE) & (found["metric"] == metric)]
    mine = mine[mine["loss"].isin(digits.POWERS)]
    return mine.pivot_table("value", ["direction", "seed"], ["loss", "probability"])


def claims(found: pd.DataFrame) -> dict[str, list[Evidence]]:
    """The comparisons of F1, F2, F3 and F14 that have run, of `PARTS`, as tests over seeds.

    F1: with the vanilla loss the target's accuracy is lower at the rarest and at the most frequent
        target than at one half.
    F2: at both severe ends the squared loss has the higher target accuracy.
    F3: where the target is rarest, the squared loss has the lower adversarial loss of target rows
        at the end, and the lower task loss of target rows on the way (mean over measured rounds).
    F14: whatever the rate of opting out, the source's accuracy is within `MARGIN` of that without.
    """
    tests: dict[str, list[Evidence]] = {"F1": [], "F2": [], "F3": [], "F14": []}
    accuracy, adversarial = (wide(found, f"target_{m}") for m in ("acc", "adversarial"))
    for direction, mine in accuracy.groupby("direction"):
        p = sorted({p for _, p in mine})
        if {"vanilla", "squared"} <= {loss for loss, _ in mine} and 0.5 in p and len(p) > 2:
            ends = (p[0], p[-1])
            tests["F1"] += [greater(mine["vanilla", 0.5], mine["vanilla", end]) for end in ends]
            tests["F2"] += [greater(mine["squared", end], mine["vanilla", end]) for end in ends]
            rare = adversarial.loc[[direction]]
            tests["F3"].append(greater(rare["vanilla", p[0]], rare["squared", p[0]]))
            way = _mean_on_the_way(found, direction, p[0])
            tests["F3"].append(greater(way["vanilla"], way["squared"]))
        tests["F14"] += _opting_out(found, direction)
    return {name: some for name, some in tests.items() if some}


def verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """Verdicts by claim, the estimates those of the weakest comparison; empty where nothing has
    run. They say so where comparisons or rounds are missing, and where data stand in."""
    tests = claims(found)
    if not tests:
        return pd.DataFrame(columns=["estimate", "low", "high", "verdict"])
    judged = judge({claim: every(some) for claim, some in tests.items()})
    whole = judge(
        {
            claim: every([*some, *[NO_EVIDENCE] * (PARTS[claim] - len(some))])
            for claim, some in tests.items()
        }
    )["verdict"]
    name, rounds = stand_ins.names(found), found.loc[found["loss"] != "pretraining", "rounds"].max()
    for claim, some in tests.items():
        said = whole[claim]
        if len(some) < PARTS[claim] and said != REFUTED:
            so_far = judged.loc[claim, "verdict"]
            said = f"{so_far} so far, {len(some)} of {PARTS[claim]} comparisons"
        if rounds < digits.Settings.rounds:
            said += f", after {rounds:,.0f} of {digits.Settings.rounds:,} rounds"
        judged.loc[claim, "verdict"] = stand_ins.said(said, name)
    return judged


def _mean_on_the_way(found: pd.DataFrame, direction: str, p: float) -> pd.DataFrame:
    """Task loss of target rows, mean over measured rounds: a line per seed, a column per loss."""
    mine = found[(found["table"] == digits.CURVES) & (found["metric"] == "target_loss")]
    mine = mine[(mine["direction"] == direction) & (mine["probability"] == p)]
    return mine.pivot_table("value", "seed", "loss")


def opting_out(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One measure by rate of opting out, at probability one half: lines (direction, seed)."""
    mine = found[(found["table"] == digits.OPT_OUT) & (found["metric"] == metric)]
    table = mine.pivot_table("value", ["direction", "seed"], "opt_out")
    nobody = wide(found, metric)
    if ("vanilla", 0.5) in nobody:
        table[0.0] = nobody["vanilla", 0.5]
    return table.sort_index(axis=1)


def _opting_out(found: pd.DataFrame, direction: str) -> list[Evidence]:
    table = opting_out(found, "source_acc")
    mine = table[table.index.get_level_values("direction") == direction].dropna(axis=1, how="all")
    if 0.0 not in mine:
        return []
    return [equivalent(mine[rate], mine[0.0], MARGIN) for rate in mine if rate > 0]
