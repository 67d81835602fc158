"""UCI Adult (Kohavi & Becker 1996) as LG-FedAvg's fairness experiment uses it.

The recipe is that of the equialgo/fairness-in-ml tutorial, which the paper takes its loader from:
only ``adult.data``, only rows whose race is White or Black, race and sex kept as protected groups
instead of inputs, and one half of the rows for testing.
"""

import re
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lgfed_core.errors import DataError

from .dataset import Dataset, Split

NUMBERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
COLUMNS = ["age", "workclass", "fnlwgt", "education", "education_num", "marital_status"]
COLUMNS += ["occupation", "relationship", "race", "sex", "capital_gain", "capital_loss"]
COLUMNS += ["hours_per_week", "country", "target"]
GROUPS = ("race", "sex")  # the columns of Split.groups
ONE = {"race": "White", "sex": "Male", "target": ">50K"}  # what 1 stands for
RACES = ("White", "Black")
KINDS = {
    "race": (*RACES, "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"),
    "sex": ("Male", "Female"),
}
INPUTS = 93
SPLIT_SEED = 7


def read(folder: Path, rows: int | None = None) -> Dataset:
    """Adult with 93 standardised inputs, the target "earns over 50K", and race and sex as groups.

    Missing values are a category of their own; categories become indicators without the first
    level; fnlwgt is dropped. Half of the rows, stratified by target (seed 7), are for training;
    mean and standard deviation are those of the training half.

    rows: keep only the first so many of ``adult.data`` before the split; the paper's non-i.i.d.
    runs use 30,000. None keeps all 30,940.

    Returns x float32 ``[n, 93]``; y int64 ``[n]``, 1 for >50K; groups int64 ``[n, 2]``, race
    (White = 1) and sex (Male = 1). n is 15,470 in either half (15,000 for 30,000 rows). Raises
    DataError where the file is missing or malformed (with the line), or ``rows`` is impossible.
    """
    table = read_table(folder / "adult.data")
    table = table[table["race"].isin(RACES)]
    inputs = pd.get_dummies(table.drop(columns=["target", "fnlwgt", *GROUPS]), drop_first=True)
    x = inputs.to_numpy(np.float64)  # [n, 93], numbers first, then indicators
    if x.shape[1] != INPUTS:
        raise DataError(
            f"{folder / 'adult.data'}: {x.shape[1]} inputs instead of {INPUTS}; some category of "
            "the original is missing, or there is a new one"
        )
    y = table["target"].eq(ONE["target"]).to_numpy(np.int64)
    groups = np.stack([table[g].eq(ONE[g]).to_numpy(np.int64) for g in GROUPS], 1)
    if rows is not None:
        if not (isinstance(rows, Integral) and 4 <= rows <= len(y)):
            raise DataError(f"adult: asked for the first {rows} rows of {len(y)}; at least 4")
        x, y, groups = x[:rows], y[:rows], groups[:rows]
        if (few := int(np.bincount(y, minlength=2).min())) < 2:
            raise DataError(
                f"adult: of the first {rows} rows {few} have one of the two targets, and either "
                "half needs one; ask for more rows"
            )
    return _halves(x, y, groups)


def _halves(x: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Dataset:
    from sklearn.model_selection import train_test_split  # slow to import, only needed here

    order = np.arange(len(y))
    train, test = train_test_split(order, test_size=0.5, stratify=y, random_state=SPLIT_SEED)
    mean, std = x[train].mean(0), x[train].std(0)
    std[std == 0] = 1.0  # a category that no training row has
    x = (x - mean) / std

    def split(index: np.ndarray) -> Split:
        return Split(
            torch.from_numpy(x[index]).float(),
            torch.from_numpy(y[index]),
            torch.from_numpy(groups[index]),
        )

    return Dataset("adult", split(train), split(test), classes=2)


def read_table(path: Path) -> pd.DataFrame:
    """``adult.data`` or ``adult.test`` as they are, one column per field of ``COLUMNS``.

    Numbers are int64, a missing value ("?") is the category "Unknown". The comment line at the
    top of ``adult.test`` is skipped, and the dot after its labels removed. Raises DataError for a
    file that is not there, and by its number a line that is not 15 fields of the right kind.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("|"):
            continue
        fields = [field.strip() for field in line.split(",")]
        fields[-1] = fields[-1].removesuffix(".")
        if len(fields) != len(COLUMNS) or fields[-1] not in ("<=50K", ">50K"):
            raise DataError(
                f"{path}, line {number}: not {len(COLUMNS)} fields that end in <=50K or >50K: "
                f"{line[:80]!r}"
            )
        for column, field in zip(COLUMNS, fields, strict=True):
            if column in NUMBERS and not re.fullmatch(r"-?[0-9]{1,18}", field):
                raise DataError(
                    f"{path}, line {number}: {column} is {field!r}, no whole number of few digits"
                )
            if column in KINDS and field not in KINDS[column]:
                known = ", ".join(KINDS[column])
                raise DataError(f"{path}, line {number}: {column} is {field!r}, none of {known}")
        records.append(fields)
    table = pd.DataFrame(records, columns=COLUMNS).replace("?", "Unknown")
    return table.astype(dict.fromkeys(NUMBERS, np.int64))
