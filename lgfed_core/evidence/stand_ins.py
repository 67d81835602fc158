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


def tell(papers: str, stand_in: str, name: str = "") -> None:
    """Say in a notebook what stands in for ``papers``; the book repeats it under the page's title.

    name: of the set in data/sources.toml, so that the book runs the page again when it is there.
    """
    from IPython.display import display

    said = f"stands in for {papers}: {stand_in or 'nothing, these are the data themselves'}"
    note = {"stand_in": {"papers": papers, "stand_in": stand_in, "set": name}} if stand_in else {}
    display({"text/plain": said}, raw=True, metadata=note)
