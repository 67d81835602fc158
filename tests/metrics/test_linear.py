"""A linear probe says nothing of representations that it cannot scale."""

import numpy as np

from lgfed_core.metrics.linear import linear_probe


def test_features_too_large_for_their_spread_to_be_told_have_no_probe():
    """float32 at 1e30: the spread overflows, and dividing by it would leave zeros, and chance."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    h = (y[:, None] + rng.normal(0, 0.1, (200, 3))).astype(np.float32)
    assert linear_probe(h, y, h, y)[0] > 0.95
    large = h * np.float32(1e30)
    assert np.isfinite(large).all() and np.isnan(linear_probe(large, y, large, y)).all()
