"""The control on CIFAR-10: what CGAU gains on clients whose number adds nothing to what the
features say of the class. By itself the number says something of it: it is a region of the plane.

A gain is read at two rounds, that of the least validation loss and the last, and what is said of it
without naming one holds at both. With features of our small CNN the first is picked by rows that
its network was trained on (`cnn`).
"""

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import equivalent, greater

from ..federated import GAMMA
from . import run as cifar10
from .claims import BEST, LAST, NO_GAIN, accuracy, gain_table

TOLD, BLIND, ANY = (  # how clients are made; in the last two no label sends a row to a client
    "class by class",
    "all classes together",
    "nearest centroid of any class",
)
MADE = {TOLD: {}, BLIND: dict(within_classes=False), ANY: dict(own_class=False)}
LEAST, END = "least validation loss", "last round"
ROUNDS = {LEAST: BEST, END: LAST}
NAMES = ["features", "clients made", "at"]


def table(method: str = "cgau_kept", protocol: str = "as_described") -> pd.DataFrame:
    """Recorded gains without shuffling, of clients made in the ways of `MADE`.

    A line per kind of features, of clients, and of `ROUNDS`: distance (Frechet's, of a client to
    all others together, on average), baseline (accuracy, percent), gain (points), low and high
    (95 %), p that there is none (one-sided), p_same that it is `NO_GAIN` or more either way (two
    one-sided tests), repetitions.
    Empty where the control has not been run.
    """
    lines = {}
    for features in cifar10.FEATURES:
        for name, made in MADE.items():
            found = cifar10.stored(features, **made)
            found = select(found, protocol=protocol, shuffle_proportion=0)
            for at, selection in ROUNDS.items():
                gain = gain_table(found, method, selection)
                if len(gain):
                    lines[features, name, at] = _line(found, gain[0.0], selection)
    index = pd.MultiIndex.from_tuples(lines, names=NAMES) if lines else None
    columns = ["distance", "baseline", "gain", "low", "high", "p", "p_same", "repetitions"]
    return pd.DataFrame(list(lines.values()), index, columns)


def _line(found: pd.DataFrame, gain: pd.Series, selection: str) -> list[float]:
    level = accuracy(found, "baseline", selection)[0.0].reindex(gain.index).mean()
    more, same = greater(gain), equivalent(gain, 0.0, NO_GAIN)
    numbers = [more.estimate, more.low, more.high, more.p, same.p]
    return [select(found, metric=GAMMA)["value"].mean(), level, *numbers, len(gain)]
