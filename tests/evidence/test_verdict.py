"""Verdicts, and who is behind the best, against hand-computed numbers and scipy's own tests."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import comparison, verdict
from lgfed_core.evidence.verdict import behind


def test_interval_is_welchs():
    # ten runs whose population deviation is exactly 0.05, as a paper prints it
    paper = 98.2 + 0.05 * np.array([1, -1] * 5)
    ours = np.array([98.0, 98.3, 98.1])
    expected = stats.ttest_ind(ours, paper, equal_var=False).confidence_interval(0.95)
    found = comparison.compare(98.2, 0.05, 10, ours, floor=1.0)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.difference == pytest.approx(-1 / 15)
    assert found.margin == 1.0
    assert found.verdict == verdict.REPRODUCED


def test_printed_without_deviation_is_a_constant():
    # by hand: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.302653
    found = comparison.compare(1.5, None, None, [1, 2, 3], floor=1.0)
    assert (found.low, found.high) == pytest.approx((0.5 - 2.484138, 0.5 + 2.484138), abs=1e-5)
    same = comparison.compare(1.5, float("nan"), 10, [1, 2, 3], floor=1.0)
    assert same == found
    one_run = comparison.compare(1.5, 0.3, 1, [1, 2, 3], floor=1.0)
    assert one_run == found, "which has no deviation"
    wide = comparison.compare(1.5, 7.0, 10, [1, 2, 3], floor=1.0)
    assert (found.margin, wide.margin) == (1.0, 14.0), "twice the deviation, or the floor"


SHARP, CONSTANT = (0.1, 10), (None, None)  # prints of 50


@pytest.mark.parametrize(
    ("print_", "ours", "expected"),
    [
        (SHARP, [50.2, 50.3, 50.4], "reproduced"),
        (SHARP, [49.8, 49.7, 49.6], "reproduced"),
        (SHARP, [50.9, 51.0, 51.1], "inconclusive"),
        (SHARP, [50.0, 53.0, 47.0], "inconclusive"),  # wider than the margin on both sides
        (SHARP, [52.0, 52.1, 52.2], "differs"),
        (SHARP, [48.0, 47.9, 47.8], "differs"),
        (SHARP, [50.0], "inconclusive"),  # one run has no interval
        (SHARP, [], "not yet run"),
        (CONSTANT, [49.0] * 3, "reproduced"),  # off by the margin itself
        (CONSTANT, [51.0] * 3, "reproduced"),
        (CONSTANT, [50.5] * 2, "inconclusive"),  # two may be equal by chance
        (CONSTANT, [57.5] * 2, "inconclusive"),
        (SHARP, [50.5] * 2, "inconclusive"),
        (SHARP, [57.5] * 2, "inconclusive"),
    ],
)
@pytest.mark.filterwarnings("error")  # of a variance of one run, say
def test_verdict_is_where_the_interval_lies(print_, ours, expected):
    found = comparison.compare(50.0, *print_, ours, floor=1.0)
    assert (found.verdict, found.margin) == (expected, 1.0)
    assert np.isnan(found.low) == (len(ours) < 2)
    if print_ == CONSTANT:
        assert found.low == found.high == ours[0] - 50


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ([55_723_888_000], "reproduced"),  # 5.6e10 in the digits printed
        ([56_499_999_999, 55_500_000_001], "reproduced"),
        ([56_600_000_000], "differs"),
        ([55_723_888_000, 57_000_000_000], "differs"),  # all runs have to agree
        ([], "not yet run"),
    ],
)
def test_counted_numbers_are_compared_in_printed_digits(ours, expected):
    found = comparison.compare_exact(5.6e10, 1e9, ours)
    assert (found.verdict, found.margin) == (expected, 5e8)
    far = comparison.compare_exact(5.6e10, 1e9, [5.6e10, 5.9e10])
    assert (far.low, far.high) == (0.0, 3e9)


def test_welch_broadcasts_and_matches_single_calls():
    difference, a, b = np.array([0.0, 1.0, 2.0]), np.array([0.1, 0.0, 0.0]), [[0.2], [0.0]]
    low, high = comparison.welch(difference, a, 9, b, 2)
    assert low.shape == (2, 3)
    one = comparison.welch(1.0, 0.0, 9, 0.2, 2)
    assert (low[0, 1], high[0, 1]) == pytest.approx(one)
    assert (low[1, 2], high[1, 2]) == (2.0, 2.0)  # no variance at all


RUNS = np.array([[91.0, 90.1], [92.2, 91.0], [90.5, 90.2], [91.7, 90.4]])


def test_greater_is_the_paired_t_test():
    a, b = RUNS.T
    found = verdict.greater(a, b)
    expected = stats.ttest_rel(a, b, alternative="greater")
    assert found.p == pytest.approx(expected.pvalue)
    assert found.p_against == pytest.approx(1 - expected.pvalue)
    interval = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    shifted = verdict.greater(a, b, by=0.5)
    for p, side in ((shifted.p, "greater"), (shifted.p_against, "less")):
        assert p == pytest.approx(stats.ttest_1samp(a - b, 0.5, alternative=side).pvalue)
    far = verdict.greater([1.0, 1.1, 0.9], by=5.0)
    assert verdict.judge({"X": far})["verdict"].item() == verdict.REFUTED


def test_equivalent_is_two_one_sided_tests():
    a, b = RUNS.T

    def p(side, at):
        return stats.ttest_1samp(a - b, at, alternative=side).pvalue

    for margin in (0.5, 2.0):
        found = verdict.equivalent(a, b, margin)
        assert found.p == pytest.approx(max(p("greater", -margin), p("less", margin)))
        beyond = min(p("greater", margin), p("less", -margin))
        assert found.p_against == pytest.approx(min(1, 2 * beyond))


def test_one_run_decides_nothing():
    for found in (verdict.greater([99.0], [1.0]), verdict.equivalent([1.0], [1.0], 5.0)):
        assert (found.p, found.p_against) == (1.0, 1.0)


def test_runs_without_spread():
    assert verdict.greater([2.0] * 3, [1.0] * 3).p == pytest.approx(0.01)
    assert verdict.greater([1.0] * 3, [1.0] * 3).p == 1.0
    tied = verdict.greater([2.0, 2.0], [1.0, 1.0])  # two counts may be equal by chance
    assert (tied.p, tied.p_against) == (pytest.approx(0.1), 1.0)
    assert verdict.greater([2.0, 2.0 + 4e-16, 2.0], [1.0] * 3).p == pytest.approx(0.01)
    rounded = verdict.greater([0.3] * 3, [0.1 + 0.2] * 3)
    assert (rounded.p, rounded.p_against) == (1.0, 1.0)


def test_a_pair_with_a_missing_run_is_none():
    a, b, gap = [3.0, 4.1, 5.0, 9.0], [1.0, 2.0, 3.1, np.nan], 1.5
    assert verdict.greater(a, b) == verdict.greater(a[:3], b[:3])
    assert verdict.equivalent(a, b, gap) == verdict.equivalent(a[:3], b[:3], gap)


@pytest.mark.parametrize("turn", [1, -1])
def test_a_comparison_that_has_not_run_confirms_nothing(turn):
    good = verdict.greater([2.0, 2.1, 2.2], [1.0, 1.0, 1.0])
    missing = verdict.greater([2.0, np.nan], [np.nan, 1.0])
    found = verdict.judge({"both": verdict.every([good, missing][::turn])})
    assert found["verdict"].item() == verdict.INCONCLUSIVE


def test_rising_takes_a_slope_per_run():
    """And of runs that share rows they do not add up."""
    x = [2, 3, 4, 5, 10]
    y = np.array([[5, 4, 4, 3, 0], [6, 4, 3, 3, 1], [5, 5, 4, 2, 0.5]], float)
    slopes = [stats.linregress(x, run).slope for run in y]
    found = verdict.rising(x, -y)
    assert found.estimate == pytest.approx(-np.mean(slopes))
    assert found.p == pytest.approx(stats.ttest_1samp(slopes, 0, alternative="less").pvalue)
    one, two = verdict.rising(x, y, shared=0.5), verdict.greater(slopes, shared=0.5)
    assert (one.low, one.high, one.p) == pytest.approx((two.low, two.high, two.p))


def test_holm_by_hand():
    found = verdict.holm([0.01, 0.04, 0.03, 0.005])
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_none_and_bonferroni(p):
    found = verdict.holm(p)
    assert (found >= np.array(p)).all()
    assert (found <= np.minimum(len(p) * np.array(p), 1)).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()


def test_every_needs_all_and_falls_by_one():
    good, weak, bad = (verdict.Evidence(0, 0, 0, *p) for p in ((0.01, 1), (0.3, 0.7), (1, 0.004)))
    assert verdict.every([good, weak]).p == 0.3
    assert verdict.every([good, weak, bad]).p_against == pytest.approx(0.012)


def test_judge_corrects_over_the_claims_of_a_paper():
    evidence = verdict.Evidence
    claims = {
        "L1": evidence(1.0, 0.5, 1.5, 0.001, 0.999),
        "L2": evidence(-1.0, -1.5, -0.5, 0.999, 0.001),
        "L3": evidence(0.4, 0.0, 0.8, 0.03, 0.97),  # confirmed alone, not among three
    }
    found = verdict.judge(claims)
    assert found["verdict"].to_dict() == {"L1": "confirmed", "L2": "refuted", "L3": "inconclusive"}
    assert found.loc["L1", "p"] == pytest.approx(0.003)
    assert verdict.judge({"L3": claims["L3"]})["verdict"].tolist() == ["confirmed"]


def test_repetitions_that_share_their_rows_do_not_add_up():
    few, many = np.array([1.0, 2.0, 3.0]), np.tile([1.0, 2.0, 3.0], 100)
    alone = verdict.greater(few)
    shared = verdict.greater(few, shared=0.5)
    wide = (shared.high - shared.estimate) / (alone.high - alone.estimate)
    assert wide == pytest.approx(((1 / 3 + 1 / 2) * 3) ** 0.5)
    spread = many.std(ddof=1)
    error = (verdict.greater(many, shared=0.5).high - 2) / 1.97
    assert error == pytest.approx(spread * 0.5**0.5, rel=0.02), "however many there are"
    assert verdict.equivalent(few, 2.0, 5.0, shared=0.5).p > verdict.equivalent(few, 2.0, 5.0).p


def test_a_deviation_over_devices_too_is_read_at_both_ends():
    ours = [80.4, 80.5, 80.6]  # 2.5 below the print: within twice 2.4, not within twice .76
    read = dict(paper_mean=83.0, paper_sd=2.4, paper_n=10, ours=ours, floor=1.0)
    assert comparison.ends(**read, k=10) == ("reproduced", "differs")
    assert comparison.ends(**read, k=1) == ("reproduced", "reproduced")


SERIES = pd.Series([50.0, 60.0, 70.0], index=[0, 1, 2])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: verdict.greater(np.ones((3, 1)), [1, 2, 3]), r"shape \[3, 1\] are paired"),
        (lambda: verdict.greater([1, 2, 3], [1, 2]), r"shape \[3\] are paired with \[2\]"),
        (lambda: verdict.greater([1, 2, 3], [1]), r"shape \[3\] are paired with \[1\]"),
        (lambda: verdict.greater(1.0, [1, 2]), r"shape \[\] are paired with \[2\]"),
        (lambda: verdict.greater(SERIES, SERIES[::-1]), r"runs \[0, 1, 2\] are paired with \[2"),
        (lambda: verdict.equivalent([1, 2, 3], 0, -1), "margin is -1; it must be above 0"),
        (lambda: verdict.every([]), "no tests to join"),
        (lambda: comparison.compare(91, 0.4, 10, [91, np.nan], 1.0), "runs are .*without NaN"),
        (lambda: comparison.compare(91, 0.4, 10, [[91, 91.2]], 1.0), "runs are .*must be numbers"),
        (lambda: comparison.compare_exact(91, 1, [91, np.nan]), "runs are .*without NaN"),
        (lambda: behind([1.0, 2.0]), "leave out runs"),
        (lambda: behind([[1.0, 2.0], [np.nan, 1.0]]), "leave out runs"),
    ],
)
def test_runs_that_are_no_pairs_are_refused(make, said):
    with pytest.raises(ResultsError, match=said):
        make()
    assert verdict.greater(SERIES, SERIES - 1).estimate == 1
    assert verdict.greater(SERIES, 10.0).estimate == 50


def test_what_has_no_chance_in_it_is_decided():
    yes, no = verdict.exact(1.0, True), verdict.exact(1.0, False)
    assert verdict.judge({"a": yes, "b": no})["verdict"].tolist() == ["confirmed", "refuted"]


def test_two_methods_are_told_apart_as_by_the_paired_t_test():
    rng = np.random.default_rng(0)
    for gap in (0.5, 1.0, 2.0, 4.0):
        values = rng.standard_normal((5, 2)) + 10 * rng.standard_normal((5, 1)) + [0.0, gap]
        p = stats.ttest_rel(values[:, 0], values[:, 1]).pvalue
        assert behind(values).any() == (p < 0.05), gap


def test_a_method_far_behind_is_and_runs_that_share_a_luck_pair():
    luck = np.array([[0.0], [20.0], [-30.0]])
    noise = 0.1 * np.random.default_rng(0).standard_normal((3, 4))
    assert behind(luck + noise + [0.0, 0.0, -5.0, 0.0]).tolist() == [False, False, True, False]


@pytest.mark.parametrize("methods", [3, 9])
def test_equal_methods_are_called_behind_as_seldom_as_is_said(methods):
    rng = np.random.default_rng(1)
    reach = stats.studentized_range.ppf(0.95, methods, 2 * (methods - 1))
    with pytest.MonkeyPatch.context() as patch:  # one quantile for all tables: it takes long
        patch.setattr(stats.studentized_range, "ppf", lambda *_: reach)
        wrong = np.mean([behind(rng.standard_normal((3, methods))).any() for _ in range(2000)])
    assert 0.03 < wrong < 0.065


@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (0, 2)])
def test_one_run_or_one_method_shows_nothing(shape):
    assert not behind(np.arange(np.prod(shape), dtype=float).reshape(shape)).any()
