"""What stored rows say of a page's claims (`Judged`), also of those that their page judges live:
what came out is stored, so that the board knows it unrun.

A live claim leaves one row for each number of its test (`NUMBERS`), as experiments leave theirs:
with scale, seed, device, version, commit, and the processor's seconds of the page until then.
Whoever executes the page with ``LGFED_KEEP`` set (``book/build.py --keep``) at quick or paper scale
stores them in data/results, in a file named as the page. Verdicts follow from the rows, by Holm
over the claims of the page, as on the page itself; at quick scale they are suggested, not judged.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from lgfed_core.engine import CPU
from lgfed_core.engine.provenance import provenance
from lgfed_core.evidence import answers, claims, records
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Comparison
from lgfed_core.evidence.verdict import Evidence

NUMBERS = ("estimate", "low", "high", "p", "p_against", "runs")  # p-values before Holm's correction
SCALES = ("paper", "quick")  # the best first
_QUICK = "a live run at quick scale"


@dataclass(frozen=True)
class Judged:
    """What recorded rows say of a page's claims, by both rules.

    rows: reads what the claims' ``comparisons`` take. stand_in: from that the data that stand in
    for the paper's, of all claims or by id; short: likewise, how runs are shorter than the paper's,
    which then suggest a verdict and give none.
    """

    claims: Sequence[Claim]
    rows: Callable[[], Any]
    stand_in: Callable[[Any], str | Mapping[str, str]] = records.stand_in
    short: Callable[[Any], Mapping[str, str]] = lambda found: {}

    def judged(self, found: Any) -> pd.DataFrame:
        """Lines of `evidence.claims.judged`; found: as ``rows`` reads it."""
        lines = claims.judged(self.claims, found, self.stand_in(found))
        for id, why in self.short(found).items():
            if id in lines.index:
                lines.loc[[id]] = claims.only_suggested(lines.loc[[id]], why)
        return lines

    def from_stored(self) -> pd.DataFrame:
        """`judged` of the recorded rows."""
        return self.judged(self.rows())

    def told(self) -> dict[str, Told]:
        """The same by setting, with the claims' answers (`answers.told`)."""
        found = self.rows()
        return answers.told(self.claims, found, self.stand_in(found), self.short(found))


def keep(of: Sequence[Claim], found: Any, scale: str, seed: int = 0) -> None:
    """Store what the claims of a page say of ``found``, where that is asked for (see above).

    found: what the claims' ``comparisons`` take, each to one part. The number ``runs`` is how many
    the test is over; 2 where there is no chance in it.
    """
    if not os.environ.get("LGFED_KEEP") or scale not in SCALES:
        return
    lines = []
    for claim in of:
        (part,) = claim.comparisons(found)
        values = {n: getattr(part.evidence, n) for n in NUMBERS[:-1]} | {"runs": part.runs}
        lines += [{"claim": claim.id, "metric": n, "value": v} for n, v in values.items()]
    rows = pd.DataFrame(lines).assign(
        table=_name(of).replace(".", "_"),
        protocol="as_described",
        selection="last",
        seed=seed,
        scale=scale,
        seconds=time.process_time(),
        **provenance(CPU),
    )
    records.record(_name(of), rows)


def live(of: Sequence[Claim]) -> Judged:
    """What `keep` has stored of the claims of a page, at the best scale that there is."""
    again = [replace(claim, comparisons=partial(_part, claim.id)) for claim in of]
    return Judged(
        again, partial(_numbers, of), short=lambda n: dict.fromkeys(n.index[n["quick"]], _QUICK)
    )


def _numbers(of: Sequence[Claim]) -> pd.DataFrame:
    """A line for each claim, with `NUMBERS` as columns, and whether they are of ``quick`` scale."""
    found = records.select(_name(of), columns=("claim",), seed=0)
    scale = next((name for name in SCALES if (found["scale"] == name).any()), "")
    mine = found[found["scale"] == scale]
    return mine.pivot(index="claim", columns="metric", values="value").assign(
        quick=scale == "quick"
    )


def _part(id: str, numbers: pd.DataFrame) -> list[Comparison]:
    if id not in numbers.index:
        return []
    *evidence, runs = numbers.loc[id, list(NUMBERS)]
    return [Comparison("", int(runs), Evidence(*evidence))]


def _name(of: Sequence[Claim]) -> str:
    return of[0].page.replace("/", ".")
