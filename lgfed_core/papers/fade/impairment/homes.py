"""Daily records of people at home as windows of days: the pipeline of FADE's appendix B.3.

A table has a line per person and day: ``user``, ``day`` (a whole number; days that lack are gaps),
``sex`` (F or M, the group), ``label`` (1 impaired, 0 not), and one number for each variable, empty
where it was not measured. ``linenum``, the line of walking sensors, may be a
name; ``ageyrs`` are ages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


def windows(table: pd.DataFrame) -> Windows:
    """Windows of `DAYS` days of each person, one after the other, gaps within one filled from the
    day before. Windows with many gaps (`MISSING`) are left out, and people with fewer than `LEAST`
    windows, as in the paper."""
    plain = _encoded(table)
    names = tuple(name for name in plain if name not in NEEDED)
    found = []
    for user, days in plain.groupby("user", sort=True):
        own = _of_one(days.set_index("day").sort_index(), names)
        found += [(*window, user) for window in own] if len(own) >= LEAST else []
    x, label, male, user = zip(*found, strict=True)
    return Windows(np.stack(x), np.array(label), np.array(male), np.array(user), names)


def _encoded(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers from -1 to 1, ages in three bins, indicators of line and sex; NaN stays NaN."""
    out = table[list(NEEDED)].copy()
    for name in (n for n in table if n not in (*NEEDED, "linenum")):
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
    return replace(some, x=some.x[:, :, at], names=tuple(names))


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
