"""What is worked out of one table of rows, kept for as long as that table is there."""

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

import pandas as pd


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function(rows, *more)`` worked out once for each table of rows and each ``more``.

    A table is known by being the same object: rows are never changed in place here. What comes
    back is shared between callers, who leave it as it is.
    """
    kept: dict[int, dict[tuple, Any]] = {}

    @wraps(function)
    def known(rows: pd.DataFrame, *more: Any) -> Any:
        place = id(rows)
        if place not in kept:
            kept[place] = {}
            weakref.finalize(rows, kept.pop, place, None)
        found = kept[place]
        if more not in found:
            found[more] = function(rows, *more)
        return found[more]

    return known
