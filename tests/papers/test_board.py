"""All claims in one table: each has a page that judges it, and every verdict a known word."""

import json
import re

import pandas as pd
import pytest

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import verdict
from lgfed_core.papers import board as claims_board
from lgfed_core.paths import PAPER, ROOT

WORDS = (
    verdict.CONFIRMED,
    verdict.REFUTED,
    verdict.INCONCLUSIVE,
    verdict.NOT_RUN,
    verdict.STAND_IN,
    claims_board.LIVE,
)


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


def test_a_part_of_a_claims_comparisons_says_so(board, monkeypatch):
    lines = pd.DataFrame(
        {
            "verdict": ["inconclusive", "refuted", "not yet run", "confirmed", "inconclusive"],
            "so_far": ["confirmed", "refuted", "not yet run", "confirmed", "inconclusive"],
            "ran": [2, 2, 0, 10, 1],
            "parts": [10, 10, 10, 10, 1],
            "runs": [3, 3, 0, 3, 1],
        },
        index=pd.MultiIndex.from_product(
            [["L1", "L2", "L3", "L4", "L5"], [claims_board.SOUND]], names=["claim", "reading"]
        ),
    )
    monkeypatch.setattr(claims_board.lgfedavg_claims, "judged", lambda stored: lines)
    found = claims_board.board()["verdict"]
    assert found[["L1", "L2", "L3", "L4", "L5"]].tolist() == [
        "confirmed so far, 2 of 10 comparisons",
        "refuted",
        "not yet run",
        "confirmed",
        "inconclusive so far, 1 of 1 comparisons, one seed",
    ]


def test_as_markdown_a_verdict_links_to_its_page(board):
    head, rule, *lines = claims_board.markdown(board).splitlines()
    assert len(lines) == len(board) and head.count("|") == rule.count("|") == 4
    assert "](cgau/xor.ipynb) |" in next(line for line in lines if line.startswith("| C8 |"))


def test_without_the_list_of_claims_it_says_what_is_missing(tmp_path):
    with pytest.raises(ResultsError, match="claims.csv is missing"):
        claims_board.board(tmp_path)
