"""CGAU on CIFAR-10: Figure 2b of Rieger et al. 2020, and what its discussion says and asks.

Ten simulated clients, features of Inception v3 trained on ImageNet, two layers of 128 units, 500
rounds; the proportion of rows whose clients are shuffled goes from 0 to 1. The same experiment
runs with other features (a smaller network of ImageNet; a network trained on CIFAR-10 itself,
claim C7) and with 50 or 100 clients, which the discussion asks for; these are tables of our own.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pandas as pd

from lgfed_core.data.features import cifar10 as cifar_features
from lgfed_core.data.features.stored import Features
from lgfed_core.engine import Outcome, Participation
from lgfed_core.errors import SettingsError
from lgfed_core.evidence import records
from lgfed_core.papers.settings import Range

from .. import federated
from . import cnn

NAME = "cgau.cifar10"
TABLE = "cgau_figure2b"
FEATURES = (*cifar_features.NETS, cnn.NAME)
RELEASED = dict(
    features=cnn.NAME,
    units=64,
    rounds=50,
    methods=("baseline", "cgau_averaged"),
    used=1_500,
    validation=1 / 3,
)
SCALES = {
    "smoke": dict(
        features=cnn.NAME,
        shuffles=(0.0, 1.0),
        clients=3,
        rounds=2,
        units=8,
        per_class=20,
        every=1,
        epochs=1,
    ),
    "quick": dict(
        features="mobilenet_v2",
        shuffles=(0.0, 1.0),
        rounds=20,
        units=64,
        lr=0.05,
        every=5,
        per_class=100,
        validation=0.1,
        epochs=10,
    ),
    "paper": {},
}
MANY = dict(shuffles=(0.0, 1.0))  # what more than ten clients change: the two ends alone
CONTROL = dict(shuffles=(0.0,))  # no label sends rows to clients: there is none to shuffle away


@dataclass(frozen=True)
class Settings(federated.Settings):
    """The paper's values; `RELEASED` has what its code changes.

    precision: of the features' convolutions. epochs: of the network that is trained on CIFAR-10
    itself. participants: clients in a round, so that 100 clients cost what ten cost. every: rounds
    between two looks at the validation rows, which are a fifth of the training data; how often the
    paper looks, its text does not say. used: training pictures of each class that the clients have,
    of those that have features; the released code leaves most of them lie.
    """

    features: str = "inception_v3"
    units: int = 128
    lr: float = 0.01
    rounds: int = 500
    validation: float = 0.2
    every: int = 5
    precision: str = "bfloat16"
    epochs: int = cnn.EPOCHS
    participants: int = 10
    used: int | None = None

    RANGES: ClassVar = dict(per_class=Range(1, 5_000))
    CHOICES: ClassVar = dict(features=FEATURES, precision=("float32", "bfloat16"))

    def fits(self) -> None:
        super().fits()
        if self.clients > self.most:
            raise SettingsError(
                f"clients is {self.clients}, and there are at most {self.most} training rows, as "
                f"per_class is {self.per_class} and used is {self.used}; each client needs one"
            )

    @property
    def most(self) -> int:
        """Training rows, validation rows among them."""
        return 10 * min(5_000, self.per_class or 5_000, self.used or 5_000)

    @property
    def participation(self) -> Participation:
        return Participation(min(1.0, self.participants / self.clients))

    def load(self) -> Features:
        return _load(self.features, self.precision, self.per_class, self.epochs, self.used)


@lru_cache(maxsize=2)
def _load(
    name: str, precision: str, per_class: int | None, epochs: int, used: int | None
) -> Features:
    if name == cnn.NAME:
        return _some(cnn.load(per_class, epochs), used)
    only = cifar_features.NETS[name].precisions
    precision = precision if precision in only else only[0]
    return _some(cifar_features.load(name, precision, per_class), used)


def _some(found: Features, used: int | None) -> Features:
    """All test rows, and the first ``used`` training rows of each class."""
    if used is None:
        return found
    y, keep = found.y.numpy(), found.test.copy()
    for label in np.unique(y):
        keep[np.flatnonzero((y == label) & ~found.test)[:used]] = True
    cut = {k: getattr(found, k)[keep] for k in ("x", "y", "stratum", "group", "test")}
    return replace(found, **cut)


def tables(cfg: Settings) -> tuple[str, str]:
    """Names of the tables for distances and for methods; the paper's setting has the plain ones."""
    name = "cgau_cifar10"
    if cfg.features != Settings.features:
        name += f"_{cfg.features}"
    if cfg.clients != Settings.clients:
        name += f"_{cfg.clients}_clients"
    if not cfg.within_classes:
        name += "_all_classes"
    if not cfg.own_class:
        name += "_any_class"
    plain = name == "cgau_cifar10"
    return f"{name}_frechet", TABLE if plain else name


class Cifar10(federated.FederatedExperiment):
    """The experiment; its rows have the columns features and clients as well."""

    name, table = NAME, TABLE
    Settings, scales, released = Settings, SCALES, RELEASED
    chooses = frozenset(
        {"features", "clients", "within_classes", "own_class", "shuffles", "methods", "per_class"}
    )
    tables = staticmethod(tables)

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        ends = MANY if changes.get("clients", 10) > 10 else {}
        if not (changes.get("within_classes", True) and changes.get("own_class", True)):
            ends = CONTROL
        return super().usual(scale, protocol, changes) | ends

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        found = super().measured(cfg, part, outcome)
        return found.assign(features=cfg.features, clients=cfg.clients)


CIFAR10 = Cifar10()


def stored(features: str = "inception_v3", clients: int = 10, **made: bool) -> pd.DataFrame:
    """Our recorded rows of one kind of features and of clients; may be empty.

    made: how clients are simulated, ``within_classes`` and ``own_class`` of the settings. Rows of a
    part of CIFAR-10 are left out.
    """
    cfg = CIFAR10.settings("paper", features=features, clients=clients, **made)
    ours = ("shuffle_proportion", "method", "stand_in", "features", "clients")
    found = records.select(NAME, columns=ours, table=tables(cfg), scale="paper")
    return found[~found["stand_in"].astype(str).str.contains("of each class")]
