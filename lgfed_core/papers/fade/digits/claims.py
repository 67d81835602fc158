"""Claims F1, F2, F3 and F14 of FADE, from stored runs on digits (`run`).

A claim is read over both directions: it holds where it holds in each. Seeds pair the comparisons.
While comparisons are missing a claim can be refuted, but not confirmed. Only games of the largest
number of rounds that is stored count; fewer than the paper's suggest a verdict, and give none.
"""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence import claims
from lgfed_core.evidence.claims import Claim, Part, paired
from lgfed_core.evidence.records import select, stand_in
from lgfed_core.evidence.verdict import equivalent, greater
from lgfed_core.papers.in_words import less

from . import run as digits

MARGIN = 1.0  # points of accuracy: the book's margin where the paper prints no deviation
_IDS = ("direction", "loss", "probability", "opt_out", "rounds", "round", "stand_in", "statistics")


def stored(scale: str = "paper", longest: bool = True) -> pd.DataFrame:
    """Recorded rows of the experiment; at paper scale shortened runs, too. Empty before the first.

    longest: only those of the longest games. Those on stand-in data are left out as soon as there
    are others.
    """
    scales = ("short", "paper") if scale == "paper" else scale
    found = select(digits.NAME, columns=_IDS, own=True, scale=scales)
    if not longest:
        return found
    return found[(found["rounds"] == _longest(found)) | (found["loss"] == "pretraining")]


def _longest(found: pd.DataFrame) -> float:
    games = select(found, loss=digits.POWERS)
    return (games if len(games) else found[found["loss"] != "pretraining"])["rounds"].max()


def wide(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One measure at the end: lines (direction, seed), columns (loss, probability)."""
    mine = select(found, table=digits.TABLE, metric=metric, loss=digits.POWERS)
    return mine.pivot_table("value", ["direction", "seed"], ["loss", "probability"])


def ends_are_worse(found: pd.DataFrame) -> list[Part]:
    """F1: with the vanilla loss the target's accuracy is lower at the rarest and at the most
    frequent target than at one half."""
    return [
        paired(f"{direction}, {end:g}", mine["vanilla", 0.5], mine["vanilla", end], greater)
        for direction, mine, ends in _whole(found)
        for end in ends
    ]


def squared_is_better(found: pd.DataFrame) -> list[Part]:
    """F2: at both severe ends the squared loss has the higher target accuracy."""
    return [
        paired(f"{direction}, {end:g}", mine["squared", end], mine["vanilla", end], greater)
        for direction, mine, ends in _whole(found)
        for end in ends
    ]


def smaller_losses(found: pd.DataFrame) -> list[Part]:
    """F3: where the target is rarest, the squared loss has the lower adversarial loss of target
    rows at the end, and the lower task loss of target rows on the way (mean over rounds)."""
    parts, adversarial = [], wide(found, "target_adversarial")
    for direction, _, (rarest, _) in _whole(found):
        rare = adversarial.loc[[direction]]
        way = _mean_on_the_way(found, direction, rarest)
        both = rare["vanilla", rarest], rare["squared", rarest]
        parts.append(paired(f"{direction}, adversarial loss", *both, greater))
        parts.append(paired(f"{direction}, task loss", way["vanilla"], way["squared"], greater))
    return parts


def opting_out_leaves_the_source(found: pd.DataFrame) -> list[Part]:
    """F14: whatever the rate of opting out, the source's accuracy is within `MARGIN` of that
    without. The paper says that users may opt out and still take part in the regular federated
    learning; that it does their task no harm is our reading."""
    return [
        paired(f"{direction}, {rate:g}", mine[rate], mine[0.0], equivalent, margin=MARGIN)
        for direction, mine in opting_out(found, "source_acc").groupby("direction")
        if 0.0 in mine.dropna(axis=1, how="all")
        for rate in mine.dropna(axis=1, how="all")
        if rate > 0
    ]


_RATES = 2 * len(digits.Settings.opt_outs)
CLAIMS = (
    Claim("F1", "fade/digits", "vanilla: worse at both ends", ends_are_worse, total=4),
    Claim("F2", "fade/digits", "squared: better at both ends", squared_is_better, total=4),
    Claim("F3", "fade/digits", "squared: lower losses at the rare end", smaller_losses, total=4),
    Claim(
        "F14",
        "fade/digits",
        "opting out leaves the source's accuracy",
        opting_out_leaves_the_source,
        total=_RATES,
    ),
)


def judged(found: pd.DataFrame) -> pd.DataFrame:
    """Lines of `evidence.claims.judged`, for as many claims as ``found``, of `stored`, has rows.

    Verdicts say so where comparisons are missing, and where data stand in; that on F14 says what
    the target loses. Games of fewer rounds than the paper's suggest and do not judge.
    """
    rounds, full = _longest(found), digits.Settings.rounds
    lines = claims.judged(CLAIMS, found, stand_in(found), {"F14": _of_the_target(found)})
    if not rounds < full:
        return lines
    return claims.only_suggested(lines, f"{rounds:,.0f} of {full:,} rounds")


def from_stored() -> pd.DataFrame:
    """The claims on the recorded runs."""
    return judged(stored())


def _of_the_target(found: pd.DataFrame) -> str:
    """What the largest rate of opting out does to the target's accuracy, which F14 does not judge;
    "" where it has not run."""
    # False if the target's accuracy moved otherwise.
    said = [
        f"{direction} at {most:g} {claims.said(*less(mine[most], mine[0.0]))}"
        for direction, mine in opting_out(found, "target_acc").groupby("direction")
        for most in [mine.dropna(axis=1, how="all").columns.max()]
        if most > 0 and 0.0 in mine
    ]
    return f"; the target's accuracy: {', '.join(said)}" if said else ""


def _whole(found: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, tuple[float, float]]]:
    """(direction, target accuracy by seed and (loss, probability), rarest and most frequent)."""
    for direction, mine in wide(found, "target_acc").groupby("direction"):
        p = sorted({p for _, p in mine})
        if {"vanilla", "squared"} <= {loss for loss, _ in mine} and 0.5 in p and len(p) > 2:
            yield direction, mine, (p[0], p[-1])


def _mean_on_the_way(found: pd.DataFrame, direction: str, p: float) -> pd.DataFrame:
    """Task loss of target rows, mean over measured rounds: a line per seed, a column per loss."""
    mine = select(found, table=digits.CURVES, metric="target_loss")
    mine = select(mine, direction=direction, probability=p)
    return mine.pivot_table("value", "seed", "loss")


def opting_out(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One measure by rate of opting out, at probability one half: lines (direction, seed)."""
    mine = select(found, table=digits.OPT_OUT, metric=metric)
    table = mine.pivot_table("value", ["direction", "seed"], "opt_out")
    nobody = wide(found, metric)
    if ("vanilla", 0.5) in nobody:
        table[0.0] = nobody["vanilla", 0.5]
    return table.sort_index(axis=1)
