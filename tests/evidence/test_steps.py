"""Steps of seeds: where a verdict stands, how likely the next one is, how often the rule errs."""

import numpy as np
import pytest
from scipy import stats

from lgfed_core.evidence import verdict
from lgfed_core.evidence.steps import (
    STEPS,
    cell_chance,
    comparison_chance,
    errors,
    missing,
    next_step,
    standing,
)


def test_a_verdict_says_at_which_step_it_stands():
    told = [standing(n) for n in (1, 3, 4, 5, 10, 12)]
    assert told[:3] == ["before 3 seeds", "at 3 seeds", "between 3 and 5 seeds"]
    assert told[3:] == ["at 5 seeds", "at 10 seeds", "beyond 10 seeds"]
    assert [next_step(n) for n in (0, 3, 9, 10)] == [3, 5, 10, None]
    assert missing({1, 7}, 3) == [0, 2]


@pytest.mark.parametrize(("true", "sd"), [(0.0, 0.4), (0.8, 0.4), (1.3, 0.6), (0.9, 1.5)])
@pytest.mark.parametrize("step", STEPS[1:])
def test_the_chance_of_a_cell_is_how_often_a_verdict_comes(true, sd, step):
    """Three runs are given; the rest are drawn as the chance supposes: around their mean, which is
    itself uncertain."""
    rng = np.random.default_rng(1)
    some = rng.normal(0, 1, 3)
    some = true + sd * (some - some.mean()) / some.std(ddof=1)
    decided = 0
    for _ in range(400):
        middle = rng.normal(some.mean(), sd / np.sqrt(3))
        ours = np.concatenate([some, rng.normal(middle, sd, step - 3)])
        decided += verdict.compare(0.0, None, None, ours, 1.0).verdict != verdict.INCONCLUSIVE
    assert cell_chance(true, sd, 3, step, 1.0) == pytest.approx(decided / 400, abs=0.13)


def test_without_a_seed_the_paper_is_taken_at_its_word():
    assert cell_chance(np.nan, 0.1, 0, 3, 1.0) > 0.99
    assert cell_chance(np.nan, 2.0, 0, 3, 1.0) < 0.2
    narrow, wide = (cell_chance(np.nan, 0.1, 0, 3, 1.0, v, 9) for v in (0.01, 1.0))
    assert narrow > 0.9 > wide  # the print's own interval is part of ours


@pytest.mark.parametrize("mean", [0.0, 0.5, 1.5])
def test_the_chance_of_a_comparison_is_how_often_it_turns_out(mean):
    rng = np.random.default_rng(2)
    some = mean + np.array([-1.0, 0.0, 1.0])
    sure = 0
    for _ in range(400):
        middle = rng.normal(mean, 1 / np.sqrt(3))
        more = rng.normal(middle, 1.0, 7)
        sure += verdict.greater(np.concatenate([some, more])).p < 0.05
    p = verdict.greater(some).p
    assert comparison_chance(p, 3, 10, 0.05) == pytest.approx(sure / 400, abs=0.1)


def test_looking_three_times_errs_more_often_than_once_and_spends_less():
    at_edge = errors(1.0, 1.0, 0.5)
    once, thrice = at_edge["reproduced"]
    assert once == pytest.approx(0.025, abs=0.004)  # the rule's own error at the edge of the margin
    assert once < thrice < 3 * once
    near = errors(0.0, 1.0, 0.5)
    assert (near["reproduced"] > 0.99).all()
    assert near["seeds"].iloc[1] < 6 < near["seeds"].iloc[0] == 10
    assert near.loc[:, ["reproduced", "differs", "inconclusive"]].sum(axis=1).to_numpy() == (
        pytest.approx([1, 1])
    )


def test_what_new_seeds_can_move_is_what_old_ones_have_not_fixed():
    """By hand, of a deviation of 1 and a margin of 2: the mean of 3 seeds is 3/5 of that of 5."""
    reach = stats.t.ppf(0.975, 4) / 5**0.5
    moves = (1 / 3 - 1 / 5) ** 0.5
    inside = 2 * stats.norm.cdf((2 - reach) / moves) - 1
    assert cell_chance(0.0, 1.0, 3, 5, 2.0) == pytest.approx(inside, abs=1e-6)
    fresh = 2 * stats.norm.cdf((2 - reach) * 5**0.5) - 1  # of no seeds, all is open
    assert cell_chance(0.7, 1.0, 0, 5, 2.0) == pytest.approx(fresh, abs=1e-6)
