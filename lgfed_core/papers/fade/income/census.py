"""UCI Adult as FADE has it, with one female user and more and more male ones; and the settings.

Hong et al. (2021), section 6.1, and the loader of the released code: both files of the census,
45,222 rows without a missing value, six numbers (fnlwgt among them) and indicators of eight
attributes, all standardised. In the released code sex itself is among these, and "relationship" is
there twice.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch

from lgfed_core import data, require
from lgfed_core.data import Dataset, Split, adult
from lgfed_core.errors import DataError, SettingsError
from lgfed_core.papers.settings import INSIDE, Checked
from lgfed_core.partition import ClientIndices, Partition, with_validation
from lgfed_core.seeds import Purpose, stream

ROWS = 45_222
CATEGORIES = ["workclass", "education", "country", "relationship", "marital_status", "occupation"]
CATEGORIES += ["race"]
INPUTS = {  # choice of inputs -> categorical attributes
    "with_sex": [*CATEGORIES, "relationship", "sex"],  # 110 inputs, as released
    "without_sex": CATEGORIES,  # 102 inputs
}
FEMALE, MALE = 0, 1  # groups
PARTS = ("figure", "between", "sweep", "qffl", "central")  # of the experiment
PLAIN = ("logistic", "thresholds", "reduction")  # methods with all rows in one place
POWERS = {"none": 1.0, "vanilla": 1.0, "between": 1.5, "squared": 2.0}  # "none": D looks on


class Tuning(NamedTuple):
    """What the sweep turns: lambda's top, learning rate, D's own steps with each batch."""

    top: float = 1.0
    lr: float = 1e-2
    own_steps: int = 0

    def __str__(self):
        return f"{self.top:g}_{self.lr:g}_{self.own_steps}"

    @classmethod
    def read(cls, text: str) -> "Tuning":
        """The tuning that reads so: "3_0.01_4". Raises SettingsError for anything else."""
        try:
            top, lr, own = text.split("_")
            return cls(float(top), float(lr), int(own))
        except ValueError:
            raise SettingsError(
                f"swept has {text!r}; it is top_lr_own steps, e.g. {cls()}"
            ) from None


SWEPT = (  # the first has the text's rate
    "1_0.001_0",
    "3_0.01_0",
    "10_0.01_0",
    "1_0.01_4",
    "3_0.01_4",
    "1_0.03_0",
    "3_0.03_0",
)
SCALES = {
    "smoke": dict(
        inputs=("with_sex",),
        males=(1, 2),
        losses=("none", "squared"),
        swept=("3_0.01_1",),
        qs=(2.0,),
        rounds=3,
        looks=1,
        first_rows=1500,
        probed=100,
        sweeps=4,
    ),
    "quick": dict(
        inputs=("with_sex",),
        males=(1, 16),
        losses=("none", "vanilla", "squared"),
        parts=("figure",),
        rounds=400,
        lr=0.05,
        looks=8,
        probed=1000,
        sweeps=5,
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values, and ours where it has none."""

    inputs: tuple[str, ...] = tuple(INPUTS)
    males: tuple[int, ...] = (1, 4, 16)  # users with the rows of men; the ends are swept
    losses: tuple[str, ...] = ("none", "vanilla", "squared")
    parts: tuple[str, ...] = PARTS
    swept: tuple[str, ...] = SWEPT  # each a `Tuning`
    qs: tuple[float, ...] = (2.0,)  # of q-FFL
    rounds: int = 8000
    per_round: int = 2  # users
    batch_size: int = 64
    lr: float = 1e-2  # the text's 1e-3 is of an optimiser that it does not name; it is in the sweep
    momentum: float = 0.9
    beta: float = 0.5
    dropout: float = 0.25
    test: float = 0.1  # share of all rows
    validation: float = 0.1  # share of each user's other rows
    looks: int = 10  # measurements on the way
    probed: int = 2000  # test rows, half to fit a probe and half to judge it
    first_rows: int | None = None  # of the census, for a quick look
    sweeps: int = 25  # of fairlearn's reduction

    RANGES: ClassVar = dict(test=INSIDE)
    CHOICES: ClassVar = dict(scale=SCALES, losses=POWERS, inputs=INPUTS, parts=PARTS)
    EMPTY = frozenset({"swept", "qs"})
    UNRELEASED = "income has no released protocol: the code holds no run file for Figure 3a"

    def fits(self) -> None:
        super().fits()
        if self.per_round > 1 + min(self.males):
            raise SettingsError(
                f"per_round is {self.per_round}; with males {self.males} it must be at most "
                f"{1 + min(self.males)}, as there are no more users"
            )
        for text in self.swept:
            Tuning.read(text)

    @property
    def ends(self) -> tuple[int, ...]:
        """The smallest and the largest number of male users."""
        return tuple(sorted({min(self.males), max(self.males)}))

    def names(self) -> dict[str, int | None]:
        """The parts of a choice of inputs, in order, and how many rounds each trains."""
        several = {"sweep": [f"sweep:{tuning}" for tuning in self.swept]}
        names = [name for part in self.parts for name in several.get(part, [part])]
        return {name: None if name == "central" else self.rounds for name in names}

    def cells(self, part: str) -> list[dict]:
        """What is identified by more than its seed, in the order in which a seed's runs lie."""
        kind, *what = part.split(":")
        if kind in ("figure", "between"):
            losses = self.losses if kind == "figure" else [kind]
            return [dict(loss=x, males=m) for x in losses for m in self.males]
        if kind == "qffl":
            return [dict(q=q, males=m) for q in self.qs for m in self.ends]
        if kind == "central":
            return [dict(method=name) for name in PLAIN]
        tuned = dict(zip(Tuning._fields, map(float, Tuning.read(what[0])), strict=True))
        games = [x for x in self.losses if x != "none" or tuned["lr"] != self.lr]
        return [dict(loss=x, males=m, **tuned) for x in games for m in self.ends]


