"""A guard says on the page what no longer holds, and never stops it."""

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
