"""Steps of seeds: where a verdict stands, how likely the next one is."""

import numpy as np
import pytest
from scipy import stats

from lgfed_core.evidence import comparison, seed_steps, verdict
from lgfed_core.evidence.comparison import Print
from lgfed_core.evidence.seed_steps import STEPS, cell_chance, comparison_chance


def test_a_verdict_says_at_which_step_it_stands():
    told = [seed_steps.standing(n) for n in (1, 3, 4, 5, 10, 12)]
    assert told[:3] == ["before 3 seeds", "at 3 seeds", "between 3 and 5 seeds"]
    assert told[3:] == ["at 5 seeds", "at 10 seeds", "beyond 10 seeds"]
    assert [seed_steps.next_step(n) for n in (0, 3, 9, 10)] == [3, 5, 10, None]
    assert seed_steps.missing({1, 7}, 3) == [0, 2]
    told = [seed_steps.marked(*n) for n in ((3,), (2,), (2, 1), (3, 1), (1, 1))]
    assert told[:3] == ["3", "2, before 3 seeds", "2 of 3, others diverged"]
    assert told[3:] == [
        "3 of 4, others diverged, between 3 and 5 seeds",
        "1 of 2, others diverged, before 3 seeds",
    ]


@pytest.mark.parametrize(
    ("true", "sd"), [(0.0, 0.4), (0.8, 0.4), (1.3, 0.6), (-1.3, 0.6), (0.9, 1.5), (-3.0, 0.4)]
)
@pytest.mark.parametrize("step", STEPS[1:])
def test_the_chance_of_a_cell_is_how_often_a_verdict_comes(true, sd, step):
    """Three runs are given; the rest are drawn as the chance supposes: around their mean and with
    their deviation, which are themselves uncertain."""
    rng = np.random.default_rng(1)
    some = rng.normal(0, 1, 3)
    some = true + sd * (some - some.mean()) / some.std(ddof=1)
    decided = 0
    for ours in futures(rng, some, step):
        decided += comparison.compare(0.0, None, None, ours, 1.0).verdict != verdict.INCONCLUSIVE
    assert cell_chance(true, sd, 3, step, Print(1.0)) == pytest.approx(decided / 400, abs=0.05)


def futures(rng, some, step):
    """What runs may come to: 400 times ``some`` and the rest of them to ``step``."""
    df = len(some) - 1
    for wide in rng.chisquare(df, 400):
        sd = some.std(ddof=1) * np.sqrt(df / wide)
        middle = rng.normal(some.mean(), sd / np.sqrt(len(some)))
        yield np.concatenate([some, rng.normal(middle, sd, step - len(some))])


def test_without_a_seed_the_paper_is_taken_at_its_word():
    assert cell_chance(np.nan, 0.1, 0, 3, Print(1.0)) > 0.9
    assert cell_chance(np.nan, 2.0, 0, 3, Print(1.0)) < 0.2
    narrow, wide = (cell_chance(np.nan, 0.1, 0, 3, Print(1.0, v, 9)) for v in (0.01, 1.0))
    assert narrow > 0.9 > wide  # the print's own interval is part of ours


@pytest.mark.parametrize("mean", [0.0, 0.5, 1.5])
def test_the_chance_of_a_comparison_is_how_often_it_turns_out(mean):
    rng = np.random.default_rng(2)
    some = mean + np.array([-1.0, 0.0, 1.0])
    sure = 0
    for ours in futures(rng, some, 10):
        sure += verdict.greater(ours).p < 0.05
    p = verdict.greater(some).p
    assert comparison_chance(p, 3, 10, 0.05) == pytest.approx(sure / 400, abs=0.05)


def test_few_seeds_leave_their_deviation_open():
    two, five = (cell_chance(0.0, 0.3, n, 10, Print(1.0)) for n in (2, 5))
    assert two < 0.9 and five > 0.98
    assert cell_chance(0.9, 0.0, 3, 5, Print(1.0)) == 1  # what does not vary is sure


def test_prints_that_say_different_things_decide_nothing():
    near, far = Print(2.0), Print(0.5)
    assert cell_chance(1.0, 0.05, 5, 10, near) > 0.99 and cell_chance(1.0, 0.05, 5, 10, far) > 0.99
    assert cell_chance(1.0, 0.05, 5, 10, near, far) < 0.01
    both = cell_chance(0.2, 0.3, 3, 5, near, far)
    assert 0 < both <= cell_chance(0.2, 0.3, 3, 5, far) < cell_chance(0.2, 0.3, 3, 5, near)


@pytest.mark.parametrize("seeds", [0, 1])
def test_before_two_seeds_their_deviation_comes_from_elsewhere(seeds):
    """Drawn to two seeds, where a mean's interval is 12.7 times half their distance."""
    rng, reach = np.random.default_rng(3), stats.t.ppf(0.975, 1)
    sd = 0.3 * np.sqrt(2 / rng.chisquare(2, 20_000))
    middle = rng.normal(0, sd) if seeds else 0.0  # around the first one, which is as printed
    runs = np.array([np.zeros(20_000) if seeds else rng.normal(0, sd), rng.normal(middle, sd)])
    mean, half = runs.mean(0), np.abs(runs[0] - runs[1]) / 2
    decided = (np.abs(mean) + reach * half <= 1) | (np.abs(mean) - reach * half > 1)
    chance = cell_chance(0.0, 0.3, seeds, 2, Print(1.0))
    assert chance == pytest.approx(decided.mean(), abs=0.02)
