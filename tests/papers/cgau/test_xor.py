"""XOR with two clients: the data, a unit set by hand, and what its parts are found to do."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.evidence import claims
from lgfed_core.evidence.verdict import NO_EVIDENCE
from lgfed_core.papers.cgau.xor import claims as page, run as xor


def settings(scale: str = "smoke", **changes) -> xor.Settings:
    return xor.Settings(scale=scale, **xor.SCALES[scale] | changes)


CFG = settings(spread=0.1)


def by_hand() -> xor.Trained:
    """The paper's solution: the filter splits on x1, moved right for "up" by its modulation; the
    gate is shut left of 0, moved left for "down" by its expression."""
    net = xor.OneUnit()
    values = {
        "unit.filter.weight": [[[10.0, 0.0]]],
        "unit.filter.bias": [[0.0]],
        "unit.gate.weight": [[[10.0, 0.0]]],
        "unit.gate.bias": [[0.0]],
        "unit.modulation.weight": [[[-30.0, 0.0]]],
        "unit.expression.weight": [[[0.0, 30.0]]],
        "out.weight": [[[4.0]]],
        "out.bias": [[2.0]],
    }
    return xor.Trained(net, {n: torch.tensor(v) for n, v in values.items()})


def test_the_data_are_the_papers():
    x, y, client = xor.points(CFG)
    assert len(x) == 4 * CFG.points
    assert ((x[:, 0] * x[:, 1] < 0) == (y > 0)).all()  # blue: opposite signs
    assert ((x[:, 1] < 0) == (client == xor.DOWN)).all()
    assert torch.equal(xor.points(CFG)[0], x)


def test_a_unit_set_by_hand_solves_it_and_each_part_carries_one_client():
    found = xor.accuracies(by_hand(), CFG)
    assert found.loc[0, ("all", "nothing")] == 1.0
    assert found.loc[0, ("up", "modulation")] < 0.6 and found.loc[0, ("down", "modulation")] == 1.0
    assert found.loc[0, ("down", "expression")] < 0.6 and found.loc[0, ("up", "expression")] == 1.0
    assert page.ways(found).loc[0].tolist() == ["one each"] * len(page.INTACT)


def test_roles_in_words():
    columns = [("all", "nothing"), *product(("up", "down"), ("modulation", "expression"))]
    right = {
        "not solved": (0.9, 1, 1, 1, 1),
        "one each": (1, 0.5, 1, 1, 0.5),
        "mixed": (1, 0.5, 0.5, 1, 1),
        "modulation alone": (1, 0.5, 1, 0.5, 1),
        "expression alone": (1, 1, 1, 1, 0.5),
        "needs neither": (1, 1, 1, 1, 1),
    }
    found = pd.DataFrame(right.values(), columns=pd.MultiIndex.from_tuples(columns))
    assert page.roles(found, 0.95).tolist() == list(right)


def test_the_claim_counts_the_starts_of_the_half_that_its_estimate_is_of():
    once = xor.accuracies(by_hand(), CFG)
    found = pd.concat([once] * 30, ignore_index=True)
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
    found = pd.concat([xor.accuracies(by_hand(), CFG)] * 30, ignore_index=True)
    found.loc[:, ("down", "expression")] = left  # right still at the thresholds up to this
    assert claims.judged(page.CLAIMS, {"cgau": found}).loc["C8", "verdict"] == verdict
    each = page.halves({"cgau": found})["one part for each client"].evidence
    holds = [int(at > left) for at in page.INTACT]
    rare = 0.025 ** (1 / 30)  # the share with which 30 of 30 are still as likely as this
    low, high = rare if min(holds) else 0.0, 1.0 if max(holds) else 1 - rare
    assert (each.low, each.high) == pytest.approx((low - 0.5, high - 0.5))


def test_the_claim_needs_both_halves():
    once = xor.accuracies(by_hand(), CFG)
    found = pd.concat([once] * 8, ignore_index=True)
    assert page.claim({"cgau": found}).evidence.p < 0.05
    found.loc[:, ("down", "expression")] = 1.0  # expression does nothing
    first = page.halves({"cgau": found})["one unit solves it"].evidence
    assert first.p < 0.05 and page.claim({"cgau": found}).evidence.p_against < 0.05


@pytest.mark.parametrize("kind", xor.NETS)
def test_networks_learn_side_by_side_as_they_do_alone(kind):
    together = xor.train(kind, settings(seeds=2, steps=20))
    alone = xor.train(kind, settings(seeds=1, steps=20))
    for name, p in alone.params.items():
        assert torch.allclose(together.params[name][0], p[0], atol=1e-5), name


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


def test_xor_needs_no_client():
    """As the answer says: a unit without one learns it from about half of the starts."""
    cfg = settings("paper", seeds=40)
    assert 0.4 < xor.solves(xor.accuracies(xor.train("gated", cfg), cfg)).mean() < 0.65
