"""What a claim comes to: an outcome for each setting, a verdict for the whole, an answer in words.

Each comparison of a claim is one setting, and is told as claimed, level (within a margin that the
claim names), against it, or left open, by Holm over the comparisons of the claim and variances that
a family shares (`moderated`). The answer is a sentence that somebody wrote; its guard fails when
the comparisons no longer bear it out. `claims.judged` has the rule that was fixed before the runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from . import moderated, verdict
from .claims import Claim, Comparison
from .verdict import ALPHA, Evidence, holm

HOLDS, WHERE_TOLD, IN_PART = "holds", "holds where settled", "holds in part"
FAILS, OPEN = "does not hold", "open"
VERDICTS = HOLDS, WHERE_TOLD, IN_PART, FAILS, OPEN
AS_CLAIMED, LEVEL, AGAINST, UNTOLD = "as claimed", "level", "against", "open"
FIRST = {HOLDS: "**Yes.**", IN_PART: "**In part.**", FAILS: "**No.**", OPEN: "**Open.**"}
ALONE = "alone", "alone_against"  # p-values before Holm's correction


@dataclass(frozen=True)
class Told:
    """A claim with what the runs say of it.

    lines: a line for each comparison, of `settings`. tags: what limits the verdict, e.g. "stand-in
    data (easy-VQA)".
    """

    claim: Claim
    lines: pd.DataFrame = field(repr=False)
    tags: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many comparisons came out as claimed, otherwise (level or against), and open."""
        many = self.lines["outcome"].value_counts()
        claimed, other = many.get(AS_CLAIMED, 0), many.get(LEVEL, 0) + many.get(AGAINST, 0)
        total = max(len(self.lines), self.claim.total)
        return int(claimed), int(other), int(total - claimed - other)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        claimed, other, untold = self.counts
        if self.claim.together:
            return FAILS if other else OPEN if untold else HOLDS
        if not other:
            return OPEN if not claimed else WHERE_TOLD if untold else HOLDS
        return IN_PART if claimed else FAILS

    @property
    def words(self) -> str:
        """The verdict, with how many comparisons bear it out where that is not all."""
        claimed, other, untold = self.counts
        total = claimed + other + untold
        if self.verdict == WHERE_TOLD:
            return f"{WHERE_TOLD} ({claimed} of {total} comparisons, the rest open)"
        where = f" ({claimed} of {total} comparisons)" if self.verdict == IN_PART else ""
        return self.verdict + where

    @property
    def first(self) -> str:
        """How its answer has to begin, e.g. "**Yes in 16 of 20 comparisons.**", the rest open."""
        if self.verdict != WHERE_TOLD:
            return FIRST[self.verdict]
        claimed, _, untold = self.counts
        some = f"es in {claimed} of {claimed + untold} comparisons.**"
        return f"**Mostly open: y{some}" if claimed < untold else f"**Y{some}"

    @property
    def ran(self) -> bool:
        """Whether any comparison has run."""
        return bool((self.lines["runs"] > 0).any())

    def tally(self, claimed: int, other: int = 0, untold: int = 0, ran: int | None = None) -> bool:
        """For guards: these are the `counts`, and so many comparisons have run (all, if none is
        said)."""
        total = claimed + other + untold
        return self.counts == (claimed, other, untold) and (self.lines["runs"] > 0).sum() == (
            total if ran is None else ran
        )

    def between(self, low: float, high: float, at: str | Sequence[str] = "") -> bool:
        """For guards: the estimates of all comparisons that one of ``at`` is the name of, or else
        has a part in, lie between ``low`` and ``high``; each names some, and all those have run."""
        names = [at] if isinstance(at, str) else list(at)
        every = self.lines["name"]
        found = [
            self.lines[mine if (mine := every == n).any() else every.str.contains(n, regex=False)]
            for n in names
        ]
        return all(
            len(some) > 0 and (some["runs"] > 0).all() and some["estimate"].between(low, high).all()
            for some in found
        )

    def stands(self) -> bool:
        """Whether the answer is still borne out: its first word by the verdict, the rest by its
        guard. What a guard cannot read, it does not bear out."""
        try:
            return bool(self.claim.answer.startswith(self.first) and self.claim.guard(self))
        except (KeyError, IndexError, ValueError, TypeError):
            return False


