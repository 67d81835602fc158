"""Other data in the place of the paper's: which rows are on them, and verdicts that say so.

A row of results names such data in its column ``stand_in``; on the paper's own it is blank.
"""

import pandas as pd

from .records import plain
from .verdict import STAND_IN


def papers_own(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows on the paper's own data; all rows where there are none of these."""
    own = rows["stand_in"].map(plain) == ""
    return rows[own] if own.any() else rows


def names(rows: pd.DataFrame) -> str:
    """The data that stand in for the paper's, by name; "" where none do."""
    return ", ".join(sorted({plain(name) for name in rows["stand_in"]} - {""}))


def said(verdict: str, name: str) -> str:
    """The verdict, which says so where data called ``name`` stand in for the paper's."""
    return f"{STAND_IN} ({name}): {verdict}" if name else verdict
