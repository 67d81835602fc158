"""Claim F13 of FADE, from stored runs on the data that stand in for the study (`run`).

The paper reports the users it trains with, so the claim is judged on them; people who were left out
are on the page. Of the learning rates that have run, each set is judged at the one `chosen`, which
no test row decides. Seeds pair the comparisons, delta EO goes from 0 to 2.
"""

import pandas as pd

from lgfed_core.evidence import claims
from lgfed_core.evidence.claims import Claim, Part, paired
from lgfed_core.evidence.records import select, stand_in
from lgfed_core.evidence.verdict import REFUTED, greater

from . import run as impairment
from .run import Settings

UNFAIR = 0.2  # delta EO without an adversary, as the paper has it
MANY = 10  # users a round from which the paper says so
_IDS = ("stand_in", "per_round", "lr", "loss", "rounds")


def stored(scale: str = "paper") -> pd.DataFrame:
    """Recorded rows after the last round; empty before the first."""
    found = select(impairment.NAME, columns=_IDS, scale=scale)
    return found[found["rounds"].isin({Settings.pretraining, found["rounds"].max()})]


def by_rate(found: pd.DataFrame) -> dict[str, pd.Series]:
    """By stand-in and learning rate, the mean F1 without an adversary on the users trained with,
    over the numbers of users a round that all its rates have; over any where there are none."""
    mine = select(found, metric="train_f1", loss="none")
    f1, means = mine.pivot_table("value", ["stand_in", "per_round"], "lr"), {}
    for name in found["stand_in"].unique():
        own = f1[f1.index.get_level_values("stand_in") == name].dropna(axis=1, how="all")
        means[name] = (own.dropna() if len(own.dropna()) else own).mean()
    return means


def chosen(found: pd.DataFrame) -> dict[str, float]:
    """By stand-in, the learning rate with the highest mean `by_rate`; the smallest without any."""
    least = found.groupby("stand_in")["lr"].min()
    return {name: f1.idxmax() if len(f1) else least[name] for name, f1 in by_rate(found).items()}


def wide(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One measure at the end, at the rates `chosen`: lines (stand_in, per_round, seed), a column
    per loss."""
    mine = found[found["lr"] == found["stand_in"].map(chosen(found))]
    mine = select(mine, metric=metric, loss=impairment.LOSSES)
    return mine.pivot_table("value", ["stand_in", "per_round", "seed"], "loss")


def debiasing(found: pd.DataFrame) -> list[Part]:
    """F13, in each set and for each number of users a round: without an adversary delta EO is above
    `UNFAIR` (from `MANY` users on), the squared loss lowers it, and more than the vanilla loss."""
    parts, table = [], wide(found, "train_delta_eo")
    if not set(impairment.LOSSES) <= set(table):
        return []
    for (name, m), mine in table.dropna().groupby(["stand_in", "per_round"]):
        where = f"{name}, {m:g} a round"
        if m >= MANY:
            none = mine["none"]
            above = f"{where}: delta EO above {UNFAIR:g} without the game"
            parts.append(Part(above, len(none), greater(none.to_numpy(), by=UNFAIR)))
        for other in ("none", "vanilla"):
            parts.append(
                paired(f"{where}: squared below {other}", mine[other], mine["squared"], greater)
            )
    return parts


_CELLS = len(Settings.people) * (
    2 * len(Settings.per_round) + sum(m >= MANY for m in Settings.per_round)
)
CLAIMS = (Claim("F13", "fade/impairment", "squared debiases, vanilla does not", debiasing, _CELLS),)


def alone(found: pd.DataFrame, metric: str = "train_delta_eo") -> pd.DataFrame:
    """One measure without the game at every rate, means over seeds: lines (stand_in, lr), a column
    per number of users a round, NaN where it has not run."""
    mine = select(found, metric=metric, loss="none")
    return mine.pivot_table("value", ["stand_in", "lr"], "per_round")


def blind(found: pd.DataFrame, name: str, lr: float) -> bool:
    """Whether no positive window is found at this rate: F1 is 0, and delta EO says nothing."""
    f1 = alone(found, "train_f1")
    return (name, lr) in f1.index and not f1.loc[(name, lr)].fillna(0).any()


def judged(found: pd.DataFrame) -> pd.DataFrame:
    """Lines of `evidence.claims.judged`; the verdict names the data that stand in, the rate where
    it is not the text's, and what delta EO is at the text's."""
    lines = claims.judged(CLAIMS, found, stand_in(found))
    return claims.judged(CLAIMS, found, stand_in(found), _limits(found, lines))


def _limits(found: pd.DataFrame, lines: pd.DataFrame) -> str:
    if lines.empty:
        return ""
    line, words = lines.loc["F13"], []
    if line["verdict"] == REFUTED and line["ran"] < line["parts"]:
        words.append(f"{line['ran']} of {line['parts']} comparisons")
    rates, text = chosen(found), Settings.lrs[0]
    other = {name: lr for name, lr in rates.items() if lr != text}
    if other:
        times = " and ".join(f"{lr / text:g}" for lr in sorted(set(other.values())))
        words.append(f"at {times} times the text's rate")
    there = alone(found)
    there = there[[m for m in there if m >= MANY]].dropna(how="all")
    at = "; ".join(
        f"{_range(there.loc[name, text])} ({name}{', F1 0' * blind(found, name, text)})"
        for name in other
        if (name, text) in there.index
    )
    # False if delta EO without the game is another at the text's rate.
    said = f"; at the text's rate delta EO without the game is {at}" if at else ""
    return "".join(f", {word}" for word in words) + said


def _range(values: pd.Series) -> str:
    """ "0.27 to 0.30", or "0.30" where the ends agree in print."""
    ends = dict.fromkeys(f"{end:.2f}" for end in (values.min(), values.max()))
    return " to ".join(ends)


def from_stored() -> pd.DataFrame:
    """The claim on the recorded runs."""
    return judged(stored())
