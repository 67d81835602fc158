"""Daily records of people at home as windows of days: the pipeline of FADE's appendix B.3.

A table has a line per person and day: ``user`` (any text or number), ``day`` (a whole number; days
that lack are gaps), ``sex`` (F or M, the group), ``label`` (1 impaired, 0 not), and one number for
each variable, empty where it was not measured. ``linenum``, the line of walking sensors, may be a
name; ages, ``ageyrs``, become three bins.

``linenum`` and ``sex`` become one indicator per value; numbers go from -1 to 1; windows of seven
days follow each other without overlap, and those with many gaps are left out. Of all variables
those stay that tell most about the label (mutual information); with one of walking ``linenum`` too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lgfed_core.errors import DataError

NEEDED = ("user", "day", "sex", "label")
WALKING = ("numwalks", "meanws", "wsq3", "wscv", "wsstddev")
DAYS, MISSING = 7, 0.2  # of a window: its length, and the largest share of cells that may lack
LEAST = 4  # windows of a person


@dataclass(frozen=True)
class Windows:
    """x float32 [n, days, v] from -1 to 1; label, male [n] of 0 and 1; user [n]; names of the v."""

    x: NDArray
    label: NDArray
    male: NDArray
    user: NDArray
    names: tuple[str, ...]

    def of(self, users: Sequence) -> Windows:
        """Those of some users."""
        kept = np.isin(self.user, list(users))
        return Windows(self.x[kept], self.label[kept], self.male[kept], self.user[kept], self.names)


def _wrong(table: pd.DataFrame) -> Iterator[str]:
    """Whatever is wrong with a table, in words: columns that lack, a person's day given twice or no
    whole number, a line of nobody, another sex or label, a person of two sexes, text or infinity
    among numbers, a column without variation."""
    if lacking := [name for name in NEEDED if name not in table]:
        many = f"a line needs {', '.join(NEEDED)} and at least one variable"
        yield f"there is no column {', '.join(lacking)}; {many}"
    for name, known in (("sex", {"F", "M"}), ("label", {0, 1})):
        strange = sorted(set(table[name].dropna()) - known, key=str)
        if strange := strange or ["nothing"] * int(table[name].isna().any()):
            yield f"{name} is {strange[0]}; it must be one of {sorted(known)}"
    if (nobody := table["user"].isna().to_numpy()).any():
        yield f"column user is empty in row {int(nobody.argmax()) + 1}"
    day = pd.to_numeric(table["day"], errors="coerce").to_numpy(float)
    text = table["day"].map(lambda value: isinstance(value, str)).to_numpy(bool)
    if (wrong := text | ~np.isfinite(day) | (day % 1 != 0)).any():
        value = table["day"].iloc[int(wrong.argmax())]
        yield f"column day is {value} in {_first(table, wrong)}; days are whole numbers"
    if (mixed := (sexes := table.groupby("user")["sex"].nunique()) > 1).any():
        yield f"column sex has both F and M for user {sexes.index[mixed][0]}; a user has one"
    if (twice := table.duplicated(["user", "day"])).any():
        line = table[twice].iloc[0]
        yield f"user {line['user']} has day {line['day']} more than once"
    for name in numbers(table):
        if not pd.api.types.is_numeric_dtype(table[name]):
            yield f"column {name} holds text; variables are numbers"
        elif (endless := np.isinf(table[name].to_numpy(float))).any():
            yield f"column {name} is infinite in {_first(table, endless)}; leave the cell empty"
    if same := [n for n in [*numbers(table), "sex", "label"] if table[n].nunique() < 2]:
        more = "so that it tells nothing; leave the column out, or take more people"
        yield f"{', '.join(same)} never varies, {more}"


def _first(table: pd.DataFrame, wrong: NDArray) -> str:
    """The first ``wrong`` [n] line in words; rows are counted from 1, without the heading."""
    at = int(wrong.argmax())
    return f"row {at + 1}, of user {table['user'].iloc[at]}"


def numbers(table: pd.DataFrame) -> list[str]:
    """The variables that are numbers, ages among them."""
    return [name for name in table if name not in (*NEEDED, "linenum")]


def windows(table: pd.DataFrame, where: str = "the table", leave_out: bool = False) -> Windows:
    """Windows of `DAYS` days of each person, gaps within one filled from the day before.

    leave_out: people with fewer than `LEAST` windows, as the paper does; otherwise they raise a
    DataError that names them, as does the first thing that is wrong with the table.
    """
    if words := next(_wrong(table), ""):
        raise DataError(f"{where}: {words}")
    plain = _encoded(table)
    names = tuple(name for name in plain if name not in NEEDED)
    found, short = [], {}
    for user, days in plain.groupby("user", sort=True):
        own = _of_one(days.set_index("day").sort_index(), names)
        if len(own) < LEAST:
            short[user] = len(own)
        else:
            found += [(*window, user) for window in own]
    if short and not (leave_out and found):
        few = ", ".join(f"{user} ({n})" for user, n in list(short.items())[:5])
        raise DataError(
            f"{where}: {len(short)} people have fewer than {LEAST} windows of {DAYS} days with at "
            f"most {MISSING:.0%} of the cells empty: {few}; leave them out, or record longer"
        )
    x, label, male, user = zip(*found, strict=True)
    return Windows(np.stack(x), np.array(label), np.array(male), np.array(user), names)


def _encoded(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers from -1 to 1, ages in three bins, indicators of line and sex; NaN stays NaN."""
    out = table[list(NEEDED)].copy()
    for name in numbers(table):
        values = table[name].astype(float)
        if name == "ageyrs":
            values = pd.qcut(values, 3, labels=False, duplicates="drop").astype(float)
        low, high = values.min(), values.max()
        out[name] = (2 * (values - low) / (high - low) - 1) if high > low else 0.0
    for name in ("sex", *(["linenum"] if "linenum" in table else [])):
        for value in sorted(table[name].dropna().unique(), key=str):
            out[f"{name}={value}"] = (table[name] == value).astype(float).where(table[name].notna())
    return out


