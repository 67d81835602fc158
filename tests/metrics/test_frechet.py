"""Fréchet distance and Gamma against closed forms, and where general matrix roots fail."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import sqrtm

from lgfed_core.errors import PartitionError, SettingsError
from lgfed_core.metrics import frechet


def random_covariance(d: int, seed: int) -> np.ndarray:
    a = np.random.default_rng(seed).normal(size=(d, d + 2))
    return a @ a.T / d


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 6), scale=st.floats(0.1, 10))
def test_closed_forms(seed, d, scale):
    """Commuting covariances: sum of (sqrt l_i - sqrt m_i)^2; a multiple: (sqrt c - 1)^2 Tr S."""
    rng = np.random.default_rng(seed)
    mean, basis = rng.normal(size=(2, d)), np.linalg.qr(rng.normal(size=(d, d)))[0]
    l1, l2 = rng.uniform(0, 5, size=(2, d))
    s1, s2 = (basis * l1) @ basis.T, (basis * l2) @ basis.T
    expected = ((mean[0] - mean[1]) ** 2).sum() + ((np.sqrt(l1) - np.sqrt(l2)) ** 2).sum()
    assert frechet.gaussians(mean[0], s1, mean[1], s2) == pytest.approx(expected, abs=1e-8)
    s = random_covariance(d, seed)
    found = frechet.gaussians(mean[0], s, mean[0], scale * s)
    assert found == pytest.approx((np.sqrt(scale) - 1) ** 2 * np.trace(s), abs=1e-8)
    assert frechet.gaussians(mean[0], s, mean[0], s) == pytest.approx(0, abs=1e-8)


def test_agrees_with_the_matrix_root_where_that_is_real():
    s1, s2 = random_covariance(5, 1), random_covariance(5, 2)
    root = sqrtm(s1 @ s2)
    expected = np.trace(s1 + s2 - 2 * root.real)
    assert frechet.gaussians(np.zeros(5), s1, np.zeros(5), s2) == pytest.approx(expected)


@pytest.mark.parametrize("n, m", [(6, 9), (40, 7), (50, 60)])
def test_samples_are_gaussians_with_their_moments(n, m):
    """Fewer rows than the 12 dimensions on one side, on both, on none."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 12)), 2 * rng.normal(size=(m, 12)) + 1
    moments = x.mean(0), np.cov(x.T), y.mean(0), np.cov(y.T)
    found = frechet.samples(x, y)
    assert found == pytest.approx(frechet.gaussians(*moments), rel=1e-7)
    assert found == pytest.approx(frechet.samples(y, x), rel=1e-12)
    assert frechet.samples(3 * x, 3 * y) == pytest.approx(9 * found, rel=1e-9)


def test_gamma_is_the_mean_distance_of_each_client_to_the_rest():
    rng = np.random.default_rng(0)
    x, client = rng.normal(size=(90, 3)), np.repeat([0, 1, 2], 30)
    x[client == 2] += 10
    each = frechet.per_client(x, client)
    assert each[2] == pytest.approx(frechet.samples(x[60:], x[:60]))
    assert frechet.heterogeneity(x, client) == pytest.approx(np.mean(list(each.values())))
    assert each[2] > 2 * each[0]
    mixed = rng.permutation(client)
    assert frechet.heterogeneity(x, mixed) < 0.1 * frechet.heterogeneity(x, client)


def test_what_has_no_distance_is_said():
    x = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(PartitionError, match="one client"):
        frechet.heterogeneity(x, np.zeros(9))
    with pytest.raises(PartitionError, match="client 4 has a single row"):
        frechet.heterogeneity(x, [1] * 8 + [4])
    with pytest.raises(PartitionError, match="client numbers for 9 rows"):
        frechet.heterogeneity(x, [1, 2])
    with pytest.raises(SettingsError, match="single row"):
        frechet.samples(x[:1], x)
    with pytest.raises(SettingsError, match=r"shape \(9,\)"):
        frechet.samples(x[:, 0], x)
    with pytest.raises(SettingsError, match="eigenvalue"):
        frechet.gaussians([0], [[-1]], [0], [[1]])


def test_many_rows_give_the_same_by_moments(monkeypatch):
    """A client with fewer rows than dimensions, dead dimensions, a mean far from zero."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 20)) @ rng.normal(size=(20, 20)) + 50
    x[:, 5] = 7.0
    client = rng.permutation(np.repeat([0, 1, 2, 3], [10, 90, 140, 160]))
    x[client == 2] += rng.normal(size=20)
    found = frechet.per_client(x, client)
    monkeypatch.setattr(frechet, "MANY", np.inf)
    expected = frechet.per_client(x, client)
    assert found == pytest.approx(expected, rel=1e-6) and found != expected
