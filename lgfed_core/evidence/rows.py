"""The form of our numbers: what a row consists of, which ones are refused, how they are written.

A row is one number of one run. Its columns, in this order:

* ``table``: the paper's table it belongs to, a file name of data/paper without ``.csv``
  (or a name of our own for what no paper prints);
* identifying columns, named as in that table, e.g. ``classes_per_device, method, lg_rounds``;
  ``stand_in`` is one of them where other data take the place of the paper's: it names these data;
* ``protocol`` (`PROTOCOLS`), ``selection`` (`SELECTIONS`), ``seed``, ``metric``, ``value``
  (accuracies and areas under a curve in percent);
* ``scale`` (`SCALES`), ``device``, ``torch``, ``commit``, ``seconds``.

Numbers are written with seven significant digits, whole numbers in full, and rows in a fixed order.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from lgfed_core.errors import ResultsError

from .vocabulary import PROTOCOLS, SCALES, SELECTIONS

_CHOICES = {"protocol": PROTOCOLS, "selection": SELECTIONS, "scale": SCALES}
FIRST = ["table"]
LAST = ["protocol", "selection", "seed", "metric", "value"]
LAST += ["scale", "device", "torch", "commit", "seconds"]
DIVERGED = "diverged"  # the metric of a seed that left the finite numbers; its value is the round
NOT_KEY = {"value", "device", "torch", "commit", "seconds"}  # all others tell rows apart
TYPES = {"seed": int, "value": float, "seconds": float}
_PERCENT = r"(?:^|_)(?:acc|auc)(?:_|$)"  # metrics that lie from 0 to 100
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


def plain(value: Any) -> str:
    """The text of an identifying cell: "2" for 2, 2.0 and "2.0"; "" for a missing one."""
    if isinstance(value, str):
        value = value.strip()
        if not NUMBER.fullmatch(value):
            return value
    elif value is None or pd.isna(value):
        return ""
    elif isinstance(value, bool | np.bool_):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def texts(cells: pd.Series) -> pd.Series:
    """`plain` of every cell, each different one looked at once (but among mixed objects, of which
    True and 1 are equal)."""
    if cells.dtype == object:
        return cells.map(plain)
    codes, different = pd.factorize(cells, use_na_sentinel=False)
    said = np.array([plain(value) for value in different], object)
    return pd.Series(said[codes], cells.index, dtype=object, name=cells.name)


def identifying(rows: pd.DataFrame) -> list[str]:
    """The columns by which an experiment tells its rows apart: method, rounds, ..."""
    return [c for c in rows if c not in FIRST and c not in LAST]


def checked(rows: pd.DataFrame, where: str) -> pd.DataFrame:
    """``rows`` as text, columns in order. Raises ResultsError for the first thing wrong."""
    missing = [c for c in FIRST + LAST if c not in rows]
    if missing:
        raise ResultsError(f"{where}: no column {', '.join(missing)}; see lgfed_core.evidence.rows")
    rows = rows.reset_index(drop=True)

    def refuse(bad: pd.Series, column: str, wanted: str) -> None:
        if bad.any():
            n = int(bad.to_numpy().argmax())
            said = f"{where}: {column} is {rows.loc[n, column]!r} in row {n + 1}"
            raise ResultsError(f"{said}; it must be {wanted}")

    for column, allowed in _CHOICES.items():
        refuse(~rows[column].isin(allowed), column, "one of " + ", ".join(allowed))
    for column in ("table", "metric", "device", "torch", "commit"):
        refuse(~rows[column].map(lambda v: isinstance(v, str) and v.strip() != ""), column, "named")
    numbers = {c: pd.to_numeric(rows[c], errors="coerce") for c in ("seed", "value", "seconds")}
    refuse(~np.isfinite(numbers["value"]), "value", "a finite number")
    share = rows["metric"].str.contains(_PERCENT) & ~numbers["value"].between(0, 100)
    refuse(share, "value", "from 0 to 100 percent, as an accuracy or AUC")
    refuse(~numbers["seconds"].between(0, np.inf, "left"), "seconds", "a finite number from 0")
    seed, answer = numbers["seed"], rows["seed"].map(lambda v: isinstance(v, bool))
    odd = ~seed.between(0, 2**32, "left") | (seed % 1 != 0) | answer
    refuse(odd, "seed", "a whole number from 0 and below 2^32")
    picked = rows["selection"].eq("best_test") & rows["protocol"].ne("as_released")
    refuse(picked, "selection", "last or best_val: only as_released may select on test data")

    ids = identifying(rows)
    out = pd.DataFrame({c: texts(rows[c]) for c in [*FIRST, *ids]}, dtype=str)
    for column in LAST:
        out[column] = rows[column].astype(str)
    out["seed"] = [str(int(s)) for s in seed]
    out["value"] = [str(int(v)) if float(v).is_integer() else f"{v:.7g}" for v in numbers["value"]]
    out["seconds"] = [f"{v:.1f}" for v in numbers["seconds"]]
    twice = out.duplicated([c for c in out if c not in NOT_KEY])
    if twice.any():
        n = int(twice.to_numpy().argmax())
        said = ", ".join(f"{c} {v}" for c, v in out.loc[n].items() if c not in NOT_KEY and v)
        raise ResultsError(
            f"{where}: row {n + 1} repeats an earlier one: {said}; "
            "a further identifying column must tell them apart"
        )
    return out


def refuse_repeated(runs: pd.Series, where: str, of: Iterable[object] = ()) -> None:
    """Raise ResultsError for a seed of which ``runs``, values by seed, have several; ``of``: what
    they are values of."""
    if runs.index.has_duplicates:
        seed, names = runs.index[runs.index.duplicated()][0], ", ".join(map(str, of))
        raise ResultsError(
            f"{where}: seed {seed} has several values{f' for {names}' if names else ''}; "
            "rows that are no rows of the paper's table need a table name of their own"
        )


def order(row: dict[str, str], ids: list[str]) -> tuple:
    """A seed's rows stay together, so that a new seed is a block in a diff."""

    def natural(text: str) -> tuple:
        return (0, float(text), "") if NUMBER.fullmatch(text) else (1, 0.0, text)

    columns = ["table", *ids, "scale", "protocol", "seed", "selection", "metric"]
    return tuple(natural(row[c]) for c in columns)
