"""Claims C1, C2 and C5 of the CGAU paper as tests over repetitions on audio, as described, of rows
that clients keep."""

import pandas as pd

from lgfed_core.evidence.claims import Claim, Comparison
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import equivalent, greater, rising
from lgfed_core.papers.live_claims import Judged

from ..gains import PROPORTIONS, at, at_each, by_seed, distances_fall, whole
from .run import NAME, TABLES

SAME = 0.2  # points of AUC that count as no difference: half of the largest gain the paper reports
SHARED = 0.625  # a repetition tests on a third of the same clips, trains on 4/5 of the others


def not_lower(rows: pd.DataFrame) -> list[Comparison]:
    """C1: at every proportion the AUC is not lower than the baseline's by `SAME` or more.

    Repetitions draw their test clips from the same few, which their intervals know (`SHARED`).
    """
    return at_each(by_seed(rows, "cgau_kept"), by=-SAME, shared=SHARED)


def gain_falls(rows: pd.DataFrame) -> list[Comparison]:
    """C2: without shuffling there is a gain; it falls with the proportion; at 1 it is within
    `SAME`."""
    gain = by_seed(rows, "cgau_kept")
    parts = at(0.0, "nothing shuffled", gain, greater, shared=SHARED)
    if whole(gain):
        p = gain.columns.to_numpy(float)
        parts.append(Comparison("falls", len(gain), rising(-p, gain.to_numpy(), SHARED)))
    return [*parts, *at(1.0, "all shuffled", gain, equivalent, 0.0, SAME, SHARED)]


_GAIN = "sounds, AUC over the baseline"
CLAIMS = (
    Claim(
        "C1",
        "cgau/audio",
        "the AUC is at least the baseline's",
        not_lower,
        len(PROPORTIONS),
        question="On sounds, is the CGAU at least as good as the baseline, however alike the "
        "clients?",
        answer="**Open.** With client vectors kept on the client it is 0.2 points of AUC ahead if "
        "no rows are shuffled and 0.6 behind if all are, give or take 0.4 to 1 point. With "
        "averaged vectors, as in the code, it is 0.15 ahead to 0.06 behind. No difference is "
        "shown.",
        guard=lambda told: (
            told.tally(0, 0, 6)
            and told.between(0, 0.4, at=[f"{n} % shuffled" for n in (0, 20, 40)])
            and told.between(-0.7, 0, at=[f"{n} % shuffled" for n in (60, 80, 100)])
            and ((told.lines["high"] - told.lines["low"]) / 2).between(0.35, 0.95).all()
            and told.between(0.15, 0.25, at="0 % shuffled")
            and told.between(-0.65, -0.55, at="100 % shuffled")
            and bool(told.lines["low"].lt(0).all() and told.lines["high"].gt(0).all())
            and _averaged_rows_show_nothing()
        ),
        unit="points of AUC, above 0: CGAU is ahead",
        family=_GAIN,
    ),
    Claim(
        "C2",
        "cgau/audio",
        "the gain falls as clients are shuffled",
        gain_falls,
        3,
        question="On sounds, does the gain fade as clients become alike?",
        answer="**Open.** With client vectors kept on the client, a line fitted to the gain falls "
        "by 0.7 points of AUC, give or take 1.",
        guard=lambda told: (
            told.tally(0, 0, 3)
            and told.between(0.65, 0.75, at="falls")
            and told.between(0.15, 0.25, at="nothing shuffled")
            and told.between(-0.65, -0.55, at="all shuffled")
        ),
        unit="points of AUC",
    ),
    Claim(
        "C5",
        "cgau/clients",
        "distances fall as clients are shuffled",
        distances_fall,
        where="audio",
        question="Do clients become alike, in Fréchet distance, as their rows are shuffled?",
        answer="**Yes.** Each step of shuffling brings the clients' sounds closer.",
        guard=lambda told: told.tally(5) and told.between(1, 25),
        unit="fall of the distance with each step",
    ),
)


def stored() -> pd.DataFrame:
    """Our recorded rows of the paper's data, or of the clips that stand in; may be empty."""
    columns = ("shuffle_proportion", "method", "stand_in")
    return select(NAME, columns=columns, own=True, table=TABLES["clips"], scale="paper")


def _averaged_rows_show_nothing() -> bool:
    """Whether the gain with averaged rows goes from 0.15 to -0.06 points, each interval with 0."""
    gain = by_seed(select(stored(), protocol="as_described"), "cgau_averaged")
    found = [greater(gain[p], shared=SHARED) for p in gain]
    ends = [round(one.estimate, 2) for one in (found[0], found[-1])]
    shown = [one for one in found if not one.low < 0 < one.high]
    return whole(gain) and ends == [0.15, -0.06] and not shown


PAGE = Judged(CLAIMS, lambda: select(stored(), protocol="as_described"))
judged, from_stored, told = PAGE.judged, PAGE.from_stored, PAGE.told
