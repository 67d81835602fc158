"""CGAU on audio, cough against everything else: Figure 2a and Table 1 of Rieger et al. 2020.

Ten simulated clients, YAMNet embeddings, two layers of 64 units, 1,000 rounds; the proportion of
rows whose clients are shuffled goes from 0 to 1. FSDKaggle2018 is the paper's data; other features
stand in where it cannot be had, and their rows say so (`data.features.cough`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from lgfed_core.data.features import cough
from lgfed_core.data.features.stored import Features

from .. import federated

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
    # 5 % of their training rows hold one cough; a client has used up its rows after one or two of
    # its ten steps, and at 0.001 a CGAU would be far from trained after 1,000 rounds
    "clips": dict(validation=0.2, lr=0.05),
    "digits": dict(validation=0.1, lr=0.1),  # 64 small numbers: at 0.001 nothing is learnt
}
SEEDS = 12  # repetitions in the paper
_load = lru_cache(maxsize=2)(cough.load)


@dataclass(frozen=True)
class Settings(federated.Settings):
    """The paper's values; `RELEASED` has what its code changes."""

    features: str = "clips"

    CHOICES: ClassVar = dict(features=TABLES)

    COUNTS_BATCHES = True  # the rows of a batch are read off the wrong axis

    def load(self) -> Features:
        return _load(self.features, self.per_class)


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
