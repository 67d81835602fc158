"""The first page and README: answers of today, three figures, drawn the same twice."""

import re

import matplotlib.pyplot as plt
import pytest

from lgfed_core.papers import board, front, questions


@pytest.fixture(scope="module")
def told():
    return board.told()


@pytest.mark.parametrize("page", front.PAGES, ids=lambda page: page.name)
def test_the_first_pages_have_the_answers_as_they_are_written(page, told):
    words = front.table(told)
    assert not questions.renew_page(page, words, write=False), "renew them: report --front"


def test_every_first_question_has_a_page_and_an_answer(told):
    text = front.table(told)
    asked = [id for ids in front.ASKED.values() for id in ids]
    assert text.count("?") >= len(asked) and len(set(asked)) == len(asked)
    for id in asked:
        assert told[id].claim.question in text and questions.answered(told[id]) in text
        assert f"]({told[id].claim.page}.ipynb)" in text


def test_the_readme_fits_on_two_screens():
    lines = front.PAGES[0].read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120


def test_figures_are_drawn_the_same_twice(told, tmp_path):
    first, again = (front.draw(told, tmp_path / name) for name in ("a", "b"))
    assert [path.name for path in first] == [
        f"front-{name}.png" for name in ("lgfedavg", "cgau", "fade")
    ]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
        height, width, _ = plt.imread(one).shape
        assert width > height > 400
    assert not plt.get_fignums()


@pytest.mark.parametrize("page", front.PAGES, ids=lambda page: page.name)
def test_every_figure_of_a_first_page_is_there_and_says_what_it_shows(page):
    text = page.read_text(encoding="utf-8")
    for name in ("lgfedavg", "cgau", "fade"):
        assert (front.IMAGES / f"front-{name}.png").exists()
        assert re.search(rf"front-{name}\.png", text)
