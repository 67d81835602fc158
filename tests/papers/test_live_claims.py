"""What a page judges live is stored on demand, and judged again as it was."""

from functools import partial

import pandas as pd
import pytest

from lgfed_core.evidence import claims, records, verdict
from lgfed_core.evidence.claims import Claim, Comparison
from lgfed_core.papers import board, live_claims

PAGES = (board.theory, board.xor, board.fade_theory)


def _claim(id: str, test) -> Claim:
    return Claim(
        id, "a/page", id, lambda values: [Comparison("", len(values), test(values))], live=True
    )


OF = (
    _claim("above", verdict.greater),
    _claim("below", lambda values: verdict.greater(-values)),
    _claim("exact", lambda values: verdict.exact(0.5, True)),
)
VALUES = pd.Series([0.3, 0.5, 0.4, 0.9])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    monkeypatch.setattr(records, "record", partial(records.record, folder=tmp_path))
    return tmp_path


def test_nothing_is_stored_unless_asked_for_and_never_at_smoke_scale(folder, monkeypatch):
    monkeypatch.delenv("LGFED_KEEP", raising=False)
    live_claims.keep(OF, VALUES, "paper")
    monkeypatch.setenv("LGFED_KEEP", "1")
    live_claims.keep(OF, VALUES, "smoke")
    assert not list(folder.iterdir())
    assert live_claims.live(OF).from_stored().empty


def test_without_any_stored_row_no_claim_has_run(folder):
    assert set(board.verdicts().values()) <= {verdict.NOT_RUN}
    assert claims.judged([], None)["said"].str.upper().empty  # a column of texts


def test_what_was_kept_is_judged_as_on_the_page_and_at_quick_scale_only_suggested(
    folder, monkeypatch
):
    monkeypatch.setenv("LGFED_KEEP", "1")
    live_claims.keep(OF, VALUES, "quick")
    quick = live_claims.live(OF).from_stored()
    assert set(quick["verdict"]) == {verdict.SUGGESTED}
    assert quick.loc["below", "said"] == "suggested by a live run at quick scale: refuted"
    live_claims.keep(OF, 2 * VALUES, "paper")
    again, there = live_claims.live(OF).from_stored(), claims.judged(OF, 2 * VALUES)
    numbers = ["estimate", "low", "high", "p", "p_against", "runs"]
    pd.testing.assert_frame_equal(again[numbers], there[numbers], rtol=1e-6)
    assert again["said"].tolist() == there["said"].tolist() == ["confirmed", "refuted", "confirmed"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.CLAIMS[0].page)
def test_the_stored_verdict_of_every_live_claim_is_whole(page):
    lines = page.from_stored()
    assert list(lines.index) == [claim.id for claim in page.CLAIMS] and lines["ran"].all()
    name = page.CLAIMS[0].page.replace("/", ".")
    assert not records.load(name)["commit"].str.contains("dirty|unknown").any()


def test_what_is_exact_comes_out_again_as_stored():
    now = claims.judged(board.fade_theory.CLAIMS, None)
    stored = board.fade_theory.from_stored()
    assert now["verdict"].tolist() == stored["verdict"].tolist()
    assert now["estimate"].to_numpy() == pytest.approx(stored["estimate"].to_numpy(), rel=1e-4)
