"""All claims in one table: each has a page that judges it, and every verdict a known word."""

import re

import pandas as pd
import pytest

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import verdict
from lgfed_core.evidence.answers import VERDICTS
from lgfed_core.papers import board as claims_board
from lgfed_core.paths import PAPER, ROOT

STRICT = (verdict.CONFIRMED, verdict.REFUTED, verdict.INCONCLUSIVE, verdict.NOT_RUN)
STRICT += (verdict.STAND_IN, "suggested by ")


@pytest.fixture(scope="module")
def board():
    return claims_board.board()


def test_every_claim_is_there_once_with_a_verdict(board):
    printed = pd.read_csv(PAPER / "claims.csv")
    assert list(board.index) == list(printed["id"]) and board["claim"].notna().all()
    assert set(board["paper"]) == {"LG-FedAvg", "CGAU", "FADE"}
    assert all(said.startswith(STRICT) for said in board["strict"])
    single = board.drop(index="C5")  # of two data sets, each with its name
    assert all(said.startswith(VERDICTS) for said in single["verdict"])
    assert all(said.startswith("**") for said in single["answer"])
    assert board["question"].str.endswith("?").all() and (board["page"] != "").all()


def test_the_page_of_a_claim_names_it(board):
    contents = (ROOT / "book" / "_toc.yml").read_text()
    for claim, page in board["page"].items():
        assert f"file: {page}\n" in contents
        text = (ROOT / "book" / f"{page}.ipynb").read_text(encoding="utf-8")
        assert re.search(rf"answer-{claim}\b", text), f"{page} does not answer {claim}"


def test_every_claim_is_declared_once_for_each_data_set_by_a_known_page():
    named = [(claim.id, claim.where) for claim in claims_board.CLAIMS]
    assert len(named) == len(set(named))
    assert {id for id, where in named if where} == {"C5"}
    live = {claim.id for claim in claims_board.CLAIMS if claim.live}
    assert live == {"L10", "L11", "L20", "C8", "F4", "F5", "F15"}


def test_a_claim_on_two_data_sets_has_both_verdicts(board, monkeypatch):
    assert re.match(r"audio: .*; CIFAR-10: ", board.loc["C5", "verdict"])
    for page, said in ((claims_board.audio, "confirmed"), (claims_board.cifar10, "refuted")):
        line = {"said": [said], "ran": [2], "runs": [4], "parts": [2], "at": ["0.4"]}
        lines = pd.DataFrame(line, index=["C5"])
        monkeypatch.setattr(page, "from_stored", lambda lines=lines: lines)
    found = claims_board.verdicts()
    assert found["C5"] == (
        "confirmed, between 3 and 5 seeds (audio); refuted, between 3 and 5 seeds (CIFAR-10)"
    )
    assert found["C3"] == verdict.NOT_RUN
    for page in (claims_board.audio, claims_board.cifar10):
        monkeypatch.setattr(page, "from_stored", lambda: pd.DataFrame({"said": []}))
    assert claims_board.verdicts()["C5"] == verdict.NOT_RUN


def test_as_markdown_a_verdict_links_to_its_page(board):
    head, rule, *lines = claims_board.markdown(board, {}).splitlines()
    assert len(lines) == len(board) and head.count("|") == rule.count("|") == 5
    (xor,) = (line for line in lines if 'id="C8"' in line)
    assert "](cgau/xor.ipynb) <small>" in xor and "?" in xor


def test_without_the_list_of_claims_it_says_what_is_missing(tmp_path):
    with pytest.raises(ResultsError, match="claims.csv is missing"):
        claims_board.board(tmp_path)
