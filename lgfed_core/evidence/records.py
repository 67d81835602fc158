"""Our numbers as tidy rows (`rows` has their form), one CSV per experiment under data/results.

A file may hold several tables; identifying columns that a table does not have stay blank.
"""

import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.files import locked, replacing, version
from lgfed_core.paths import CARRIED, RESULTS

from .rows import DIVERGED, FIRST, LAST, NOT_KEY, NUMBER, TYPES, checked, identifying, order, plain

_EMPTY = pd.DataFrame(columns=FIRST + LAST).astype(TYPES)
_SEEDS: ContextVar[float] = ContextVar("how many seeds are read", default=math.inf)


def writable(folder: Path = RESULTS) -> None:
    """Raise ResultsError where ``folder`` is a wheel's, whose rows are not to change, or cannot be
    written to."""
    if folder.is_relative_to(CARRIED):
        raise ResultsError(
            "the stored rows came with the wheel that lgfed_core was installed from, and are read "
            "alone; set LGFED_HOME to a folder of yours, and rows go to its data/results"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryFile(dir=folder),
            suppress(BlockingIOError),  # somebody else writes now
            locked(folder, wait=False),  # which not all file systems can
        ):
            pass
    except OSError as error:
        raise ResultsError(
            f"no row can be written to {folder}: {error.strerror}; set LGFED_HOME to a folder of "
            "yours, and rows go to its data/results"
        ) from error


def record(experiment: str, rows: pd.DataFrame, folder: Path = RESULTS) -> Path:
    """Put ``rows`` into ``folder``/``experiment``.csv and return that path.

    Rows that are there already with the same key (all columns except value, device, torch, commit
    and seconds) are replaced, and so is what a run of the same cell and seed has left otherwise: a
    curve with looks at other rounds, and numbers where it diverged now, or the note that it had
    diverged. The file is replaced as a whole and under a lock, so that neither a
    kill nor a second process loses rows. Raises ResultsError, and leaves the file as it was, when
    a row is malformed: a column missing, a value that is no finite number, an unknown scale,
    protocol or selection, a seed that is not a whole number, the same key twice.
    """
    folder = Path(folder)
    writable(folder)
    if not re.fullmatch(r"\w+(\.\w+)*", experiment):
        raise ResultsError(f"{experiment!r} cannot name an experiment; use e.g. 'lgfedavg.mnist'")
    new = checked(rows, f"rows for {experiment}")
    path = folder / f"{experiment}.csv"
    if new.empty:
        return path
    with locked(folder):
        old = _read(path) if path.exists() else new.iloc[:0]
        _same_columns(old, new, path)
        ids = list(dict.fromkeys([*identifying(old), *identifying(new)]))
        both = pd.concat([old, new], ignore_index=True).reindex(columns=FIRST + ids + LAST)
        both = _current(both.fillna(""), len(old))
        both = both.drop_duplicates([c for c in both if c not in NOT_KEY], keep="last")
        ordered = sorted(both.to_dict("records"), key=lambda row: order(row, ids))
        text = pd.DataFrame(ordered).to_csv(index=False, lineterminator="\n")
        try:
            with replacing(path, locked=True) as part:
                part.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error}; it is as it was") from error
    return path


def _current(both: pd.DataFrame, old: int) -> pd.DataFrame:
    """Without those of the first ``old`` rows that a later run of their cell does not have."""
    cell = [c for c in both if c not in NOT_KEY | {"metric", "round"}]
    of = pd.MultiIndex.from_frame(both[cell].astype(str))
    line = pd.MultiIndex.from_frame(both[[*cell, "metric"]].astype(str))
    new, lost = np.arange(len(both)) >= old, both["metric"] == DIVERGED
    curve = both["round"] != "" if "round" in both else pd.Series(False, both.index)
    gone = (curve & line.isin(line[new & curve])) | (~lost & of.isin(of[new & lost]))
    gone |= lost & of.isin(of[new & ~lost])
    run = pd.MultiIndex.from_frame(both[[c for c in cell if c not in ("table", "selection")]])
    gone |= ~lost & run.isin(run[new & lost])  # in whichever table
    return both[new | ~gone]


def load(experiment: str | Iterable[str] | None = None, folder: Path = RESULTS) -> pd.DataFrame:
    """The stored rows of one experiment, of several as far as there are any, or of all when None.

    ``seed`` is int, ``value`` and ``seconds`` are float, identifying columns are numbers where
    all their cells are. Raises ResultsError for a damaged file or one experiment never recorded.

    Where the environment names a file in ``LGFED_READS``, what was asked for is noted there: a page
    is executed again when its rows change (book/execute.py).
    """
    known = sorted(path.stem for path in Path(folder).glob("*.csv"))
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
    rows = _joined(tuple(map(version, files)))
    return rows[rows["seed"] < _SEEDS.get()].copy()


@contextmanager
def first_seeds(n: int) -> Iterator[None]:
    """In here rows are read as they were before any seed from ``n`` on had run."""
    before = _SEEDS.set(n)
    try:
        yield
    finally:
        _SEEDS.reset(before)


@lru_cache(maxsize=32)
def _joined(files: tuple[tuple, ...]) -> pd.DataFrame:
    """The rows of these files, typed; read once while they stay as they are."""
    frames = [_once(file) for file in files]
    if not frames:
        return _EMPTY
    rows = pd.concat(frames, ignore_index=True)
    ids = identifying(rows)
    for column in ids:
        filled = rows[column].fillna("")
        if all(text == "" or NUMBER.fullmatch(text) for text in filled.unique()):
            rows[column] = pd.to_numeric(filled.replace("", np.nan))
        else:
            rows[column] = filled
    return rows[FIRST + ids + LAST].astype(TYPES)


@lru_cache(maxsize=64)
def _once(file: tuple) -> pd.DataFrame:
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


def stand_in(rows: pd.DataFrame) -> str:
    """The data that stand in for the paper's in these rows, by name; "" where none do."""
    return ", ".join(sorted({plain(name) for name in set(rows.get("stand_in", ()))} - {""}))


def _read(path: Path) -> pd.DataFrame:
    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:
        raise ResultsError(f"{path} cannot be read: {error}; `git checkout` restores it") from None
    return checked(rows, str(path))


def _same_columns(old: pd.DataFrame, new: pd.DataFrame, path: Path) -> None:
    """Refuse rows that lack an identifying column which their table has in the file."""
    for table, rows in old.groupby("table"):
        used = [c for c in identifying(old) if rows[c].ne("").any() and c not in new]
        if used and new["table"].eq(table).any():
            raise ResultsError(
                f"{path}: rows of {table} are identified by {', '.join(used)}, "
                "which the new rows do not have"
            )
