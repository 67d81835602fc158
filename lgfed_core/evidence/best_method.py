"""Which of several methods are behind the best of them, where the best is picked on the same runs.

A paired interval between the highest mean and another is too narrow then: of nine equal methods and
three runs, somebody is called behind in about half of all tables. Tukey's studentized range holds
for whichever two methods are picked, and so for the highest and any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from lgfed_core.errors import ResultsError


def behind(values: ArrayLike, alpha: float = 0.05) -> NDArray:
    """Which methods are behind the one with the highest mean: values [n, k] -> bool [k].

    n runs that all k methods have, as blocks; what is left of a value without its run's and its
    method's mean is taken as noise of one size. Where all methods are equal, somebody is called
    behind in ``alpha`` of such tables. Fewer than two runs or methods show nothing. Raises
    ResultsError for another shape, or a NaN.
    """
    x = np.asarray(values, float)
    if x.ndim != 2 or np.isnan(x).any():
        raise ResultsError(
            f"values are {list(x.shape)}; they must be numbers [runs, methods], without NaN: leave "
            "out runs that not all methods have"
        )
    n, k = x.shape
    if n < 2 or k < 2:
        return np.zeros(k, bool)
    means = x.mean(0)
    rest = x - means - x.mean(1, keepdims=True) + x.mean()
    df = (n - 1) * (k - 1)
    reach = stats.studentized_range.ppf(1 - alpha, k, df) * np.sqrt((rest**2).sum() / df / n)
    return means.max() - means > max(reach, 1e-9)
