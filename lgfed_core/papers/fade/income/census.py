"""UCI Adult as FADE has it: 45,222 complete rows, one female user and more and more male ones.

Hong et al. (2021), section 6.1, and the loader of the released code: both files of the census,
rows with a missing value left out, six numbers (fnlwgt among them) and indicators of eight
attributes, all standardised. In the released code sex itself is among these, and "relationship" is
there twice.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import torch

from lgfed_core import data
from lgfed_core.data import Dataset, Split, adult
from lgfed_core.errors import DataError, SettingsError, at_least, one_of
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


@lru_cache(2)
def census(inputs: str = "with_sex", first: int | None = None) -> Dataset:
    """All rows, as training and as test rows alike: `users` says who trains and is tested on which.

    inputs: "with_sex", 110 of them as released, or "without_sex", 102. first: of the rows, for a
    quick look.

    x float32 [n, 110], standardised by the mean and the deviation of all rows; y int64 [n], 1 for
    more than 50K; groups int64 [n, 1], 1 for male. Raises DataError where the files are not the
    census.
    """
    one_of("inputs", inputs, INPUTS)
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
    for impossible numbers.
    """
    at_least(1, males=males)
    if not 0 < test < 1:
        raise SettingsError(f"test is {test}; a share of the rows lies between 0 and 1")
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
