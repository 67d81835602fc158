"""The drawings of the design page say what the code says."""

import pytest

import diagram
from lgfed_core.methods import Method


def test_the_drawings_are_those_of_the_code():
    """Otherwise: python book/diagram.py."""
    drawn = {"rooms": diagram.rooms(diagram.sees()), "round": diagram.one_round()}
    for name, text in drawn.items():
        assert (diagram.IMAGES / f"{name}.svg").read_text("utf-8") == text, name


def test_every_arrow_between_rooms_runs_downwards():
    known = diagram.sees()
    rows = diagram.levels(known)
    place = {name: n for n, row in enumerate(rows) for name in row}
    assert sorted(place) == sorted(known)
    assert all(place[a] < place[b] for a, b in diagram.edges(known))


@pytest.mark.parametrize("answer", [answer for _, _, answer in diagram.ROUND if answer])
def test_a_round_names_answers_of_a_method(answer):
    assert hasattr(Method, answer)
