"""All claims in one table: each has a page that judges it, and every verdict a known word."""

import json
import re

import pandas as pd
import pytest

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import verdict
from lgfed_core.papers import board as claims_board
from lgfed_core.paths import PAPER, ROOT

WORDS = (verdict.CONFIRMED, verdict.REFUTED, verdict.INCONCLUSIVE, verdict.NOT_RUN)
WORDS += (verdict.STAND_IN, "suggested by ")


@pytest.fixture(scope="module")
def board():
    return claims_board.board()


def test_every_claim_is_there_once_with_a_verdict(board):
    printed = pd.read_csv(PAPER / "claims.csv")
    assert list(board.index) == list(printed["id"]) and board["claim"].notna().all()
    assert set(board["paper"]) == {"LG-FedAvg", "CGAU", "FADE"}
    assert all(said.startswith(WORDS) for said in board["verdict"])
    assert (board.loc[board["page"] == "", "verdict"] == verdict.NOT_RUN).all()


def test_the_page_of_a_claim_names_it(board):
    contents = (ROOT / "book" / "_toc.yml").read_text()
    for claim, page in board.loc[board["page"] != "", "page"].items():
        assert f"file: {page}\n" in contents
        cells = json.loads((ROOT / "book" / f"{page}.ipynb").read_text())["cells"]
        text = "".join("".join(cell["source"]) for cell in cells)
        assert re.search(rf"\b{claim}\b", text), f"{page} does not judge {claim}"


def test_every_claim_is_declared_once_for_each_data_set_by_a_known_page():
    named = [(claim.id, claim.where) for claim in claims_board.CLAIMS]
    assert len(named) == len(set(named))
    assert {id for id, where in named if where} == {"C5"}
    live = {claim.id for claim in claims_board.CLAIMS if claim.live}
    assert live == {"L10", "L11", "L20", "C8", "F4", "F5", "F15"}


def test_a_claim_on_two_data_sets_has_both_verdicts(monkeypatch):
    for page, said in ((claims_board.audio, "confirmed"), (claims_board.cifar10, "refuted")):
        line = {"said": [said], "ran": [2], "runs": [4], "parts": [2], "at": ["0.4"]}
        lines = pd.DataFrame(line, index=["C5"])
        monkeypatch.setattr(page, "from_stored", lambda lines=lines: lines)
    found = claims_board.board()["verdict"]
    assert found["C5"] == (
        "confirmed, between 3 and 5 seeds (audio); "
        "refuted (at 0.4), between 3 and 5 seeds (CIFAR-10)"
    )
    assert found["C3"] == verdict.NOT_RUN
    for page in (claims_board.audio, claims_board.cifar10):
        monkeypatch.setattr(page, "from_stored", lambda: pd.DataFrame({"said": []}))
    assert claims_board.board().loc["C5", "verdict"] == verdict.NOT_RUN


def test_in_words_the_letters_of_claims_are_those_of_their_papers(board):
    head = next(line for line in claims_board.in_words(board).splitlines() if " claims (" in line)
    assert head.startswith(f"Of {len(board)} claims (L: LG-FedAvg's, ")
    assert "F: FADE's" in head and "C: CGAU's" in head and "](scoreboard.ipynb)" in head


def test_as_markdown_a_verdict_links_to_its_page(board):
    head, rule, *lines = claims_board.markdown(board).splitlines()
    assert len(lines) == len(board) and head.count("|") == rule.count("|") == 4
    assert "](cgau/xor.ipynb) |" in next(line for line in lines if line.startswith("| C8 |"))


def test_without_the_list_of_claims_it_says_what_is_missing(tmp_path):
    with pytest.raises(ResultsError, match="claims.csv is missing"):
        claims_board.board(tmp_path)


def test_how_much_was_tried_limits_no_verdict_and_how_few_ran_does():
    effort = "best on validation rows of 8 settings tried"
    assert claims_board._aside(f"refuted ({effort})") == ""
    assert claims_board._aside(f"refuted (by one judge: confirmed) ({effort})").endswith("firmed)")
    assert claims_board._aside("refuted (tried: rates 0.02, 0.05)") == ""
    assert claims_board._aside("inconclusive (underpowered)") == " (underpowered)"
