"""Shared variances, by hand, and what their intervals promise, measured."""

import numpy as np
import pandas as pd
import pytest
from scipy import special

from lgfed_core.evidence import coverage, moderated, verdict
from lgfed_core.evidence.coverage import CAPPED, FREE, STUDENT
from toy import page

RUNS = [[1.0, 2.0, 4.0], [0.1, 0.2, 0.6], [5.0, 9.0, 2.0], [1.1, 1.2, 1.0]]


@pytest.fixture
def tests():
    return [verdict.greater(some) for some in RUNS]


def test_a_single_comparison_is_students_t(tests):
    assert moderated.shared(tests[:1]) == tests[:1]
    assert moderated.shared(tests[:2]) == tests[:2]


def test_the_prior_solves_smyths_equations(tests):
    sds, dfs = np.array([t.sd for t in tests]), np.array([t.df for t in tests])
    prior = moderated.fit(sds, dfs)
    z = np.log(sds**2)
    e = z - special.digamma(dfs / 2) + np.log(dfs / 2)
    excess = np.sum((e - e.mean()) ** 2) / 3 - special.polygamma(1, 1.0)  # trigamma(1) = pi^2 / 6
    assert special.polygamma(1, prior.df / 2) == pytest.approx(excess)
    expected = np.exp(e.mean() + special.digamma(prior.df / 2) - np.log(prior.df / 2))
    assert prior.variance == pytest.approx(expected)


def test_equal_variances_make_a_prior_without_end():
    prior = moderated.fit([2.0, 2.0, 2.0], [2, 2, 2])
    assert prior.df == np.inf
    # digamma(1) = -gamma: the mean of log s^2 of two degrees of freedom is log sigma^2 - gamma
    assert prior.variance == pytest.approx(4 * np.exp(np.euler_gamma))


def test_a_prior_counts_at_most_as_much_as_the_runs():
    prior = moderated.Prior(4.0, np.inf)
    assert prior.moderate(1.0, 2) == pytest.approx((np.sqrt((2 * 4 + 2 * 1) / 4), 4))
    assert prior.moderate(1.0, 2, cap=2) == pytest.approx((np.sqrt((4 * 4 + 2 * 1) / 6), 6))
    assert moderated.Prior(4.0, 1.0).moderate(1.0, 2) == pytest.approx((np.sqrt(6 / 3), 3))
    assert moderated.CAP == 1


def test_sharing_asks_the_same_test_with_another_deviation(tests):
    tests[:2] = verdict.greater(RUNS[0], by=0.5), verdict.equivalent(RUNS[1], 0.0, margin=3.0)
    asked = [dict(by=0.5), dict(margin=3.0), {}, {}]
    prior = moderated.fit([t.sd for t in tests], [t.df for t in tests])
    for before, after, how in zip(tests, moderated.shared(tests), asked, strict=True):
        sd, df = prior.moderate(before.sd, before.df)
        due = verdict.t_test(before.estimate, sd, df, before.factor, **how)
        assert after == due


def test_runs_that_agree_and_single_runs_take_no_part(tests):
    same, one = verdict.greater([1.0, 1.0, 1.0]), verdict.greater([1.0])
    *found, fifth, sixth = moderated.shared([*tests, same, one])
    assert found == moderated.shared(tests) and fifth is same and sixth is one


def test_what_intervals_of_normal_runs_hold_and_how_wide_they_are():
    found = page("judge").simulated(draws=300)
    student, capped, free = (found.xs(rule, level="rule") for rule in (STUDENT, CAPPED, FREE))
    assert student["coverage"].between(0.94, 0.96).all()
    assert (capped["coverage"] > 0.93).all() and (capped["width"] < 0.9).all()
    assert capped.loc[3, "width"] < 0.75
    assert (free["coverage"] < capped["coverage"]).all(), "without a cap too much is promised"
    assert (found["wrong"] < 0.025).all(), "a wrong sign is rare"


@pytest.mark.parametrize("spread", (0.0, 1.0))
def test_the_capped_rule_also_stands_families_that_are_alike_or_very_unlike(spread):
    capped = page("judge").simulated(spread=spread, draws=200).xs(CAPPED, level="rule")
    assert (capped["coverage"] > 0.92).all()


def test_a_mean_of_others_has_an_error_that_is_allowed_for():
    runs = np.random.default_rng(0).normal(size=(200, 12))
    found = coverage.stored({"some": runs}, draws=40)
    assert found.xs(STUDENT, level="rule")["coverage"].between(0.92, 0.98).all()


def test_the_next_seed_falls_where_those_before_it_say():
    runs = np.random.default_rng(1).normal(size=(2000, 10))
    found = page("judge").predicted({"some": runs}, (2, 3, 9))
    assert found[STUDENT].between(0.935, 0.965).all()
    assert (found["comparisons"] == 2000).all()


def test_without_a_difference_looking_three_times_errs_twice_as_often_as_once():
    """One look: 5 % for and 5 % against, which Holm keeps for several comparisons."""
    for comparisons in (1, 4):
        once, thrice = (
            coverage.told_without_cause(comparisons, steps, draws=2000)
            for steps in ((10,), (3, 5, 10))
        )
        assert 0.08 < once < 0.12 and 0.18 < thrice < 0.24


def test_families_are_paired_differences_of_methods(tmp_path):
    rng, rows = np.random.default_rng(2), []
    for setting in ("a", "b", "c"):
        for method in ("ours", "theirs"):
            rows += [
                {"table": "t", "setting": setting, "method": method, "seed": seed,
                 "value": rng.normal(), "metric": "acc", "protocol": "as_described",
                 "selection": "last"}
                for seed in range(10)
            ]  # fmt: skip
    rows = pd.DataFrame(rows)
    few = list(coverage._differences(rows, "method", 11))
    some = list(coverage._differences(rows, "method", 10))
    assert not few
    assert [name for name, _ in some] == ["t, acc, as_described, last"] * 3
    one = rows[rows["setting"] == "a"].pivot(index="seed", columns="method", values="value")
    np.testing.assert_allclose(some[0][1], one["ours"] - one["theirs"])
