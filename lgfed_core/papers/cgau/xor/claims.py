"""Claim C8: what the two parts of one gated unit do for its two clients, over many starts.

found: shares of right points, of one kind of network or by kind, as the page makes them. A line is
a start; columns are (which points, what is off): all | up | down by nothing | modulation |
expression | both.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from lgfed_core.evidence.claims import Claim, Comparison, agreed, tested, weakest
from lgfed_core.evidence.verdict import NO_EVIDENCE, Evidence, every
from lgfed_core.models.gated_unit import SWITCHES
from lgfed_core.papers.live_claims import live

SOLVED = 0.99  # of the points
INTACT = (0.75, 0.85, 0.95)  # of a client's points: right still, from half way to guessing on


def solves(found: pd.DataFrame) -> pd.Series:
    """Which starts are right on `SOLVED` of all points, with both parts."""
    return found["all", "nothing"] >= SOLVED


def roles(found: pd.DataFrame, intact: float) -> pd.Series:
    """For each seed what the two parts do, in words.

    "one each": without modulation exactly one client is still right (from ``intact`` on), without
    expression exactly the other. "not solved": those that do not (`solves`). The paper gives no
    ``intact``, and the words depend on it: see `ways`.
    """

    def role(row: pd.Series) -> str:
        lost = {s: {k for k in ("up", "down") if row[k, s] < intact} for s in SWITCHES}
        if not (lost["modulation"] or lost["expression"]):
            return "needs neither"
        if not (lost["modulation"] and lost["expression"]):
            return f"{'modulation' if lost['modulation'] else 'expression'} alone"
        one_each = all(len(v) == 1 for v in lost.values())
        apart = lost["modulation"] != lost["expression"]
        return "one each" if one_each and apart else "mixed"

    return found.apply(role, axis=1).where(solves(found), "not solved")


def ways(found: pd.DataFrame) -> pd.DataFrame:
    """`roles` at each threshold of `INTACT`: a line per seed, a column per threshold."""
    return pd.DataFrame({intact: roles(found, intact) for intact in INTACT})


def halves(found: dict[str, pd.DataFrame]) -> dict[str, Comparison]:
    """The two halves of C8, each over the starts that it is about: all, and those that solve it.

    Tests and intervals are exact, of a share less one half (`more_than_half`). What counts
    as right without a part is ours to say, so the second is asked at each threshold of
    `INTACT`, and must hold at all of them, or fail at all: its p-values are the largest. Its
    estimate is that of the threshold with the weakest evidence, its interval spans all three.
    """
    words, solved = ways(found["cgau"]), solves(found["cgau"])
    first, second = "one unit solves it", "one part for each client"
    each = words[solved] == "one each"
    parts = [tested(second, each[at].to_numpy(), more_than_half) for at in INTACT]
    return {first: tested(first, solved.to_numpy(), more_than_half), second: agreed(parts)}


def claim(found: dict[str, pd.DataFrame]) -> Comparison:
    """C8, that both `halves` hold, named after the weaker one, and of as many starts."""
    parts = list(halves(found).values())
    weaker = weakest(parts)
    return Comparison(weaker.name, weaker.runs, every([part.evidence for part in parts]))


def more_than_half(hits: ArrayLike) -> Evidence:
    """That more than half of all starts hit, of those drawn: bool or 0 and 1 [n].

    The estimate is the share less one half, in [-0.5, 0.5], with its 95 % interval of Clopper and
    Pearson (Student's t would pass the ends that a share has, and shrink to a point where all
    agree); the p-values are those of binomial tests, one for each side. No start decides nothing.
    """
    n, some = np.size(hits), int(np.sum(hits))
    if not n:
        return NO_EVIDENCE
    above, below = (
        stats.binomtest(some, n, 0.5, alternative=side).pvalue for side in ("greater", "less")
    )
    ends = stats.binomtest(some, n).proportion_ci(method="exact")
    share = (some / n, float(ends.low), float(ends.high))
    return Evidence(*(x - 0.5 for x in share), float(above), float(below))


CLAIMS = (
    Claim(
        "C8",
        "cgau/xor",
        "one unit solves it, each part for one client (the weaker share of starts, less one half)",
        lambda found: [claim(found)],
        live=True,
        question="Does training give one gated unit that solves XOR, with modulation for one "
        "client and expression for the other?",
        answer="**Open.** Weights set by hand do it. Training solves XOR from 188 of 200 starts; 3 "
        "to 68 % of these do it that way, depending on a threshold that the paper does not give. "
        "A unit without any client also learns XOR, from about half of 200 starts.",
        guard=lambda told: (
            told.tally(0, 0, 1)
            and told.between(-0.475, -0.465)  # 3 % at the threshold that has least
            and 0.675 < _most(told.lines.iloc[0]) < 0.685
            and told.lines["runs"].eq(188).all()
        ),
        unit="share of starts minus one half",
    ),
)


def _most(line: pd.Series) -> float:
    """The share at the threshold that has most: its upper end is the stored interval's."""
    n = int(line["runs"])
    ends = [stats.binomtest(hits, n).proportion_ci(method="exact").high for hits in range(n + 1)]
    return int(np.argmin(np.abs(np.array(ends) - line["high"] - 0.5))) / n


PAGE = live(CLAIMS)
from_stored, told = PAGE.from_stored, PAGE.told
