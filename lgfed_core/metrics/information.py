"""What one variable tells about another, of laws on finitely many values, in nats."""

from numpy.typing import NDArray
from scipy.special import rel_entr, xlogy


def entropy(law: NDArray) -> float:
    """H of a law of any shape that sums to 1."""
    return float(-xlogy(law, law).sum())


def information(law: NDArray) -> float:
    """I(A; B) of a joint law [a, b]."""
    apart = law.sum(1, keepdims=True) * law.sum(0, keepdims=True)
    return max(0.0, float(rel_entr(law, apart).sum()))
