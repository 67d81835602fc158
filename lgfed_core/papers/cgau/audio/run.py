"""CGAU on audio, cough against everything else: Figure 2a and Table 1 of Rieger et al. 2020.

Ten simulated clients, YAMNet embeddings, two layers of 64 units, 1,000 rounds; the proportion of
rows whose clients are shuffled goes from 0 to 1. FSDKaggle2018 is the paper's data; other features
stand in where it cannot be had, and their rows say so (`data.cough`).
"""

from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from lgfed_core.data.features import cough
from lgfed_core.data.features.stored import Features
from lgfed_core.evidence import records as results, stand_ins
from lgfed_core.evidence.verdict import Evidence, equivalent, every, greater, judge, rising

from .. import federated
from ..gains import gains

NAME = "cgau.audio"
TABLE = "cgau_table1_frechet"
TABLES = {  # features -> the tables their rows belong to: distances, methods
    "fsdkaggle2018": (TABLE, "cgau_figure2a"),
    "clips": (TABLE, "cgau_figure2a"),
    "digits": ("cgau_digits_frechet", "cgau_digits_figure2a"),
}
RELEASED = dict(positive=50.0, methods=("baseline", "cgau_averaged"))
SCALES = {
    "smoke": dict(shuffles=(0.0, 1.0), clients=3, rounds=2, per_class=4),
    "quick": dict(shuffles=(0.0, 1.0), rounds=50, lr=0.02, every=5),
    "paper": {},
}
STAND_INS = {  # what follows from the features
    # 5 % of their training rows hold no cough; a client has used up its rows after one or two of
    # its ten steps, and at 0.001 a CGAU would be far from trained after 1,000 rounds
    "clips": dict(validation=0.2, lr=0.05),
    "digits": dict(validation=0.1, lr=0.1),  # 64 small numbers: at 0.001 nothing is learnt
}
SEEDS = 12  # repetitions in the paper
SAME = 0.2  # points of AUC that count as no difference: half of the largest gain the paper reports


@dataclass(frozen=True)
class Settings(federated.Settings):
    """The paper's values; `RELEASED` has what its code changes."""

    features: str = "clips"

    COUNTS_BATCHES = True  # the rows of a batch are read off the wrong axis

    def load(self) -> Features:
        return _load(self.features, self.per_class)


@lru_cache(maxsize=2)
def _load(name: str, per_class: int | None) -> Features:
    return cough.load(name, per_class)


class Audio(federated.FederatedExperiment):
    """The experiment; features say which data it learns from."""

    name, table = NAME, TABLE
    Settings, scales, released = Settings, SCALES, RELEASED
    chooses = frozenset({"features", "methods", "shuffles"})

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        features = changes.get("features", self.Settings.features)
        return super().usual(scale, protocol, changes) | STAND_INS.get(features, {})

    def tables(self, cfg: Settings) -> tuple[str, str]:
        return TABLES[cfg.features]


AUDIO = Audio()


def claims(found: pd.DataFrame, method: str = "cgau_kept") -> dict[str, Evidence]:
    """C1 and C2 as tests over repetitions; found: tidy rows of one protocol and scale.

    C1: at every proportion the AUC is not lower than the baseline's by `SAME` points or more.
    C2: without shuffling there is a gain; it falls with the proportion; at 1 it is within `SAME`.
    """
    gain = gains(found)
    wide = gain[gain["method"] == method].pivot(
        index="seed", columns="shuffle_proportion", values="gain"
    )
    wide = wide.dropna()
    p = wide.columns.to_numpy(float)
    first = every([greater(wide[at], by=-SAME) for at in wide])
    falls = rising(-p, wide.to_numpy())
    second = every([greater(wide[p[0]]), falls, equivalent(wide[p[-1]], 0.0, SAME)])
    return {"C1": first, "C2": second}


def stored(features: str = "clips", scale: str = "paper") -> pd.DataFrame:
    """Our recorded rows of the paper's data, or of the ``features`` that stand in; may be empty."""
    ours = ("shuffle_proportion", "method", "stand_in")
    found = results.of_tables(NAME, TABLES[features], scale, ours)
    if found.empty or features == "digits":
        return found
    return stand_ins.papers_own(found)


def verdicts(found: pd.DataFrame, protocol: str = "as_described", method: str = "cgau_kept"):
    """Verdicts on C1, C2 and C5 by claim, from rows of `stored`; empty where nothing was run.

    On stand-in data they say so: they are about these data, not about the paper's.
    """
    mine = found[found["protocol"] == protocol]
    tests = {}
    if method in set(mine["method"]) and "baseline" in set(mine["method"]):
        tests |= claims(mine, method)
    if (mine["metric"] == federated.GAMMA).any():
        tests |= distances_fall(mine)
    judged = judge(tests) if tests else pd.DataFrame(columns=["estimate", "low", "high", "verdict"])
    name = stand_ins.names(mine)
    judged["verdict"] = [stand_ins.said(said, name) for said in judged["verdict"]]
    return judged


def distances_fall(found: pd.DataFrame) -> dict[str, Evidence]:
    """C5 for one data set: each step of the shuffle proportion lowers Gamma."""
    gamma = found[found["metric"] == federated.GAMMA]
    gamma = gamma.pivot_table("value", "seed", "shuffle_proportion")
    steps = zip(gamma.columns[:-1], gamma.columns[1:], strict=True)
    return {"C5": every([greater(gamma[a], gamma[b]) for a, b in steps])}
