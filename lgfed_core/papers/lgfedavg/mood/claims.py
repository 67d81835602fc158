"""Claim L18 of LG-FedAvg's paper, on stored runs at paper scale: real chats in the study's place.

Which of the four splits in between is compared is decided in each repetition on validation rows.
The repetitions split the same texts again and again, so that their variance is corrected for it
(Nadeau and Bengio 2003, `verdict.greater`); made-up texts are drawn anew.
"""

import pandas as pd

from lgfed_core.evidence import answers, claims
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Line, Part
from lgfed_core.evidence.records import select, stand_in
from lgfed_core.evidence.rows import plain
from lgfed_core.evidence.tuning import best_setting
from lgfed_core.evidence.verdict import greater

from .run import NAME, TABLE, ids
from .settings import ALPHAS, Settings
from .stand_in_people import EACH, SOURCES

BETWEEN = ALPHAS[1:-1]
EXTREMES = {0.0: "local only", 1.0: "FedAvg"}
_TENTH = round(EACH / 10)
SHARED = {"chats": _TENTH / (EACH - 2 * _TENTH)}  # test rows over training rows


COLUMNS = ("stand_in", "alpha", "lr", "scale")
SHORT = "runs with fewer restarts, rounds or passes than the others"


def stored(table: str = TABLE) -> pd.DataFrame:
    """The recorded rows of every source, alpha and rate; short runs where there are no others.

    table: `run.CURVES` for accuracies by round, means over restarts.
    """
    rows = select(NAME, columns=COLUMNS, table=table, scale=("short", "paper"))
    whole = rows["scale"] == "paper"
    return rows[whole | ~rows["stand_in"].isin(rows["stand_in"][whole])]


def wide(
    rows: pd.DataFrame,
    source: str,
    metric: str,
    selection: str = "best_val",
    lr: float = Settings.lr,
) -> pd.DataFrame:
    """One number of a source: lines are seeds, columns alphas; NaN where one has not run.

    source: of `people.SOURCES`, or how rows of one's own file name it.
    """
    mine = select(
        rows, stand_in=SOURCES.get(source, source), metric=metric, selection=selection, lr=lr
    )
    found = mine.assign(alpha=mine["alpha"].astype(float)).pivot_table("value", "seed", "alpha")
    return found.reindex(columns=list(ALPHAS))


def sources(rows: pd.DataFrame) -> list[str]:
    """The sources that rows are of: those of `people.SOURCES`, then files of one's own by title."""
    named = set(rows["stand_in"]) if len(rows) else set()
    return [s for s, title in SOURCES.items() if title in named] + sorted(
        named - set(SOURCES.values())
    )


def chosen(rows: pd.DataFrame, source: str, lr: float = Settings.lr) -> pd.DataFrame:
    """By seed: the ``alpha`` in between that is best on validation rows, and its ``test_acc``.

    Of seeds that have run all of them; of equally good ones the smallest alpha.
    """
    judged = wide(rows, source, "validation_acc", lr=lr)[list(BETWEEN)].dropna()
    alphas = [best_setting(line) for _, line in judged.iterrows()]
    best = pd.Series(alphas, judged.index, dtype=float)
    tested = wide(rows, source, "test_acc", lr=lr)
    values = [tested.loc[seed, alpha] for seed, alpha in best.items()]
    return pd.DataFrame({"alpha": best, "test_acc": values}, index=best.index)


def between_beats_extremes(rows: pd.DataFrame, source: str = "chats") -> list[Part]:
    """The split chosen on validation rows, minus local only, and minus FedAvg."""
    own, tested = chosen(rows, source)["test_acc"], wide(rows, source, "test_acc")
    of = tuple(Line(NAME, _text(ids(source, alpha))) for alpha in ALPHAS)
    parts = []
    for alpha, name in EXTREMES.items():
        a, b = own.align(tested[alpha].dropna(), join="inner")
        evidence = greater(a.to_numpy(), b.to_numpy(), shared=SHARED.get(source, 0.0))
        parts.append(Part(name, len(a), evidence, of))
    return parts


CLAIMS = (
    Claim(
        "L18",
        "lgfedavg/mood",
        "a split in between beats both extremes",
        between_beats_extremes,
        question="Does a split between all private and all shared predict moods better than "
        "either extreme?",
        answer="**Open.** The split that validation rows choose is 2 points ahead of training "
        "alone and 5 behind FedAvg, give or take 12 to 14. No network beats guessing the "
        "commonest label (49 %), so none shows what helps with moods.",
        guard=lambda told: (
            told.tally(0, 0, 2)
            and told.between(1, 3, at="local only")
            and told.between(-6, -4, at="FedAvg")
            and bool(wide(stored(), "chats", "test_acc").mean().max() < 49)
        ),
        unit="points of accuracy, above 0: the split in between is ahead",
    ),
)


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Lines of `evidence.claims.judged`; the verdict names the data that stand in, and says where
    shortened runs only suggest it."""
    mine = select(rows, stand_in=SOURCES["chats"])
    lines = claims.judged(CLAIMS, mine)
    if len(mine) and set(mine["scale"]) != {"paper"}:
        lines = claims.only_suggested(lines, SHORT)
    said = [claims.on_stand_in(words, stand_in(mine)) for words in lines["said"]]
    return lines.assign(said=said)


def from_stored() -> pd.DataFrame:
    """The claim on the recorded runs."""
    return judged(stored())


def told() -> dict[str, Told]:
    """The same by setting, with its answer."""
    mine = select(stored(), stand_in=SOURCES["chats"])
    short = SHORT if len(mine) and set(mine["scale"]) != {"paper"} else ""
    return answers.told(CLAIMS, mine, stand_in(mine), short)


def details(rows: pd.DataFrame) -> pd.DataFrame:
    """Every comparison of every source, in points: runs, estimate, interval, one-sided p."""
    lines = [
        dict(texts=SOURCES[source], against=part.name, runs=part.runs)
        | {"estimate": claims.said(part.evidence, part.runs), "p, one-sided": part.evidence.p}
        for source in SOURCES
        for part in between_beats_extremes(rows, source)
    ]
    return pd.DataFrame(lines).set_index(["texts", "against"])


def _text(cell: dict) -> tuple[tuple[str, str], ...]:
    return tuple((name, plain(value)) for name, value in cell.items())
