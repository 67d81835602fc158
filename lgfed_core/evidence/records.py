"""Our numbers as tidy rows, one CSV per experiment under data/results.

A row is one number of one run. Its columns, in this order:

* ``table``: the paper's table it belongs to, a file name of data/paper without ``.csv``
  (or a name of our own for what no paper prints);
* identifying columns, named as in that table, e.g. ``classes_per_device, method, lg_rounds``;
  ``stand_in`` is one of them where other data take the place of the paper's: it names these data;
* ``protocol`` (`PROTOCOLS`), ``selection`` (`SELECTIONS`), ``seed``, ``metric``, ``value``
  (accuracies and areas under a curve in percent);
* ``scale`` (`SCALES`), ``device``, ``torch``, ``commit``, ``seconds``.

A file may hold several tables; identifying columns that a table does not have stay blank. Numbers
are written with seven significant digits, whole numbers in full, and rows in a fixed order.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.files import locked, replacing
from lgfed_core.paths import CARRIED, RESULTS

PROTOCOLS = ("as_described", "as_released")
SELECTIONS = ("last", "best_val", "best_test")
SCALES = ("smoke", "quick", "short", "paper")  # short: paper scale but for fewer rounds

_CHOICES = {"protocol": PROTOCOLS, "selection": SELECTIONS, "scale": SCALES}
_FIRST = ["table"]
_LAST = [
    "protocol",
    "selection",
    "seed",
    "metric",
    "value",
    "scale",
    "device",
    "torch",
    "commit",
    "seconds",
]
_NOT_KEY = {"value", "device", "torch", "commit", "seconds"}
_TYPES = {"seed": int, "value": float, "seconds": float}
_EMPTY = pd.DataFrame(columns=_FIRST + _LAST).astype(_TYPES)
_PERCENT = r"(?:^|_)(?:acc|auc)(?:_|$)"  # metrics that lie from 0 to 100
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def writable(folder: Path = RESULTS) -> None:
    """Raise ResultsError where ``folder`` is a wheel's, whose rows are not to change."""
    if folder.is_relative_to(CARRIED):
        raise ResultsError(
            "the stored rows came with the wheel that lgfed_core was installed from, and are read "
            "alone; set LGFED_HOME to a folder of yours, and rows go to its data/results"
        )


def record(experiment: str, rows: pd.DataFrame, folder: Path = RESULTS) -> Path:
    """Put ``rows`` into ``folder``/``experiment``.csv and return that path.

    Rows that are there already with the same key (all columns except value, device, torch, commit
    and seconds) are replaced. The file is replaced as a whole and under a lock, so that neither a
    kill nor a second process loses rows. Raises ResultsError, and leaves the file as it was, when
    a row is malformed: a column missing, a value that is no finite number, an unknown scale,
    protocol or selection, a seed that is not a whole number, the same key twice.
    """
    writable(folder)
    if not re.fullmatch(r"\w+(\.\w+)*", experiment):
        raise ResultsError(f"{experiment!r} cannot name an experiment; use e.g. 'lgfedavg.mnist'")
    new = _checked(rows, f"rows for {experiment}")
    path = folder / f"{experiment}.csv"
    if new.empty:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        old = _read(path) if path.exists() else new.iloc[:0]
        _same_columns(old, new, path)
        ids = list(dict.fromkeys([*identifying(old), *identifying(new)]))
        both = pd.concat([old, new], ignore_index=True).reindex(columns=_FIRST + ids + _LAST)
        both = both.fillna("").drop_duplicates([c for c in both if c not in _NOT_KEY], keep="last")
        ordered = sorted(both.to_dict("records"), key=lambda row: _order(row, ids))
        text = pd.DataFrame(ordered).to_csv(index=False, lineterminator="\n")
        try:
            with replacing(path, locked=True) as part:
                part.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error}; it is as it was") from error
    return path


def load(experiment: str | Iterable[str] | None = None, folder: Path = RESULTS) -> pd.DataFrame:
    """The stored rows of one experiment, of several as far as there are any, or of all when None.

    ``seed`` is int, ``value`` and ``seconds`` are float, identifying columns are numbers where
    all their cells are. Raises ResultsError for a damaged file or one experiment never recorded.

    Where the environment names a file in ``LGFED_READS``, what was asked for is noted there: a page
    is executed again when its rows change (book/execute.py).
    """
    known = sorted(path.stem for path in folder.glob("*.csv"))
    if isinstance(experiment, str):
        if experiment not in known:
            raise ResultsError(
                f"no results of {experiment!r} in {folder}; there are: {', '.join(known) or 'none'}"
            )
        names = [experiment]
    else:
        names = known if experiment is None else list(experiment)
    if place := os.environ.get("LGFED_READS"):
        with open(place, "a", encoding="utf-8") as notes:
            notes.write("".join(f"{name}\n" for name in (names if experiment else ["*"])))
    files = [folder / f"{name}.csv" for name in names if name in known]
    rows = _joined(tuple(map(_version, files)))
    return cut.of(rows) if (cut := _CUT.get()) else rows.copy()


