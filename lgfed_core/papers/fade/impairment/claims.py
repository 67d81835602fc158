"""Claim F13 of FADE, from stored runs on the data that stand in for the study (`run`).

The paper reports the users it trains with, so the claim is judged on them; people who were left out
are on the page. It stands where the learning rates agree, but for those at which no window is found
(`blind`): what one of them has not run is not judged. Figures show each of them. Seeds pair the
comparisons, delta EO goes from 0 to 2.
"""

import pandas as pd

from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Comparison, agreed, paired
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import greater
from lgfed_core.papers.live_claims import Judged

from . import run as impairment
from .run import Settings

UNFAIR = 0.2  # delta EO without an adversary, as the paper has it
MANY = 10  # users a round from which the paper says so
SHARE = 0.5  # of the squared loss's gain: who gains less than that "failed to debias" (ours)
_GAIN = "squared's gain"  # how much the squared loss lowers delta EO
_IDS = ("stand_in", "per_round", "lr", "loss", "rounds")


def stored(scale: str = "paper") -> pd.DataFrame:
    """Recorded rows after the last round; empty before the first."""
    found = select(impairment.NAME, columns=_IDS, scale=scale)
    return found[found["rounds"].isin({Settings.pretraining, found["rounds"].max()})]


def wide(found: pd.DataFrame, name: str, lr: float, metric: str) -> pd.DataFrame:
    """One measure of a stand-in at a rate, at the end: lines (per_round, seed), a column per
    loss."""
    mine = select(found, stand_in=name, lr=lr, metric=metric, loss=impairment.LOSSES)
    return mine.pivot_table("value", ["per_round", "seed"], "loss")


def debiasing(found: pd.DataFrame) -> list[Comparison]:
    """F13, in each set: for each number of users a round, delta EO without an adversary is above
    `UNFAIR` (from `MANY` users on), and the squared loss lowers it; in the middle of these numbers
    the vanilla loss lowers it by less than `SHARE` of that, as where it fails in most of them."""
    seen = seeing(found).items()
    return [part for name, rates in seen for part in _in_one_set(found, name, rates)]


def _in_one_set(found: pd.DataFrame, name: str, rates: list[float]) -> list[Comparison]:
    """The comparisons that all ``rates`` have, by each of them; what one has alone says nothing of
    whether they agree."""
    each = (wide(found, name, lr, "train_delta_eo") for lr in rates)
    tables = [table.reindex(columns=[*impairment.LOSSES]).dropna() for table in each]
    numbers = [set(table.index.get_level_values("per_round")) for table in tables]
    by_name: dict[str, list[Comparison]] = {}
    for table in tables:
        shared = table.index.get_level_values("per_round").isin(set.intersection(*numbers))
        for part in _at_one_rate(name, table[shared]):
            by_name.setdefault(part.name, []).append(part)
    return [agreed(parts) for parts in by_name.values() if len(parts) == len(rates)]


def _at_one_rate(name: str, table: pd.DataFrame) -> list[Comparison]:
    """The comparisons of one set; table: of `wide`, whole lines."""
    parts, short = [], name.removeprefix("made-up ").partition(" worn")[0]
    for m, mine in table.groupby("per_round"):
        where, none = f"{short}, {m:g} users", mine["none"]
        if m >= MANY:
            above = f"{where}: ΔEO above {UNFAIR:g}"
            parts.append(Comparison(above, len(none), greater(none.to_numpy(), by=UNFAIR)))
        parts.append(paired(f"{where}: {_GAIN}", none, mine["squared"], greater))
    gain = {loss: table["none"] - table[loss] for loss in ("vanilla", "squared")}
    ahead = (SHARE * gain["squared"] - gain["vanilla"]).unstack("per_round").dropna()
    if len(ahead):
        ahead = ahead.median(axis=1).to_numpy()
        parts.append(Comparison(f"{short}: vanilla fails", len(ahead), greater(ahead)))
    return parts


CLAIMS = (
    Claim(
        "F13",
        "fade/impairment",
        "squared debiases in all cases, vanilla fails in most, in delta EO (0 to 2)",
        debiasing,
        2 * (4 + 2 + 1),  # of both sets: numbers of users a round, those from `MANY` on, and one
        question="Does the squared loss make a model of impairment fair to men where the vanilla "
        "loss fails?",
        answer="**Open.** At the text's rate the game changes hardly any decision, so it cannot "
        "show what the squared loss does. At ten times that rate it changes some, but users that "
        "train have a ΔEO below 0.2 without any game. A mean fall of ΔEO above 0.12 is excluded "
        "(3 seeds). Only the study's own data can settle it.",
        guard=lambda told: (
            told.tally(0, 0, 14, ran=10)
            and _excluded(told, 0.12)
            and _fair_at(0.1)
            and _most_moved(0.01) < 0.7
            and _most_moved(0.1) > 3
        ),
        unit="ΔEO without a game, or how much it falls",
    ),
)


def alone(found: pd.DataFrame, metric: str = "train_delta_eo") -> pd.DataFrame:
    """One measure without the game at every rate, means over seeds: lines (stand_in, lr), a column
    per number of users a round, NaN where it has not run."""
    mine = select(found, metric=metric, loss="none")
    return mine.pivot_table("value", ["stand_in", "lr"], "per_round")


def blind(found: pd.DataFrame, name: str, lr: float) -> bool:
    """Whether no positive window is found at this rate: F1 is 0, and delta EO says nothing."""
    f1 = alone(found, "train_f1")
    return (name, lr) in f1.index and not f1.loc[(name, lr)].fillna(0).any()


def seeing(found: pd.DataFrame) -> dict[str, list[float]]:
    """By stand-in, the learning rates that are not `blind`, the smallest first."""
    tried = found.groupby("stand_in")["lr"].unique()
    return {
        str(name): [float(lr) for lr in sorted(rates) if not blind(found, str(name), lr)]
        for name, rates in tried.items()
    }


def _excluded(told: Told, gain: float) -> bool:
    """Whether no interval of what the squared loss gains holds ``gain``; all hold 0."""
    mine = told.lines[told.lines["name"].str.endswith(_GAIN)]
    return bool(len(mine) and mine["high"].lt(gain).all() and mine["high"].gt(0).all())


def _fair_at(lr: float) -> bool:
    """Whether delta EO without an adversary is below `UNFAIR` everywhere at this rate."""
    found = alone(stored()).xs(lr, level="lr")
    return len(found) == len(Settings.people) and bool(found.max().max() < UNFAIR)


def _most_moved(lr: float) -> float:
    """How far a game moves F1 of a run that trains at this rate at most, in points."""
    found = stored()
    tables = [wide(found, name, lr, "train_f1") for name in found["stand_in"].unique()]
    return max(t[["vanilla", "squared"]].sub(t["none"], axis=0).abs().max().max() for t in tables)


PAGE = Judged(CLAIMS, lambda: stored())
judged, from_stored, told = PAGE.judged, PAGE.from_stored, PAGE.told
