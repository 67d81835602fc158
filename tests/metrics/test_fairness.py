"""Fairness metrics against fairlearn and scikit-learn, probes against signals that are there."""

import numpy as np
import pytest
import torch
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference
from sklearn.metrics import roc_auc_score

from lgfed_core.errors import SettingsError
from lgfed_core.metrics import fairness
from lgfed_core.metrics.fairness import auc, delta_eo, demographic_parity, equalised_odds
from lgfed_core.metrics.linear import linear_probe
from lgfed_core.metrics.probes import KINDS, probe

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("levels", [None, 4])
def test_auc_is_scikit_learns_ties_included(levels):
    labels = RNG.integers(0, 2, (3, 200))
    scores = RNG.random((3, 200)) + 0.2 * labels
    if levels:
        scores = np.floor(levels * scores)
    wanted = [roc_auc_score(y, s) for y, s in zip(labels, scores, strict=True)]
    assert auc(scores, labels) == pytest.approx(wanted)
    assert auc([1, 1, 1], [0, 1, 1]) == 0.5
    assert np.isnan(auc([0.1, 0.2], [1, 1]))


@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_fairlearns(seed):
    rng = np.random.default_rng(seed)
    group, labels = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    decisions = (rng.random(300) < 0.3 + 0.3 * labels + 0.2 * group).astype(int)
    assert demographic_parity(decisions, group) == pytest.approx(
        demographic_parity_difference(labels, decisions, sensitive_features=group)
    )
    assert equalised_odds(decisions, labels, group) == pytest.approx(
        equalized_odds_difference(labels, decisions, sensitive_features=group)
    )
    mean = equalized_odds_difference(labels, decisions, sensitive_features=group, agg="mean")
    assert delta_eo(decisions, labels, group) == pytest.approx(2 * mean)


def test_gaps_by_hand():
    group = [0, 0, 0, 0, 1, 1, 1, 1]
    labels = [0, 0, 1, 1, 0, 0, 1, 1]
    assert demographic_parity(labels, group) == 0
    assert equalised_odds([0, 0, 1, 1, 1, 1, 1, 1], labels, group) == 1
    with pytest.raises(SettingsError, match="class 1 of group 1"):
        equalised_odds([0, 1, 0], [0, 1, 0], [0, 0, 1])
    with pytest.warns(RuntimeWarning, match="no row of class 1 of group 0"):
        assert np.isnan(delta_eo([0, 1, 0], [0, 1, 0], [0, 1, 1]))


def test_a_label_leaks_by_half_the_gap_of_its_shares():
    group = np.repeat([0, 1], 100)
    labels = np.concatenate([np.arange(100) < 10, np.arange(100) < 30]).astype(int)
    assert fairness.label_leak(labels, group) == pytest.approx(0.5 + (0.3 - 0.1) / 2)
    assert fairness.label_leak(labels, 1 - group) == pytest.approx(0.6)


def test_probes_find_what_is_there_and_nothing_else():
    rng = torch.Generator().manual_seed(0)
    h = torch.randn(3, 2000, 4, generator=rng)
    h[1] = 0 * h[1]  # an encoder that says nothing
    groups = torch.stack([h[0, :, 0] > 0, h[0, :, 1] * h[0, :, 2] > 0], 1).long()
    found = probe(h, groups, 1200)
    assert set(found) == set(KINDS)
    assert all(found[kind][0, 0] > 0.97 for kind in KINDS)
    assert found["logistic"][0, 1] < 0.6, "not linear"
    assert found["trees"][0, 1] > 0.9 and found["network"][0, 1] > 0.9
    for kind in KINDS:
        assert found[kind][1] == pytest.approx([0.5, 0.5], abs=1e-6)
        assert np.abs(found[kind][2] - 0.5).max() < 0.08, "a third encoder, of other numbers"
    groups[1200:] = 1
    with pytest.raises(SettingsError, match="every group"):
        probe(h, groups, 1200)


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
