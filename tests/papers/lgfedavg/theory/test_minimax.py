"""Proposition 3 on finite sets: solved, bounded, and held against brute force."""

import numpy as np
import pytest

from lgfed_core.errors import SettingsError
from lgfed_core.metrics import information
from lgfed_core.papers.lgfedavg.theory import minimax
from toy import page

PAGE = page("lgfedavg/theory")
CASES = PAGE.cases()
SOLVERS = minimax.solve, PAGE.solve_deterministic
ATTAINED = {
    "only merit counts": True,
    "equal means, unequal spread": True,
    "the proxy counts": False,
    "X = Y = P": False,
    "P acts past X": True,
    "P hides behind X": False,
}


def random_law(seed, shape=(4, 3, 2)):
    return np.random.default_rng(seed).dirichlet(np.ones(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize("name", CASES)
def test_bound_is_attained_exactly_where_groups_agree_on_average(name):
    joint = CASES[name]
    found = minimax.solve(joint)
    assert found.gap < 1e-12
    above = found.value - PAGE.bound(joint)
    assert (PAGE.parity_gap(joint) < 1e-12) == ATTAINED[name]
    if ATTAINED[name]:
        assert abs(above) < 1e-12 and found.information < 1e-12
    else:
        assert above > 0.01 and found.information > 0.01


def test_independence_of_y_and_p_is_neither_enough_nor_needed():
    tied = {name: information.information(joint.sum(0)) for name, joint in CASES.items()}
    assert tied["P acts past X"] > 0.01 and ATTAINED["P acts past X"]
    assert tied["P hides behind X"] < 1e-12 and not ATTAINED["P hides behind X"]
    for name in list(CASES)[:4]:  # P reaches Y through X alone: there it decides
        assert (tied[name] < 1e-12) == ATTAINED[name]


@pytest.mark.parametrize("seed", range(4))
def test_no_encoder_and_head_beat_the_solution(seed):
    """Random games with three letters for h, and small steps away from the solution itself."""
    joint, rng = random_law(seed), np.random.default_rng(seed)
    best = minimax.solve(joint)
    assert best.gap < 1e-9 and best.value >= PAGE.bound(joint) - 1e-12
    for _ in range(300):
        sharpness = rng.choice([0.1, 1.0])
        encoder = rng.dirichlet(np.full(3, sharpness), size=4)
        head = rng.dirichlet(np.full(3, sharpness), size=3) + 1e-9
        value, *_ = minimax.game_value(joint, encoder, head / head.sum(1, keepdims=True))
        assert value >= best.value - best.gap
        mixed = 0.99 * best.encoder + 0.01 * encoder
        assert minimax.game_value(joint, mixed, np.eye(3))[0] >= best.value - best.gap
    assert PAGE.solve_deterministic(joint).value >= best.value - best.gap


def test_game_value_by_hand():
    """Nothing is said about X: cross-entropy H(Y), nothing shared with P."""
    joint = CASES["X = Y = P"]
    value, cross_entropy, shared = minimax.game_value(joint, np.ones((2, 1)), np.full((1, 2), 0.5))
    assert (value, cross_entropy, shared) == pytest.approx((0.0, np.log(2), 0.0))
    value, cross_entropy, shared = minimax.game_value(joint, np.eye(2), np.eye(2))
    assert (value, cross_entropy, shared) == pytest.approx((0.0, 0.0, np.log(2)))
    assert minimax.game_value(joint, np.eye(2), np.eye(2)[::-1])[0] == np.inf


def test_deterministic_encoders_need_more():
    """Groups that agree on average only: a random encoder attains the bound, no function does."""
    joint = CASES["equal means, unequal spread"]
    assert PAGE.solve_deterministic(joint).value > PAGE.bound(joint) + 0.05
    merit = PAGE.solve_deterministic(CASES["only merit counts"])
    assert merit.value == pytest.approx(PAGE.bound(CASES["only merit counts"]))
    assert merit.encoder.argmax(1).tolist() == [0, 0, 1, 1]


def test_partitions_are_counted_by_bell_numbers():
    assert [len(list(PAGE.partitions(n))) for n in range(1, 7)] == [1, 2, 5, 15, 52, 203]


def test_entropies():
    assert information.entropy(np.full(8, 1 / 8)) == pytest.approx(np.log(8))
    assert information.information(np.outer([0.2, 0.8], [0.5, 0.5])) == pytest.approx(0, abs=1e-15)
    assert information.information(np.eye(2) / 2) == pytest.approx(np.log(2))


def test_claim():
    found = minimax.claim_l20()
    assert found.estimate == pytest.approx(0.1690, abs=1e-4)
    assert (found.p, found.p_against) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: minimax.solve(np.ones((2, 2, 2))), "sum to 1"),
        (lambda: minimax.solve(np.pad(CASES["X = Y = P"], ((0, 1), (0, 0), (0, 0)))), "must occur"),
        (lambda: PAGE.solve_deterministic(random_law(0, (9, 2, 2))), "up to 8"),
        (lambda: minimax.solve(CASES["the proxy counts"], tolerance=-1.0), "nats only"),
    ],
)
def test_requests_that_cannot_be_met(asked, said):
    with pytest.raises(SettingsError, match=said):
        asked()


def test_the_more_the_proxy_counts_the_farther_is_the_bound():
    laws = [PAGE.proxy(reliance) for reliance in (0.0, 0.1, 0.2)]
    above = [[f(law).value - PAGE.bound(law) for law in laws] for f in SOLVERS]
    for values in above:
        assert values[0] == pytest.approx(0, abs=1e-12) and values[0] < values[1] < values[2]
    assert all(free <= function + 1e-12 for free, function in zip(*above, strict=True))
    tail = [minimax.solve(PAGE.proxy(0.15), x).information for x in (50.0, 100.0)]
    assert tail[0] / tail[1] == pytest.approx(4, rel=0.1)  # falls like lambda^-2
