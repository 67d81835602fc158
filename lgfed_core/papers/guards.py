"""Guards: what a finding in a page's prose hangs on, asked of the stored rows.

A finding is a Markdown cell tagged ``finding``; the cell after it, tagged ``guard``, reads stored
rows and calls `guard`. While the rows bear the finding out nothing is seen; when they have moved
the page says so, and tests/test_guards.py names the finding.
"""

from collections.abc import Callable

import pandas as pd

from lgfed_core.evidence.claims import paired
from lgfed_core.evidence.verdict import Evidence, greater

MOVED = "**The runs have moved since this was written**: the figures and tables below are right."


def guard(*conditions: Callable[[], bool]) -> bool:
    """Whether all conditions hold; where one does not, or cannot be asked, the page says so here.

    A condition is a function without arguments, so that rows which are missing are no error.
    """
    holds = all(map(_asked, conditions))
    if not holds:
        from IPython.display import Markdown, display

        display(Markdown(MOVED))
    return holds


def gap(a: pd.Series, b: pd.Series) -> Evidence:
    """a less b, values by seed, over the seeds that both have, with its 95 % interval."""
    return paired("", a, b, greater).evidence


def _asked(condition: Callable[[], bool]) -> bool:
    try:
        return bool(condition())
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return False
