"""FADE's theory: by hand, by brute force, by finite differences, on random laws."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lgfed_core.errors import SettingsError
from lgfed_core.papers.fade.theory import claims, closed_form as tf, user_collapse
from lgfed_core.papers.fade.theory.user_collapse import CONDITIONS, gap, line

ALONE, CDAN, NOISY, TRUE = CONDITIONS
weights = st.floats(0.01, 3)
seeds = st.integers(0, 10_000)
few = settings(max_examples=25, deadline=None)


def pair(seed, k=4):
    return np.random.default_rng(seed).dirichlet(np.ones(k), 2)


# Theorem 4.1


def test_of_the_panels_of_the_minimum_the_first_alone_has_weights_that_sum_to_one():
    meet = [tf.printed_minimum(*a) == pytest.approx(tf.minimum(*a)) for a in tf.PAIRS[1:]]
    assert meet == [True, False, False]  # the page says where the two lines lie apart


def test_minimum_by_hand():
    assert tf.minimum(1, 1) == pytest.approx(-2 * np.log(2))
    assert tf.printed_minimum(1, 1) == pytest.approx(2 * np.log(2))
    assert tf.minimum(0.3, 0.9) == pytest.approx(0.3 * np.log(0.25) + 0.9 * np.log(0.75))
    apart = np.eye(2)  # no common value: told perfectly
    assert tf.discrepancy(*apart, 0.3, 0.9) == pytest.approx(0, abs=1e-15)
    D = tf.best_discriminator([0.5, 0.5], [0.25, 0.75], 1, 2)
    np.testing.assert_allclose(D, [0.5, 0.25])
    by_hand = 0.5 * np.log(0.5 * 0.25) + 2 * (0.25 * np.log(0.5) + 0.75 * np.log(0.75))
    assert tf.discrepancy([0.5, 0.5], [0.25, 0.75], 1, 2) == pytest.approx(by_hand)


@few
@given(seeds, weights, weights)
def test_discrepancy_is_the_most_and_lies_between_its_minimum_and_zero(seed, a1, a2):
    p1, p2 = pair(seed)
    most = tf.discrepancy(p1, p2, a1, a2)
    D = tf.best_discriminator(p1, p2, a1, a2)
    assert tf.objective(D, p1, p2, a1, a2) == pytest.approx(most)
    for _ in range(5):
        other = np.random.default_rng(seed).uniform(0.01, 0.99, 4)
        assert tf.objective(other, p1, p2, a1, a2) <= most + 1e-12
    assert tf.minimum(a1, a2) < most <= 1e-12
    assert tf.discrepancy(p2, p2, a1, a2) == pytest.approx(tf.minimum(a1, a2))
    s = a1 + a2
    wrong = tf.printed_minimum(a1, a2) - tf.minimum(a1, a2)
    assert wrong == pytest.approx(2 * s * np.log(s), abs=1e-12)


def test_descent_ends_where_the_groups_match():
    value, apart = tf.search_minimum(0.2, 1.5, rng=np.random.default_rng(3))
    assert value == pytest.approx(tf.minimum(0.2, 1.5)) and apart < 1e-6


# Theorem 4.2


@few
@given(seeds, st.floats(0.01, 4), st.floats(1e-4, 2), st.floats(0.5, 2))
def test_excess_is_bounded_and_two_points_are_the_worst(seed, eps, a1, a2):
    rng = np.random.default_rng(seed)
    p1, p2 = tf.within(eps, 5, rng)
    assert np.abs(np.log(p1 / p2)).max() <= eps + 1e-12
    excess = tf.excess(p1, p2, a1, a2)
    worst = tf.excess(*tf.two_point(eps), a1, a2)
    bound = min(a1, a2) * eps * np.tanh(eps / 2)
    assert excess <= worst + 1e-12 and worst <= bound + 1e-12
    assert bound <= min(a1, a2) * min(eps, eps**2 / 2)


def test_claims_f4_and_f5():
    printed, corrected = tf.claim_f4(), tf.claim_f4(tf.minimum)
    assert printed.estimate == pytest.approx(4 * np.log(2)) and printed.p_against == 0
    assert abs(corrected.estimate) < 1e-9 and corrected.p == 0
    assert tf.claim_f5().p_against == 0 and tf.claim_f5(tf.excess).p == 0
    assert tf.claim_f5(tf.excess).estimate == pytest.approx(np.tanh(1), rel=1e-3)
    assert tf.excess(*tf.two_point(0.5), 1e-6, 1) / 5e-7 == pytest.approx(np.tanh(0.25), rel=1e-4)


def test_the_ratio_of_f5_is_that_of_the_least_of_both_and_has_no_bound():
    def ratio(eps, a):
        return abs(tf.discrepancy(*tf.two_point(eps), a, 1 - a)) / (a * eps)

    eps, a = min(tf.EPSILONS), min(tf.SMALL)
    assert tf.claim_f5().estimate == pytest.approx(ratio(eps, a), rel=1e-3)
    assert ratio(eps / 100, a) == pytest.approx(100 * ratio(eps, a), rel=0.01)
    assert ratio(eps, a / 100) > ratio(eps, a) + 0.9 * np.log(100) / eps
    words = claims.CLAIMS[1].words
    assert f"ε = {eps:g}" in words and f"α₁ = {a:g}" in words


def test_the_answers_say_what_stored_rows_and_the_corrected_claims_say():
    told = claims.told()
    assert {k: one.words for k, one in told.items()} == {
        "F4": "does not hold",
        "F5": "does not hold",
        "F15": "does not hold",
    }
    assert all(one.stands() for one in told.values())
    assert [claims._beside(one) for one in claims.BESIDE] == ["as claimed"] * 4


# User collapse


def test_gaps_by_hand():
    assert [gap(line(u), ALONE) for u in (0, 0.3, 0.5, 1)] == pytest.approx([0] * 4, abs=1e-15)
    assert gap(line(0.5), TRUE) == pytest.approx(np.log(27 / 16))
    assert gap(line(0), TRUE) == pytest.approx(0, abs=1e-15)
    assert gap(line(1), TRUE) == pytest.approx(-tf.minimum(2, 1))  # no code in common
    assert user_collapse.information(line(0)) == pytest.approx(np.log(2))
    assert user_collapse.information(line(0.5)) == pytest.approx(0, abs=1e-15)
    assert user_collapse.accuracy(line(0.3)) == pytest.approx(0.7)


@few
@given(st.floats(0, 1), st.floats(0, 1))
def test_no_table_beats_the_least_gap_and_predictions_add_nothing(q0, q1):
    q = np.array([[1 - q0, q0], [1 - q1, q1]])
    collapsed = np.array([[1 - q0, q0]] * 2)
    assert gap(q, CDAN) == pytest.approx(gap(q, ALONE), abs=1e-12)
    for condition in CONDITIONS:
        assert gap(q, condition) >= user_collapse.least_gap(condition)[0] - 1e-9
        assert gap(collapsed, condition) >= gap(line(0.5), condition) - 1e-9


@pytest.mark.parametrize("right, accuracy", [(0.3, 0.0), (0.51, 1.0), (0.9, 1.0)])
def test_labels_better_than_chance_are_enough(right, accuracy):
    codes = user_collapse.least_gap(user_collapse.Condition("", labels=right))[1]
    assert user_collapse.accuracy(codes) == pytest.approx(accuracy)


def test_claim_f15():
    assert user_collapse.claim_f15(TRUE).p == 0 and user_collapse.claim_f15(NOISY).p == 0
    assert user_collapse.claim_f15(TRUE).estimate == pytest.approx(np.log(27 / 16))
    assert user_collapse.claim_f15().estimate == pytest.approx(0, abs=1e-12)
    assert user_collapse.claim_f15(ALONE).p_against == user_collapse.claim_f15(CDAN).p_against == 0
    coin = user_collapse.Condition("coin", labels=0.5)
    assert user_collapse.claim_f15(coin).p_against == 0


def test_requests_that_cannot_be_met():
    uneven, half = [0.3, 0.3], [0.5, 0.5]
    for message, request in {
        "sum to 1": lambda: tf.excess(uneven, half, 1, 1),
        "expected": lambda: tf.excess([1.0], half, 1, 1),
        "never comes": lambda: tf.excess(half, half, 0, 1),
        "neither group": lambda: tf.best_discriminator([1, 0], [1, 0], 1, 1),
        r"lies in \[0, 1\]": lambda: gap(line(0), user_collapse.Condition("", labels=1.2)),
    }.items():
        with pytest.raises(SettingsError, match=message):
            request()
