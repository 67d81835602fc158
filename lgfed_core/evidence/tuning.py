"""Tuning: which value of a setting validation rows choose of those that were tried."""

from collections.abc import Sequence
from typing import Any

import pandas as pd


def best_setting(scores: pd.Series, usual: Any = None) -> Any:
    """The setting with the highest score on validation rows; scores: by setting, in ascending
    order.

    Of equals it is the ``usual`` one where that is among them, and the first otherwise; where
    nothing was tried, the usual one.
    """
    if scores.empty:
        return usual
    equals = scores.index[scores == scores.max()]
    return usual if usual is not None and usual in equals else scores.idxmax()


def best_by_cell(
    runs: pd.DataFrame, by: str, setting: str, cell: Sequence[str], digits: int | None = None
) -> pd.Series:
    """The best value of a ``setting`` in each cell, by the number ``by`` on validation rows.

    Of the values that have run for most seeds, those that diverged (a NaN) in fewest; of these the
    one with the highest mean over seeds, of equals the smallest. runs: a line per cell, value and
    seed, all of them in the index. digits: means that agree to so many are equal; None: to the bit.
    """
    lines = runs.assign(lost=runs[by].isna()).groupby(level=[*cell, setting])
    found = lines.agg(seeds=("lost", "size"), lost=("lost", "sum"), mean=(by, "mean"))
    if digits is not None:
        found = found.assign(mean=found["mean"].round(digits))
    order = ["seeds", "lost", "mean", setting]
    found = found.reset_index(setting).sort_values(order, ascending=[False, True, False, True])
    return found.groupby(level=list(cell))[setting].first()
