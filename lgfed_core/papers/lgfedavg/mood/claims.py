"""Claim L18 of LG-FedAvg's paper, on stored runs at paper scale: real chats in the study's place.

Which of the four splits in between is compared is decided in each repetition on validation rows.
The repetitions split the same texts again and again, so that their variance is corrected for it
(Nadeau and Bengio 2003, `verdict.greater`); made-up texts are drawn anew.
"""

from dataclasses import replace
from functools import partial

import pandas as pd

from lgfed_core.evidence.claims import Claim, Comparison, Line, paired
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import plain
from lgfed_core.evidence.tuning import best_setting
from lgfed_core.evidence.verdict import greater
from lgfed_core.papers.live_claims import Judged

from .run import NAME, TABLE, ids
from .settings import ALPHAS, SOURCES, Settings
from .texts import EACH

BETWEEN = ALPHAS[1:-1]
EXTREMES = {0.0: "local only", 1.0: "FedAvg"}
_TENTH = round(EACH / 10)
SHARED = {"chats": _TENTH / (EACH - 2 * _TENTH)}  # test rows over training rows


def stored() -> pd.DataFrame:
    """The recorded rows of every source, alpha and rate at paper scale."""
    return select(NAME, columns=("stand_in", "alpha", "lr"), table=TABLE, scale="paper")


def wide(rows: pd.DataFrame, source: str, metric: str, lr: float = Settings.lr) -> pd.DataFrame:
    """One number of a source, of the runs that are best on validation rows: lines are seeds,
    columns alphas; NaN where one has not run."""
    where = dict(stand_in=SOURCES[source], metric=metric, selection="best_val", lr=lr)
    mine = select(rows, **where).astype({"alpha": float})
    return mine.pivot_table("value", "seed", "alpha").reindex(columns=list(ALPHAS))


def chosen(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    """By seed: the ``alpha`` in between that is best on validation rows, and its ``test_acc``.

    Of seeds that have run all of them; of equally good ones the smallest alpha.
    """
    judged = wide(rows, source, "validation_acc")[list(BETWEEN)].dropna()
    tested = wide(rows, source, "test_acc")
    best = {seed: best_setting(scores) for seed, scores in judged.iterrows()}
    lines = [(alpha, tested.loc[seed, alpha]) for seed, alpha in best.items()]
    return pd.DataFrame(lines, judged.index, ["alpha", "test_acc"], dtype=float)


def between_beats_extremes(rows: pd.DataFrame, source: str = "chats") -> list[Comparison]:
    """The split chosen on validation rows, minus local only, and minus FedAvg."""
    own, tested = chosen(rows, source)["test_acc"], wide(rows, source, "test_acc")
    cells = [ids(source, alpha) for alpha in ALPHAS]
    of = tuple(Line(NAME, tuple((n, plain(v)) for n, v in cell.items())) for cell in cells)
    beats = partial(greater, shared=SHARED.get(source, 0.0))
    parts = [paired(name, own, tested[alpha], beats) for alpha, name in EXTREMES.items()]
    return [replace(part, of=of) for part in parts]


CLAIMS = (
    Claim(
        "L18",
        "lgfedavg/mood",
        "a split in between beats both extremes",
        between_beats_extremes,
        question="Does a split between all private and all shared predict moods better than "
        "either extreme?",
        answer="**Open.** The split that validation rows choose is 2 points ahead of training "
        "alone and 5 behind FedAvg, give or take 12 to 14. No network is shown to beat guessing "
        "the commonest label (49 %).",
        guard=lambda told: (
            told.tally(0, 0, 2)
            and told.between(1, 3, at="local only")
            and told.between(-6, -4, at="FedAvg")
            and bool(wide(stored(), "chats", "test_acc").mean().max() < 49)
        ),
        unit="points of accuracy, above 0: the split in between is ahead",
    ),
)


def chats() -> pd.DataFrame:
    """The rows that the claim is judged on."""
    return select(stored(), stand_in=SOURCES["chats"])


PAGE = Judged(CLAIMS, chats)
judged, from_stored, told = PAGE.judged, PAGE.from_stored, PAGE.told
