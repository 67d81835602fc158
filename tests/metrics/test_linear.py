"""A linear probe says nothing of representations that it cannot scale."""

import numpy as np
import pytest

from lgfed_core.metrics.linear import linear_probe
from lgfed_core.metrics.probes import probe


def test_features_too_large_for_their_spread_to_be_told_have_no_probe():
    """float32 at 1e30: the spread overflows, and dividing by it would leave zeros, and chance."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    h = (y[:, None] + rng.normal(0, 0.1, (200, 3))).astype(np.float32)
    assert linear_probe(h, y, h, y)[0] > 0.95
    large = h * np.float32(1e30)
    assert np.isfinite(large).all() and np.isnan(linear_probe(large, y, large, y)).all()


@pytest.mark.parametrize("size", [1e-30, 1e-7, 1.0, 1e7])
def test_how_large_features_are_does_not_matter(size):
    """And a unit that is silent, or constant up to rounding, stays out."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    h = np.column_stack(
        [y + rng.normal(0, 0.8, 300), np.zeros(300), np.full(300, 0.1) * (1 + 1e-9 * y)]
    )
    usual = linear_probe(h, y, h, y)
    assert 0.6 < usual[0] < 0.9, "the constant unit would tell all"
    assert linear_probe(h * size, y, h * size, y) == pytest.approx(usual)


@pytest.mark.parametrize("size", [1e-7, 1e4])
def test_how_large_features_are_does_not_matter_to_any_probe(size):
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 2, (400, 1))
    h = (groups + rng.normal(0, 0.8, (400, 3))).astype(np.float32)[None]
    usual, scaled = (probe(h * np.float32(f), groups, fit=250) for f in (1.0, size))
    for kind, found in usual.items():
        assert found[0, 0] > 0.7
        assert scaled[kind] == pytest.approx(found, abs=0.02), kind
