"""Answers in pages: between their marks, struck through where a guard fails, written if new."""

import json

import numpy as np
import pytest

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import verdict
from lgfed_core.evidence.answers import told
from lgfed_core.evidence.claims import Claim, tested as part
from lgfed_core.papers import questions


@pytest.fixture
def one():
    def parts(found):
        return [part("", np.array(found), verdict.greater)]

    claim = Claim(
        "L1", "a/page", "above zero", parts, question="Is it?", answer="**Yes.** It is.",
        guard=lambda told: told.between(4, 6),
    )  # fmt: skip
    return lambda *values: told([claim], list(values), stand_in="chats")["L1"]


def test_an_answer_stands_below_its_question_with_a_place_and_its_limits(one):
    text = questions.markdown([one(5.0, 5.1, 5.2)])
    assert text == (
        '<span id="answer-L1"></span>*Is it?*\\\n**Yes.** It is. *Stand-in data (chats).*'
    )


def test_an_answer_that_fails_its_guard_is_struck_through(one):
    assert questions.answered(one(9.0, 9.1, 9.2)).startswith("~~**Yes.** It is.~~ *The runs have")
    assert questions.answered(one(-5.0, -5.1, -5.2)).startswith("~~**Yes.**")


def test_a_notebook_is_written_only_where_its_answers_are_old(one, tmp_path):
    path = tmp_path / "page.ipynb"
    cells = [
        {
            "cell_type": "markdown",
            "source": ["# Ü\n", f"{questions.BEGIN}\n", questions.END, "\nx"],
        },
        {"cell_type": "code", "source": [f"{questions.BEGIN}{questions.END}"]},
    ]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    before, told_now = path.read_bytes(), [one(5.0, 5.1, 5.2)]
    assert questions.renew(path, told_now, write=False) and path.read_bytes() == before
    assert questions.renew(path, told_now) and not questions.renew(path, told_now)
    first, code = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "".join(first["source"])
    assert text.startswith("# Ü\n") and "**Yes.** It is." in text and text.endswith("\nx")
    assert code["source"] == cells[1]["source"]


def test_links_of_a_first_page_lead_from_where_it_lies(tmp_path):
    pages = [tmp_path / "README.md", tmp_path / "book" / "intro.md"]
    pages[1].parent.mkdir()
    words = "[all](scoreboard.ipynb), [elsewhere](https://example.org)"
    for page in pages:
        page.write_text(f"before {questions.BEGIN} old {questions.END} after")
        assert questions.renew_page(page, words) and not questions.renew_page(page, words)
    there, inside = (page.read_text() for page in pages)
    assert words in inside and "](book/scoreboard.ipynb), [elsewhere](https://" in there
    assert there.startswith("before ") and there.endswith(" after") and " old " not in there


def test_a_page_without_marks_is_named_and_left_as_it_is(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ResultsError, match=r"page\.md has no lines"):
        questions.renew_page(page, "words")
    assert page.read_text() == "nothing"
