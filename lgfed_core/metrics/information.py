"""What one variable tells about another, of laws on finitely many values, in nats."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, xlogy

from lgfed_core.errors import SettingsError


def entropy(law: ArrayLike) -> float:
    """H of a law of any shape. Raises SettingsError unless it is one, and sums to 1."""
    law = _law(law)
    return float(-xlogy(law, law).sum())


def information(law: ArrayLike) -> float:
    """I(A; B) of a joint law [a, b]. Raises SettingsError unless it is one, and sums to 1."""
    law = _law(law)
    if law.ndim != 2:
        raise SettingsError(f"a law of shape {list(law.shape)}; one of two variables is [a, b]")
    apart = law.sum(1, keepdims=True) * law.sum(0, keepdims=True)
    return max(0.0, float(rel_entr(law, apart).sum()))


def _law(law: ArrayLike) -> NDArray:
    law = np.asarray(law, float)
    if not law.size:
        raise SettingsError("a law on no values; give shares from 0 that sum to 1")
    if not ((law >= 0).all() and abs(law.sum() - 1) < 1e-6):
        raise SettingsError(
            f"a law from {law.min():g} to {law.max():g} that sums to {law.sum():g}; give shares "
            "from 0 that sum to 1, e.g. counts over their sum"
        )
    return law