def _of_one(days: pd.DataFrame, names: Sequence[str]) -> list[tuple]:
    """(x [days, v], label, male) of each window of one person; ``days`` is indexed by day."""
    whole = days.reindex(range(int(days.index.min()), int(days.index.max()) + 1))
    n = len(whole) // DAYS
    whole = whole.iloc[: n * DAYS]
    x, week = whole[list(names)].astype(np.float32), np.arange(n * DAYS) // DAYS
    full = x.groupby(week).ffill().groupby(week).bfill().fillna(0)  # the day before, after, or 0
    x, full = (part.to_numpy().reshape(n, DAYS, len(names)) for part in (x, full))
    label, sex = (whole[name].to_numpy().reshape(n, DAYS) for name in ("label", "sex"))
    last = DAYS - 1 - pd.notna(label)[:, ::-1].argmax(1)  # the day of a window's diagnosis
    return [
        (x_, int(label[i, last[i]]), int(sex[i, last[i]] == "M"))
        for i, x_ in enumerate(full)
        if not np.isnan(x[i]).mean() > MISSING
    ]


def telling(some: Windows, keep: int) -> list[str]:
    """The ``keep`` variables whose means over a window have most mutual information with the label;
    all indicators of ``linenum`` as soon as one of walking is among them."""
    from sklearn.feature_selection import mutual_info_classif  # slow to import

    told = mutual_info_classif(some.x.mean(1), some.label, random_state=0)
    best = {some.names[i] for i in np.argsort(-told, kind="stable")[:keep]}
    lines = [n for n in some.names if n.startswith("linenum=")] if best & set(WALKING) else []
    return [n for n in some.names if n in best or n in lines]


def narrowed(some: Windows, names: Sequence[str]) -> Windows:
    """``some`` with these variables alone."""
    at = [some.names.index(name) for name in names]
    return Windows(some.x[:, :, at], some.label, some.male, some.user, tuple(names))


def chosen(some: Windows, men: int, women: int) -> tuple[list, list]:
    """(users to train with, users left out): of each sex those with most windows, the two classes
    in equal parts as far as there are such people. Raises DataError where too few are there."""
    lines = pd.DataFrame({"user": some.user, "male": some.male, "label": some.label})
    people = lines.groupby("user").agg(
        male=("male", "last"), label=("label", "last"), n=("label", "size")
    )
    taken: list = []
    for male, wanted, what in ((1, men, "men"), (0, women, "women")):
        own = people[people["male"] == male].sort_values("n", ascending=False, kind="stable")
        if len(own) <= wanted:
            raise DataError(
                f"{len(own)} {what} have enough windows; {wanted} are trained with, and at least "
                "one more is left out to test on"
            )
        rank = own.groupby("label").cumcount()  # in turns, one of each class
        taken += own.assign(rank=rank).sort_values("rank", kind="stable").index[:wanted].tolist()
    return taken, [user for user in people.index if user not in set(taken)]