@dataclass
class Cut:
    """Rows of seeds below ``most`` alone; ``dropped``: whether that left out any so far."""

    most: int
    dropped: bool = False

    def of(self, rows: pd.DataFrame) -> pd.DataFrame:
        kept = rows[rows["seed"] < self.most]
        self.dropped |= len(kept) < len(rows)
        return kept.copy()


_CUT: ContextVar[Cut | None] = ContextVar("cut", default=None)


@contextmanager
def stopped_at(most: int) -> Iterator[Cut]:
    """What `load` and `select` read is as it was when ``most`` seeds (0, 1, ...) had run."""
    token = _CUT.set(cut := Cut(most))
    try:
        yield cut
    finally:
        _CUT.reset(token)


Version = tuple[Path, int, int, int]  # of a file: it, when it was written, its size, its inode


def _version(path: Path) -> Version:
    found = path.stat()
    return path, found.st_mtime_ns, found.st_size, found.st_ino


@lru_cache(maxsize=32)
def _joined(files: tuple[Version, ...]) -> pd.DataFrame:
    """The rows of these files, typed; read once while they stay as they are."""
    frames = [_once(file) for file in files]
    if not frames:
        return _EMPTY
    rows = pd.concat(frames, ignore_index=True)
    ids = identifying(rows)
    for column in ids:
        filled = rows[column].fillna("")
        if all(text == "" or _NUMBER.fullmatch(text) for text in filled.unique()):
            rows[column] = pd.to_numeric(filled.replace("", np.nan))
        else:
            rows[column] = filled
    return rows[_FIRST + ids + _LAST].astype(_TYPES)


@lru_cache(maxsize=64)
def _once(file: Version) -> pd.DataFrame:
    return _read(file[0])


def select(
    rows: pd.DataFrame | str | Iterable[str] | None = None,
    *,
    columns: Iterable[str] = (),
    own: bool = False,
    folder: Path | None = None,
    **where: Any,
) -> pd.DataFrame:
    """The rows for which every column of ``where`` has the value given, or one of several given.

    rows: an experiment, or several, whose files alone are read; None for all; or rows that were
    read before.
    Values are compared as `plain` text, so that 2, 2.0 and "2" are the same; a column that rows
    lack is blank, e.g. ``stand_in=""`` on the paper's data. own: leave out rows on other data than
    the paper's, as soon as there are some on it. columns: are there in any case.

    folder: of the files, by default data/results. Empty where there are no such rows, and before
    an experiment was first recorded.
    """
    folder = folder or RESULTS
    if isinstance(rows, pd.DataFrame):
        found = rows
    else:
        found = load([rows] if isinstance(rows, str) else rows, folder)
    for column, wanted in where.items():
        several = isinstance(wanted, Iterable) and not isinstance(wanted, str)
        named = set(map(plain, wanted if several else [wanted]))
        if column in found:
            fits = [v for v in found[column].unique() if plain(v) in named]
            found = found[found[column].isin(fits)]
        elif "" not in named:
            found = found.iloc[:0]
    if lacking := [column for column in dict.fromkeys(columns) if column not in found]:
        found = found.reindex(columns=[*found, *lacking])
    papers = select(found, stand_in="") if own else found
    return found if papers.empty else papers


def texts(cells: pd.Series) -> pd.Series:
    """`plain` of every cell, each different one looked at once (but among mixed objects, of which
    True and 1 are equal)."""
    if cells.dtype == object:
        return cells.map(plain)
    codes, different = pd.factorize(cells, use_na_sentinel=False)
    said = np.array([plain(value) for value in different], object)
    return pd.Series(said[codes], cells.index, dtype=object, name=cells.name)


def stand_in(rows: pd.DataFrame) -> str:
    """The data that stand in for the paper's in these rows, by name; "" where none do."""
    return ", ".join(sorted({plain(name) for name in set(rows.get("stand_in", ()))} - {""}))


