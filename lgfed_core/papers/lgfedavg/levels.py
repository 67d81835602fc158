"""Had a curve levelled? What its last rounds have, beside as many before them."""

import pandas as pd


def ends(wide: pd.DataFrame, of: int = 4) -> tuple[pd.Series, pd.Series]:
    """Means by column of the last 1/``of`` of the looks, and of as many looks before those.

    wide: index round, ascending. Means, as one look's cohort moves a curve by more than its trend.
    """
    n = max(1, len(wide) // of)
    return wide.iloc[-n:].mean(), wide.iloc[-2 * n : -n].mean()
