"""Claims F10, F11 and F12 of FADE, from stored runs on UCI Adult (`run`), by choice of inputs.

F10 is read off the figure. F11 and F12 speak for the two losses as well as they can be made to do:
at each end of the figure, each loss plays with what `chosen` finds among all that was tried. Seeds
pair the comparisons. Delta EO goes from 0 to 2, accuracies are in percent.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lgfed_core.evidence import verdict
from lgfed_core.evidence.claims import Claim, Comparison, paired
from lgfed_core.evidence.records import select
from lgfed_core.evidence.tuning import best_setting
from lgfed_core.evidence.verdict import equivalent, greater
from lgfed_core.papers.guards import gap
from lgfed_core.papers.live_claims import Judged

from . import run as income
from .census import Settings, Tuning

MARGIN = 1.0  # points of accuracy: the book's margin where the paper prints no deviation
COST = 1.0  # points of accuracy on validation rows that a loss may cost to be chosen
LOSSES = ("vanilla", "squared")
_IDS = ("inputs", "loss", "males", "rounds", *Tuning._fields, "q", "method")


def stored(scale: str = "paper", inputs: str = "with_sex") -> pd.DataFrame:
    """Recorded rows of one choice of inputs, of the longest runs; empty before the first."""
    found = select(income.NAME, columns=_IDS, scale=scale, inputs=inputs)
    return found[found["rounds"].isin([0, found["rounds"].max()])]


def wide(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One measure of the figure: lines by seed, columns (loss, males)."""
    mine = select(found, table=income.TABLE, metric=metric)
    return mine.pivot_table("value", "seed", ["loss", "males"])


