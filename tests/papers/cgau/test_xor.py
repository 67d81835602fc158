"""Claim C8: what the parts of one unit are found to do, and what is made of the counts."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from lgfed_core.evidence import claims
from lgfed_core.evidence.verdict import NO_EVIDENCE
from lgfed_core.papers.cgau.xor import claims as page

RIGHT = {  # role -> of all points, then of up and of down without modulation, without expression
    "not solved": (0.9, 1, 1, 1, 1),
    "one each": (1, 0.5, 1, 1, 0.5),
    "mixed": (1, 0.5, 0.5, 1, 1),
    "modulation alone": (1, 0.5, 1, 0.5, 1),
    "expression alone": (1, 1, 1, 1, 0.5),
    "needs neither": (1, 1, 1, 1, 1),
}


def starts(*roles: str) -> pd.DataFrame:
    """Shares of right points as the page makes them, a line per start."""
    columns = [("all", "nothing"), *product(("up", "down"), ("modulation", "expression"))]
    lines = np.array([RIGHT[role] for role in roles], float)
    return pd.DataFrame(lines, columns=pd.MultiIndex.from_tuples(columns))


def test_roles_in_words():
    assert page.roles(starts(*RIGHT), 0.95).tolist() == list(RIGHT)


def test_the_claim_counts_the_starts_of_the_half_that_its_estimate_is_of():
    found = starts(*["one each"] * 30)
    found.loc[:1, ("all", "nothing")] = 0.5  # not solved
    found.loc[2:8, ("down", "expression")] = 1.0  # solved in another way
    line = claims.judged(page.CLAIMS, {"cgau": found}).loc["C8"]
    assert line["runs"] == 28 and line["estimate"] == pytest.approx(21 / 28 - 0.5)
    found.loc[:8, ("all", "nothing")] = 0.5  # the first half is the weaker one now
    assert claims.judged(page.CLAIMS, {"cgau": found}).loc["C8", "runs"] == 30


@pytest.mark.parametrize(
    ("left", "verdict"),
    [(0.7, "confirmed"), (0.8, "inconclusive"), (0.9, "inconclusive"), (0.96, "refuted")],
)
def test_no_threshold_decides_alone_whether_a_part_carries_a_client(left, verdict):
    found = starts(*["one each"] * 30)
    found.loc[:, ("down", "expression")] = left  # right still at the thresholds up to this
    assert claims.judged(page.CLAIMS, {"cgau": found}).loc["C8", "verdict"] == verdict
    each = page.halves({"cgau": found})["one part for each client"].evidence
    holds = [int(at > left) for at in page.INTACT]
    rare = 0.025 ** (1 / 30)  # the share with which 30 of 30 are still as likely as this
    low, high = rare if min(holds) else 0.0, 1.0 if max(holds) else 1 - rare
    assert (each.low, each.high) == pytest.approx((low - 0.5, high - 0.5))


def test_the_claim_needs_both_halves():
    assert page.claim({"cgau": starts(*["one each"] * 8)}).evidence.p < 0.05
    found = starts(*["modulation alone"] * 8)
    first = page.halves({"cgau": found})["one unit solves it"].evidence
    assert first.p < 0.05 and page.claim({"cgau": found}).evidence.p_against < 0.05


def test_the_interval_of_a_share_is_of_counts_and_stays_between_its_ends():
    """By hand: the bounds of 3 of 3 and 0 of 3 are roots of 0.025; 5 of 188 by a table of beta."""
    for some, low, high in ((3, 0.025 ** (1 / 3), 1.0), (0, 0.0, 1 - 0.025 ** (1 / 3))):
        found = page.more_than_half(np.arange(3) < some)
        assert (found.low, found.high) == pytest.approx((low - 0.5, high - 0.5))
        assert (found.p, found.p_against) == ((1 / 8, 1.0) if some else (1.0, 1 / 8))
    found = page.more_than_half(np.arange(188) < 5)
    assert found.estimate == pytest.approx(5 / 188 - 0.5)
    assert (found.low, found.high) == pytest.approx((0.0087 - 0.5, 0.0610 - 0.5), abs=1e-4)
    two = page.more_than_half(np.arange(4) < 2)
    assert two.p == two.p_against == pytest.approx(11 / 16)
    assert page.more_than_half([]) == NO_EVIDENCE