def told(
    claims: Iterable[Claim],
    found: Any,
    stand_in: str | Mapping[str, str] = "",
    short: str | Mapping[str, str] = "",
) -> dict[str, Told]:
    """What the comparisons of each claim come to, by id and, where that is said, ``where``.

    found: what the claims' ``comparisons`` take. stand_in: the data that stand in for the paper's,
    of all claims or by id. short: likewise, how runs are shorter than the paper's. Variances are
    shared within families of all these claims together.
    """
    parts = {
        c: [replace(p, family=p.family or c.family, level=c.level) for p in c.comparisons(found)]
        for c in claims
    }
    every = [part for some in parts.values() for part in some]
    families = [part.family if part.runs > 1 else "" for part in every]
    again = iter(moderated.by_family([part.evidence for part in every], families))
    parts = {c: [replace(p, evidence=next(again)) for p in some] for c, some in parts.items()}
    tags = {"stand-in data": stand_in, "shortened runs": short}
    out = {}
    for claim, some in parts.items():
        mine = tuple(
            f"{tag} ({said})"
            for tag, by_id in tags.items()
            if (said := by_id.get(claim.id, "") if isinstance(by_id, Mapping) else by_id)
        )
        lines = settings(some, claim.total)
        ran = (lines["runs"] > 0).any()
        out[key(claim)] = Told(claim, lines, mine if ran else ())
    return out


def key(claim: Claim) -> str:
    """ "L1"; of a claim that several data sets judge "C5, audio"."""
    return f"{claim.id}, {claim.where}" if claim.where else claim.id


def settings(parts: Sequence[Comparison], total: int = 0) -> pd.DataFrame:
    """A line for each comparison: name, runs, estimate, low, high, printed, by, margin, p and
    p_against (by Holm over ``total`` comparisons at least; `ALONE` without), outcome (one of
    `AS_CLAIMED`, `LEVEL`, `AGAINST`, `UNTOLD`), of (the lines of tables that it compares)."""
    missing = max(0, total - len(parts))
    tests = [part.evidence if part.runs else verdict.NO_EVIDENCE for part in parts]
    levels = [_level(part) for part in parts]
    columns = [[getattr(t, n) for t in tests] for n in ("p", "p_against")]
    columns.append([one.p for one in levels])
    p, against, level = (holm(some + [1.0] * missing)[: len(parts)] for some in columns)
    outcome = np.select(
        [p < ALPHA, against < ALPHA, level < ALPHA], [AS_CLAIMED, AGAINST, LEVEL], UNTOLD
    )
    lines = {
        "name": pd.Series([part.name for part in parts], dtype=str),
        "runs": pd.Series([part.runs for part in parts], dtype=int),
    }
    lines |= {name: [getattr(t, name) for t in tests] for name in ("estimate", "low", "high")}
    lines["printed"] = [part.printed for part in parts]
    lines |= {name: [getattr(t, name) for t in tests] for name in ("by", "margin")}
    lines |= {"p": p, "p_against": against, "alone": columns[0], "alone_against": columns[1]}
    of = pd.Series([part.of for part in parts], dtype=object)
    return pd.DataFrame(lines | {"outcome": outcome, "of": of})


def _level(part: Comparison) -> Evidence:
    """That a difference is within the margin at which the claim calls it level; no evidence where
    it names none, or asks for a margin itself."""
    one = part.evidence
    if not part.runs or np.isnan(part.level) or not np.isnan(one.margin) or not one.df > 0:
        return verdict.NO_EVIDENCE
    return verdict.t_test(one.estimate, one.sd, one.df, one.factor, margin=part.level)
