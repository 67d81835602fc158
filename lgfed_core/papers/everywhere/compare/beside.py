"""A method of the user's beside the stored ones: how far it is ahead, and whether seeds tell."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import norm

from lgfed_core.evidence import answers
from lgfed_core.evidence.answers import AGAINST, AS_CLAIMED, LEVEL, UNTOLD, Told
from lgfed_core.evidence.verdict import AGREE, ALPHA
from lgfed_core.papers.differences import Pair

from .. import claims
from ..claims import race
from ..methods import METHODS
from .experiment import METHOD
from .own_data import WORDS

AIMS = {  # measure -> what it is called, and whether more is better
    "local_test_acc": ("accuracy on own classes", 1),
    "new_test_acc": ("accuracy on a new device", 1),
    "decile_acc": ("accuracy on the worst tenth of devices", 1),
    "odds_gap": ("gap of equalised odds", -1),
    "leak_auc": ("AUC for the group, from h", -1),
}
SAID = {
    AS_CLAIMED: "ahead of",
    LEVEL: "level with",
    AGAINST: "behind",
    UNTOLD: "not told apart from",
}
NAMED = 5  # so many others are named in a sentence, more are counted
NUMBERS = ("runs", "estimate", "low", "high")
MOST = 100  # seeds; a comparison that needs more is said to need more


@dataclass(frozen=True, eq=False)
class Beside:
    """The user's runs and the stored ones, of `claims.chosen`, and what comes of them."""

    mine: pd.DataFrame
    others: pd.DataFrame

    @cached_property
    def names(self) -> dict[str, str]:
        """The others as people call them; more methods of yours first."""
        there = self.others.index.unique("method")
        return {name: name for name in there if name not in METHODS} | METHODS

    @cached_property
    def told(self) -> list[Told]:
        """For each task and measure, the user's method against all stored ones.

        Variances are shared within a task and measure, and Holm's correction is over its
        comparisons.
        """
        unit = "points, above 0: yours is better"
        some = [
            race(task, measure, words, unit, self._pairs(task, measure))
            for task in self.mine.index.get_level_values("task").unique()
            for measure, (words, _) in AIMS.items()
            if self.mine.loc[task][measure].notna().any()
        ]
        return [*answers.told(some, None).values()]

    def _pairs(self, task: str, measure: str) -> list[Pair]:
        """The user's method and each stored one that has run, better being more."""
        own, sign = claims.of(self.mine, task, METHOD)[measure], AIMS[measure][1]
        others = (
            (words, claims.of(self.others, task, method)[measure].dropna())
            for method, words in self.names.items()
        )
        return [(words, sign * own, sign * other) for words, other in others if len(other)]

    @cached_property
    def lines(self) -> pd.DataFrame:
        """A line for each comparison: task, measure, other, runs, estimate, low, high, outcome (in
        the words of `SAID`), needs: how many seeds would tell, where these do not."""
        found = [one.lines.assign(both=one.claim.id) for one in self.told]
        table = pd.concat(found, ignore_index=True).rename(columns={"name": "other"})
        table[["task", "measure"]] = table["both"].str.split(expand=True)
        family = table.groupby(["task", "measure"])["task"]
        many = family.transform("size")  # Holm corrects for them
        wider = norm.ppf(1 - ALPHA / 2 / many) / norm.ppf(1 - ALPHA / 2)
        reach = wider * (table["high"] - table["low"]) / 2
        needs = table["runs"] * (reach / table["estimate"].abs()) ** 2
        alike = 1 + np.ceil(np.log(ALPHA / many) / np.log(AGREE))  # if these runs go on so
        needs = needs.mask(table["estimate"].eq(0) & reach.eq(0), alike)
        needs = needs.clip(lower=table["runs"] + 1, upper=MOST + 1).round()
        table["needs"] = needs.where(table["outcome"] == UNTOLD)
        table["outcome"] = table["outcome"].map(SAID)
        return table[["task", "measure", "other", *NUMBERS, "outcome", "needs"]]


def sentences(lines: pd.DataFrame) -> list[str]:
    """What came of all comparisons, then one for each task and measure: whom the method is ahead
    of, level with, behind. Few others are named, many counted."""
    many = lines["outcome"].value_counts()
    ahead, level, behind, untold = many.reindex(SAID.values(), fill_value=0)
    total = f"ahead in {ahead}, level in {level}, behind in {behind}; {untold} are open"
    said = [f"**Of {len(lines)} comparisons**: {total}."]
    for (task, measure), some in lines.groupby(["task", "measure"], sort=False):
        parts = []
        for outcome in SAID.values():
            mine = some[some["outcome"] == outcome]
            if len(mine):
                parts.append(f"{outcome} {_whom(mine, len(some))}{_by(mine, outcome)}")
        about = f"{WORDS[task]}, {AIMS[measure][0]}"
        said.append(f"**{about[0].upper()}{about[1:]}**: {'; '.join(parts)}.")
    return said


def _whom(some: pd.DataFrame, total: int) -> str:
    """The others by name, or how many of ``total``."""
    if len(some) <= NAMED:
        return ", ".join(some["other"])
    return f"all {total} others" if len(some) == total else f"{len(some)} of {total} others"


def _by(some: pd.DataFrame, outcome: str) -> str:
    """By how much, or how many seeds would tell."""
    if outcome == SAID[LEVEL]:
        return ""
    if outcome != SAID[UNTOLD]:
        apart = some["estimate"].abs()
        return f" (by {_between(f'{apart.min():.1f}', f'{apart.max():.1f}')} points)"
    if (some["runs"] < 2).any():
        return " (one seed tells nothing)"
    needs = [
        f"more than {MOST}" if n > MOST else f"{n:.0f}" for n in some["needs"].agg(["min", "max"])
    ]
    return f" ({_between(*needs)} seeds would tell)"


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def counts(lines: pd.DataFrame) -> pd.DataFrame:
    """How many of the others the method is ahead of, and so on: a line per task and measure."""
    found = lines.groupby(["task", "measure", "outcome"], sort=False).size().unstack(fill_value=0)
    found = found.reindex(columns=SAID.values(), fill_value=0).rename(columns=str.capitalize)
    names = [(WORDS[task], AIMS[measure][0]) for task, measure in found.index]
    found = found.rename_axis(columns=None)
    return found.set_axis(pd.MultiIndex.from_tuples(names, names=["", ""]))
