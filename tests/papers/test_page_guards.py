"""A guard says on the page what no longer holds, and never stops it."""

import pandas as pd
import pytest

from lgfed_core.papers import guards


@pytest.fixture
def shown(monkeypatch):
    import IPython.display

    said = []
    monkeypatch.setattr(IPython.display, "display", lambda one: said.append(one.data))
    return said


def test_what_holds_is_silent(shown):
    assert guards.guard(lambda: True, lambda: 1 < 2) and shown == []


@pytest.mark.parametrize(
    "condition",
    [lambda: False, lambda: {}["row"], lambda: [][0], lambda: float("x"), lambda: None.value],
)
def test_what_fails_or_cannot_be_asked_is_said_and_stops_nothing(condition, shown):
    assert not guards.guard(lambda: True, condition)
    assert shown == [guards.MOVED]


def test_an_error_of_ours_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        guards.guard(lambda: 1 / 0)


def test_a_gap_is_over_the_seeds_that_both_have():
    a = pd.Series({0: 3.0, 1: 4.0, 2: 5.0, 3: 100.0})
    b = pd.Series({0: 1.0, 1: 2.5, 2: 2.5, 3: float("nan"), 9: 7.0})
    found = guards.gap(a, b)
    assert found.estimate == pytest.approx(2.0) and found.df == 2
    assert found.low < 2.0 < found.high