def plain(value: Any) -> str:
    """The text of an identifying cell: "2" for 2, 2.0 and "2.0"; "" for a missing one."""
    if isinstance(value, str):
        value = value.strip()
        if not _NUMBER.fullmatch(value):
            return value
    elif value is None or pd.isna(value):
        return ""
    elif isinstance(value, bool | np.bool_):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def _checked(rows: pd.DataFrame, where: str) -> pd.DataFrame:
    """``rows`` as text, columns in order. Raises ResultsError for the first thing wrong."""
    missing = [c for c in _FIRST + _LAST if c not in rows]
    if missing:
        raise ResultsError(
            f"{where}: no column {', '.join(missing)}; see lgfed_core.evidence.records"
        )
    rows = rows.reset_index(drop=True)

    def refuse(bad: pd.Series, column: str, wanted: str) -> None:
        if bad.any():
            n = int(bad.to_numpy().argmax())
            found = rows.loc[n, column]
            raise ResultsError(
                f"{where}: {column} is {found!r} in row {n + 1}; it must be {wanted}"
            )

    for column, allowed in _CHOICES.items():
        refuse(~rows[column].isin(allowed), column, "one of " + ", ".join(allowed))
    for column in ("table", "metric", "device", "torch", "commit"):
        refuse(~rows[column].map(lambda v: isinstance(v, str) and v.strip() != ""), column, "named")
    numbers = {c: pd.to_numeric(rows[c], errors="coerce") for c in ("seed", "value", "seconds")}
    refuse(~np.isfinite(numbers["value"]), "value", "a finite number")
    share = rows["metric"].str.contains(_PERCENT) & ~numbers["value"].between(0, 100)
    refuse(share, "value", "from 0 to 100 percent, as an accuracy or AUC")
    refuse(~(numbers["seconds"] >= 0), "seconds", "a number from 0")
    seed = numbers["seed"]
    refuse(
        ~(seed >= 0) | (seed % 1 != 0) | rows["seed"].map(lambda v: isinstance(v, bool)),
        "seed",
        "a whole number from 0",
    )
    refuse(
        rows["selection"].eq("best_test") & rows["protocol"].ne("as_released"),
        "selection",
        "last or best_val: only as_released may select on test data",
    )

    ids = identifying(rows)
    out = pd.DataFrame({c: texts(rows[c]) for c in [*_FIRST, *ids]}, dtype=str)
    for column in _LAST:
        out[column] = rows[column].astype(str)
    out["seed"] = [str(int(s)) for s in seed]
    out["value"] = [_digits(v) for v in numbers["value"]]
    out["seconds"] = [f"{v:.1f}" for v in numbers["seconds"]]
    twice = out.duplicated([c for c in out if c not in _NOT_KEY])
    if twice.any():
        n = int(twice.to_numpy().argmax())
        raise ResultsError(
            f"{where}: row {n + 1} repeats an earlier one: {_said(out.loc[n])}; "
            "a further identifying column must tell them apart"
        )
    return out


def _read(path: Path) -> pd.DataFrame:
    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:
        raise ResultsError(f"{path} cannot be read: {error}; `git checkout` restores it") from None
    return _checked(rows, str(path))


def _same_columns(old: pd.DataFrame, new: pd.DataFrame, path: Path) -> None:
    """Refuse rows that lack an identifying column which their table has in the file."""
    for table, rows in old.groupby("table"):
        used = [c for c in identifying(old) if rows[c].ne("").any() and c not in new]
        if used and new["table"].eq(table).any():
            raise ResultsError(
                f"{path}: rows of {table} are identified by {', '.join(used)}, "
                "which the new rows do not have"
            )


def identifying(rows: pd.DataFrame) -> list[str]:
    """The columns by which an experiment tells its rows apart: method, rounds, ..."""
    return [c for c in rows if c not in _FIRST and c not in _LAST]


def _said(row: pd.Series) -> str:
    return ", ".join(f"{c} {v}" for c, v in row.items() if c not in _NOT_KEY and v)


def _digits(value: float) -> str:
    value = float(value)
    return str(int(value)) if value.is_integer() else f"{value:.7g}"


def _order(row: dict[str, str], ids: list[str]) -> tuple:
    """A seed's rows stay together, so that a new seed is a block in a diff."""

    def natural(text: str) -> tuple:
        return (0, float(text), "") if _NUMBER.fullmatch(text) else (1, 0.0, text)

    columns = ["table", *ids, "scale", "protocol", "seed", "selection", "metric"]
    return tuple(natural(row[c]) for c in columns)