def tried(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One measure of all that was tried: lines by seed, columns (loss, males, tuning)."""
    figure = select(found, table=income.TABLE, metric=metric)
    usual = Tuning(lr=Settings.lr)
    figure = figure.assign(**{name: float(value) for name, value in usual._asdict().items()})
    both = pd.concat([figure, select(found, table=income.SWEEP, metric=metric)])
    tuning = [Tuning(a, b, int(c)) for a, b, c in both[list(Tuning._fields)].to_numpy(float)]
    both = both.assign(tuning=pd.Series(map(str, tuning), both.index, dtype=object))
    return both.pivot_table("value", "seed", ["loss", "males", "tuning"])


class Choice(NamedTuple):
    """What validation rows choose for one loss and number of male users."""

    loss: str
    males: float
    tuning: str  # `census.Tuning` in words: top, learning rate, D's own steps


def chosen(found: pd.DataFrame) -> list[Choice]:
    """For each loss at both ends the tuning of the least delta EO, of those of which no seed left
    the finite numbers and that cost at most `COST`; all on validation rows."""
    gap, acc, lost = (
        tried(found, name).mean() for name in ("validation_delta_eo", "validation_acc", "diverged")
    )
    best = []
    for males in _ends(found):
        if ("none", males) not in acc.index.droplevel("tuning"):
            continue
        least = acc["none", males].max() - COST
        for loss in LOSSES:
            mine = acc[[i for i in acc.index if i[:2] == (loss, males) and i not in lost.index]]
            if (mine >= least).any():
                loss, _, tuning = best_setting(-gap[mine[mine >= least].index])
                best.append(Choice(loss, float(males), tuning))
    return best


def grows_with_imbalance(found: pd.DataFrame) -> list[Comparison]:
    """F10: without an adversary, delta EO rises with each doubling of the male users."""
    mine = wide(found, "delta_eo").get("none", pd.DataFrame()).dropna()  # [n, k]
    if mine.shape[1] < 2:
        return []
    doublings = np.log2(mine.columns.to_numpy(float))
    return [Comparison("per doubling", len(mine), verdict.rising(doublings, mine.to_numpy()))]


def each_loss_at_its_end(found: pd.DataFrame) -> list[Comparison]:
    """F11: delta EO is lower with the squared loss at the largest number of male users, and with
    the vanilla loss at one."""
    gap, best = tried(found, "delta_eo"), {c[:2]: c for c in chosen(found)}
    parts = []
    for males in _ends(found):
        if not all((loss, males) in best for loss in LOSSES):
            continue
        vanilla, squared = (gap[best[loss, males]] for loss in LOSSES)
        pair = (squared, vanilla) if males == 1 else (vanilla, squared)
        parts.append(paired(_users(males), *pair, greater))
    return parts


def accuracy_is_kept(found: pd.DataFrame) -> list[Comparison]:
    """F12: accuracy within `MARGIN` of that without an adversary, at both ends."""
    acc, held = tried(found, "acc"), tried(found, "validation_acc").mean()
    parts = []
    for c in chosen(found):
        plain = Choice("none", c.males, best_setting(held["none", c.males]))  # the most accurate
        name = f"{c.loss} loss, {_users(c.males)}"
        parts.append(paired(name, acc[c], acc[plain], equivalent, margin=MARGIN))
    return parts


_PAGE = "fade/income"
CLAIMS = (
    Claim(
        "F10",
        _PAGE,
        "no adversary: delta EO grows with male users",
        grows_with_imbalance,
        question="Without an adversary, does unfairness grow with the number of male users?",
        answer="**Open.** No growth is seen. From 1 to 16 male users a rise of ΔEO above 0.03 is "
        "ruled out; a smaller one is not.",
        guard=lambda told: (
            told.tally(0, 0, 1)
            and told.between(-0.005, 0.001)
            and 4 * told.lines["high"].max() < 0.035
        ),
        unit="ΔEO (0 is fair, 2 the worst) with each doubling of male users",
    ),
    Claim(
        "F11",
        _PAGE,
        "squared fairer unbalanced, vanilla balanced, in delta EO (0 to 2)",
        each_loss_at_its_end,
        2,
        question="Is the squared loss fairer when groups are unbalanced, and the vanilla loss "
        "when they are balanced?",
        answer="**Open.** Each at its best tuning, the squared loss is fairer in ΔEO by 0.01 with "
        "one male user (balanced; give or take 0.02) and by 0.02 with sixteen (give or take 0.03). "
        "Without sex among the inputs, at the usual tuning, it *is* fairer with one male user, by "
        "0.025 (0.011 to 0.040), against the claim.",
        guard=lambda told: (
            told.tally(0, 0, 2)
            and told.between(-0.0149, -0.005, at="1 male user")
            and told.between(0.015, 0.025, at="16 male users")
            and told.lines["high"].iloc[0] < 0.01
            and (told.lines["high"] - told.lines["estimate"]).round(2).tolist() == [0.02, 0.03]
            and _fairer_without_sex()
        ),
        unit="ΔEO (0 is fair, 2 the worst), above 0: as claimed",
    ),
    Claim(
        "F12",
        _PAGE,
        f"accuracy is kept within {MARGIN:g} point, by tunings that cost at most {COST:g} on "
        "validation rows",
        accuracy_is_kept,
        4,
        question="Do both adversarial losses keep the accuracy of the model without one?",
        answer="**Yes.** Each at its best tuning, they cost 0.2 to 0.6 points; a cost of 0.8 is "
        "ruled out. Tunings that cost more than a point on validation rows were not eligible.",
        guard=lambda told: (
            told.tally(4) and told.between(-0.65, -0.15) and bool(told.lines["low"].min() > -0.8)
        ),
        unit="points of accuracy, above 0: better than without an adversary",
    ),
)


def _fairer_without_sex() -> bool:
    """Whether the squared loss is fairer than vanilla by 0.025 (0.011 to 0.040) with one male user
    where sex is not among the inputs, at the usual tuning."""
    gaps = wide(stored(inputs="without_sex"), "delta_eo")
    less = gap(gaps["vanilla", 1], gaps["squared", 1])
    return [round(x, 3) for x in (less.estimate, less.low, less.high)] == [0.025, 0.011, 0.04]


def _users(males: float) -> str:
    return f"{males:g} male user{'s' * (males != 1)}"


def _ends(found: pd.DataFrame) -> list[float]:
    males = wide(found, "delta_eo").columns.get_level_values("males") if len(found) else []
    return sorted({min(males), max(males)}) if len(males) else []


def _shortened(found: pd.DataFrame) -> dict[str, str]:
    rounds, full = found["rounds"].max(), Settings.rounds
    said = f"{rounds:,.0f} of {full:,} rounds"
    return {claim.id: said for claim in CLAIMS} if rounds < full else {}


PAGE = Judged(CLAIMS, lambda: stored(), short=_shortened)
judged, from_stored, told = PAGE.judged, PAGE.from_stored, PAGE.told
