"""Who is behind the best, where the best is picked on the same runs."""

import numpy as np
import pytest
from scipy import stats

from lgfed_core.errors import ResultsError
from lgfed_core.evidence.verdict import behind


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


@pytest.mark.parametrize("values", [[1.0, 2.0], [[1.0, 2.0], [np.nan, 1.0]]])
def test_runs_that_not_all_methods_have_are_refused(values):
    with pytest.raises(ResultsError, match="leave out runs"):
        behind(values)