@lru_cache(2)
def census(inputs: str = "with_sex", first: int | None = None) -> Dataset:
    """All rows, as training and as test rows alike: `users` says who trains and is tested on which.

    inputs: "with_sex", 110 of them as released, or "without_sex", 102. first: of the rows, for a
    quick look.

    x float32 [n, 110], standardised by the mean and the deviation of all rows; y int64 [n], 1 for
    more than 50K; groups int64 [n, 1], 1 for male. Raises DataError where the files are not the
    census.
    """
    require.one_of("inputs", inputs, INPUTS)
    folder = data.get("adult")
    table = pd.concat([adult.read_table(folder / name) for name in ("adult.data", "adult.test")])
    table = table[(table != "Unknown").all(axis=1)].reset_index(drop=True)
    if len(table) != ROWS:
        raise DataError(f"{folder}: {len(table):,} complete rows; the census has {ROWS:,}")
    parts = [table[adult.NUMBERS].astype(float)]
    parts += [pd.get_dummies(table[name], dtype=float) for name in INPUTS[inputs]]
    x = np.concatenate([part.to_numpy() for part in parts], 1)  # [n, 110]
    x = ((x - x.mean(0)) / x.std(0))[:first]
    y = table["target"].eq(adult.ONE["target"]).to_numpy(np.int64)[:first]
    male = table["sex"].eq("Male").to_numpy(np.int64)[:first]
    rows = Split(*(torch.from_numpy(a) for a in (x.astype(np.float32), y, male[:, None])))
    return Dataset(f"adult {inputs}", rows, rows, classes=2)


def users(rows: Split, males: int, seed: int, most: int, test: float, validation: float):
    """A `Partition`: user 0 holds the rows of women, users 1 to ``males`` equal shares of men's.

    Users up to ``most`` hold nothing, so that federations of several sizes train together. The
    share ``test`` of all rows, drawn by ``seed``, is left out for testing, and of the others
    ``validation`` of each user's. Test rows are shared out in the same way. Raises SettingsError
    where none are left to test or to validate on.
    """
    order = stream(seed, Purpose.TEST_SPLIT).permutation(len(rows))
    held_out, kept = np.split(order, [round(test * len(rows))])
    group = rows.groups[:, 0].numpy()

    def shared_out(some: np.ndarray) -> ClientIndices:
        men = np.array_split(some[group[some] == MALE], males)
        nobody = [np.empty(0, np.int64)] * (most - males)
        return ClientIndices.from_lists([some[group[some] == FEMALE], *men, *nobody])

    part = Partition(f"1 + {males} users", shared_out(kept), None, shared_out(held_out))
    part = with_validation(part, validation, seed)
    for what, some in (("test", part.test), ("validation", part.validation)):
        if some is None or not some.size.sum():
            raise SettingsError(
                f"{what} rows: none of {len(rows)}, with test {test} and validation {validation}; "
                "raise that share, or first_rows"
            )
    return part
