"""A claim of a paper, the comparisons that it needs, and what those that have run say of it.

A claim holds where all its comparisons hold. While some are missing, or have one run, it can be
refuted but not confirmed; what has run is then judged apart ("so far"). Holm's correction is over
the claims that are judged together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from . import verdict
from .rows import refuse_repeated
from .verdict import NO_EVIDENCE, Evidence

SURE = 2  # the runs that an exact comparison, without chance in it, stands for at least


@dataclass(frozen=True)
class Line:
    """One line of a table, by the experiment that fills it and its ids, as text."""

    experiment: str
    ids: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Comparison:
    """One comparison that a claim needs: its name, the runs that were paired, what they say.

    of: the lines of tables that it compares, where they are known. printed: the same difference of
    the paper's numbers. family: the comparisons that it shares a variance with (`moderated`), as of
    its claim unless it is said. level: how small a difference is none, as of its claim.
    """

    name: str
    runs: int
    evidence: Evidence
    of: tuple[Line, ...] = ()
    printed: float = np.nan
    family: str = ""
    level: float = np.nan


@dataclass(frozen=True)
class Claim:
    """A claim of data/paper/claims.csv.

    page: of the book, that judges it. words: what it says, for that page. comparisons: from the
    page's evidence to what the claim needs, with ``runs`` 0 for those that have not run; none at
    all where it cannot be judged yet. total: how many it needs, where that is more than are named.
    where: the data it is judged on, for a claim that several pages judge. live: whether its
    evidence is made where it is shown.

    question: what a reader would ask. answer: what the runs say, by a person, beginning as
    `answers.Told.first` has it. guard: whether the runs, an `answers.Told`, still bear the answer
    out. unit: of what is compared, with its direction. family: of all its comparisons without one
    of their own; level: of all. together: whether these are conditions of one sentence, which fails
    with any of them, as "hides an attribute at a small cost" does.
    """

    id: str
    page: str
    words: str
    comparisons: Callable[[Any], Sequence[Comparison]]
    total: int = 0
    where: str = ""
    live: bool = False
    question: str = ""
    answer: str = ""
    guard: Callable[[Any], bool] = lambda told: False
    unit: str = ""
    family: str = ""
    level: float = np.nan
    together: bool = False


def paired(
    name: str,
    a: pd.Series,
    b: pd.Series,
    test: Callable[..., Evidence],
    printed: float = np.nan,
    family: str = "",
    **how,
) -> Comparison:
    """Compare a with b, values by seed, over the seeds that both have.

    printed, family: as of `Comparison`; how: of the test. A series whose name is a `Line`
    says what is compared. Raises ResultsError for a seed that one of them has twice: which of its
    values to pair is not known.
    """
    for series in (a, b):
        refuse_repeated(series, name)
    of = tuple(series.name for series in (a, b) if isinstance(series.name, Line))
    a, b = a.dropna().align(b.dropna(), join="inner")
    return Comparison(name, len(a), test(a.to_numpy(), b.to_numpy(), **how), of, printed, family)


def tested(
    name: str, values: Sequence | np.ndarray, test: Callable[..., Evidence], *how, **more
) -> Comparison:
    """Test one value per run [n] (or one line per run, [n, k])."""
    whole = sum(not np.isnan(one).any() for one in np.asarray(values, float))  # as the test takes
    return Comparison(name, whole, test(values, *how, **more))


def exact(name: str, value: float, holds: bool) -> Comparison:
    """A comparison without chance in it: p-values are 0 or 1."""
    return Comparison(name, SURE, verdict.exact(value, holds))


def agreed(parts: Sequence[Comparison]) -> Comparison:
    """One comparison by several analyses, of which none is picked: for and against it the weakest
    decides. It has the first one's name, the estimate of the `weakest`, an interval that spans all,
    and the fewest runs."""
    tests = [part.evidence for part in parts]
    low, high = float(np.min([t.low for t in tests])), float(np.max([t.high for t in tests]))
    p, against = max(t.p for t in tests), max(t.p_against for t in tests)
    joined = Evidence(weakest(parts).evidence.estimate, low, high, p, against)
    of = tuple({line: 0 for part in parts for line in part.of})
    return Comparison(parts[0].name, min(part.runs for part in parts), joined, of)


def decided(evidence: Evidence) -> list[Comparison]:
    """A claim whose comparisons have been joined already, and all been made."""
    return [Comparison("", SURE, evidence)]


def judged(
    claims: Iterable[Claim], found: Any, stand_in: str | Mapping[str, str] = ""
) -> pd.DataFrame:
    """A line for every claim that names comparisons, by id.

    found: what the claims' ``comparisons`` take. stand_in: the data that stand in for the paper's,
    of all claims or by claim.

    Columns: words; estimate, low, high of the weakest comparison that has run, its name ``at`` and
    its runs ``at_runs``; p, p_against and verdict by Holm over these claims; how many have ``ran``
    of how many ``parts``, on how many ``runs`` at least; so_far, the verdict on those that have
    run; said, the sentence; of, the lines of tables that all its parts compare.
    """
    parts = {claim: claim.comparisons(found) for claim in claims}
    parts = {claim: some for claim, some in parts.items() if some}
    ran = {claim: [part for part in some if part.runs] for claim, some in parts.items()}
    totals = {claim: max(claim.total, len(some)) for claim, some in parts.items()}
    lines = verdict.judge({c.id: joint(some, totals[c]) for c, some in ran.items()})
    lines["so_far"] = verdict.judge({c.id: joint(some) for c, some in ran.items()})["verdict"]
    shown = [weakest(some) if some else Comparison("", 0, NO_EVIDENCE) for some in ran.values()]
    lines["at"], lines["at_runs"] = [part.name for part in shown], [part.runs for part in shown]
    lines["ran"] = [len(some) for some in ran.values()]
    lines["parts"] = list(totals.values())
    lines["runs"] = [_fewest(some) for some in ran.values()]
    lines["words"] = [claim.words for claim in parts]
    lines["of"] = [tuple({of: 0 for part in some for of in part.of}) for some in parts.values()]
    lines.loc[lines["ran"] == 0, ["verdict", "so_far"]] = verdict.NOT_RUN
    names = stand_in if isinstance(stand_in, Mapping) else dict.fromkeys(lines.index, stand_in)
    other = {id: f"{verdict.STAND_IN} ({name}): " for id, name in names.items() if name}
    said = [other.get(line.Index, "") + sentence(line) for line in lines.itertuples()]
    return lines.assign(said=pd.Series(said, lines.index, str))  # texts, where there is none too


def _fewest(ran: Sequence[Comparison]) -> int:
    """The runs of the comparison that has the fewest; one without chance in it needs no more."""
    chance = [part.runs for part in ran if not verdict.without_chance(part.evidence)]
    return min(chance or [part.runs for part in ran], default=0)


def joint(ran: Sequence[Comparison], total: int = 0) -> Evidence:
    """That all of ``total`` comparisons hold, with the estimate of the weakest that has run."""
    if not ran:
        return NO_EVIDENCE
    missing = [NO_EVIDENCE] * (total - len(ran))
    whole = verdict.every([*(part.evidence for part in ran), *missing])
    return replace(weakest(ran).evidence, p=whole.p, p_against=whole.p_against)


def weakest(ran: Sequence[Comparison]) -> Comparison:
    """The part with the weakest evidence for the claim; of equals the one that estimates less.

    One run is no evidence either way: it comes behind what speaks against the claim.
    """

    def weak(part: Comparison) -> tuple[float, float]:
        return part.evidence.p if part.runs > 1 else 0.5, -part.evidence.estimate

    return max(ran, key=weak)


def only_suggested(lines: pd.DataFrame, why: str) -> pd.DataFrame:
    """Lines of `judged` by shortened runs, which judge nothing; ``why`` says by how much."""
    ran = lines["ran"] > 0
    said = lines["said"].where(~ran, f"{verdict.SUGGESTED} by {why}: " + lines["said"])
    return lines.assign(said=said, verdict=lines["verdict"].where(~ran, verdict.SUGGESTED))


def named(lines: pd.DataFrame) -> pd.DataFrame:
    """Estimate, low, high, p, p_against of lines of `judged`, with their sentence as verdict and an
    index for people: "L14: what it says"."""
    words = [f"{id}: {text}" if text else id for id, text in lines["words"].items()]
    numbers = lines[["estimate", "low", "high", "p", "p_against"]]
    return numbers.assign(verdict=lines["said"]).set_axis(words)


def sentence(line) -> str:
    """The verdict of a line of `judged` in words; where something is missing, what."""
    settled = line.verdict == verdict.REFUTED or (line.ran == line.parts and line.runs > 1)
    if settled or not line.ran:
        return line.verdict
    one = ", one seed" * (line.runs == 1)
    return f"{line.so_far} so far, {line.ran} of {line.parts} comparisons{one}"


def said(found, runs: int | None = None) -> str:
    """ "+1.23 [+0.45, +2.01] (3)": an estimate with its 95 % interval, and of how many runs.

    found: anything with ``estimate``, ``low`` and ``high``. Without an interval (one run) there is
    none; of no run it is "not yet run".
    """
    if runs == 0:
        return verdict.NOT_RUN
    ends = (round(value, 2) + 0.0 for value in (found.estimate, found.low, found.high))
    estimate, low, high = (f"{value:+.2f}" for value in ends)  # no minus before 0.00
    interval = "" if np.isnan(found.low) else f" [{low}, {high}]"
    return f"{estimate}{interval}" + (f" ({runs})" if runs else "")
