"""Every printed number and claim knows the runs that it needs."""

from types import SimpleNamespace

import pandas as pd
import pytest

from lgfed_core.evidence import collapse, printed, records, verdict
from lgfed_core.evidence.answers import ALONE, UNTOLD, Told
from lgfed_core.evidence.claims import Claim
from lgfed_core.evidence.comparison import Print
from lgfed_core.evidence.seed_steps import STEPS, comparison_chance
from lgfed_core.fill import goals
from lgfed_core.fill.ledger import UNKNOWN, Ledger, _typical
from lgfed_core.fill.plan import Planner
from lgfed_core.papers import board
from lgfed_core.papers.fade.digits.domains import OPT_OUT
from lgfed_core.papers.fade.digits.run import DIGITS
from lgfed_core.papers.lgfedavg import claims
from lgfed_core.papers.lgfedavg.cifar10 import CIFAR10
from lgfed_core.papers.lgfedavg.mnist import MNIST
from lgfed_core.papers.lgfedavg.version1.run import VERSION1
from lgfed_core.papers.printed import TABLES
from toy import stored_row

NAME, TABLE = "lgfedavg.mnist", "lgfedavg_v2_table6_mnist"
OWN = "Table 6 of 2020: MNIST: 2 classes, FedAvg, 800 rounds, local test, as released"
IDS = dict(table=TABLE, classes_per_device=2, method="fedavg", fedavg_rounds=800, lg_rounds=0)


def rows(values, device="cpu: A", seconds=100.0, **ids) -> pd.DataFrame:
    """Rows of FedAvg's line, as released and chosen on test data; values: by seed."""
    same = IDS | dict(protocol="as_released") | ids
    same |= dict(selection="best_test" if same["protocol"] == "as_released" else "best_val")
    same |= dict(device=device, seconds=seconds)
    lines = [
        stored_row(**same, seed=seed, metric=metric, value=value)
        for seed, value in enumerate(values)
        for metric in ("local_test_acc", "new_test_acc")
    ]
    return pd.DataFrame(lines)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A folder of results, at first empty; to put rows of an experiment there."""
    monkeypatch.setattr("lgfed_core.evidence.records.RESULTS", tmp_path)
    return lambda frame, name=NAME: records.record(name, frame, tmp_path)


def cells(name=NAME, table=TABLE):
    """Goals by name, and the ledger."""
    ledger = Ledger(goals.pieces(name), "cpu: A")
    found = goals.of_table(TABLES[table], records.load(folder=records.RESULTS), ledger)
    return {goal.name: goal for goal in found}, ledger


def test_every_measured_number_has_the_run_that_makes_it(stored):
    ledger = Ledger(goals.pieces())
    for table in TABLES.values():
        found = list(goals.of_table(table, records.load(folder=records.RESULTS), ledger))
        cells = goals.report.table(table, rows=records.load(folder=records.RESULTS))
        wanted = cells[~printed.counted(table, cells)]
        wanted = wanted.drop_duplicates(["row", "metric", "protocol"])
        assert len(found) == len(wanted) * bool(table.experiments), table.name
        assert all(goal.pieces for goal in found)


def test_in_an_empty_home_all_of_an_experiment_is_planned(stored):
    ledger = Ledger(goals.pieces(NAME), "cpu: A")
    bundle = next(Planner(goals.every(ledger), ledger).bundles())
    assert {task.experiment.name for task in bundle.tasks} == {NAME}


def test_a_cell_is_served_by_its_own_line(stored):
    found, _ = cells()
    name = "Table 6 of 2020: MNIST: 5 classes, LG-FedAvg, 600 + 100 rounds, new test, as released"
    (piece,) = found[name].pieces
    assert (piece.name, dict(piece.changes)["classes"], piece.after) == ("lg_600", 5, ("fedavg",))
    cfg = MNIST.settings("paper", piece.protocol, **dict(piece.changes))
    assert set(MNIST.rounds(cfg)) == {"fedavg", "lg_600"}  # and nothing else runs


@pytest.mark.parametrize("experiment", [MNIST, CIFAR10, VERSION1], ids=lambda e: e.name)
def test_a_baseline_runs_alone(experiment):
    """Its price is its own, so nothing else may be trained beside it."""
    for protocol in experiment.protocols:
        for piece in experiment.pieces(protocol):
            cfg = experiment.settings("paper", protocol, **dict(piece.changes))
            if piece.name in ("local", "mtl"):
                assert set(experiment.rounds(cfg)) == {piece.name}
            else:
                assert {"fedavg", piece.name} <= set(experiment.rounds(cfg))


@pytest.mark.parametrize(
    ("values", "steps", "begun"),
    [
        ((), (3, 5, 10), 0),
        ((98.2,), (3, 5, 10), 0),
        ((98.2, 98.3), (3, 5, 10), 3),  # a step that was begun is finished, whatever it says
        ((98.1, 98.2, 98.3), (), 0),  # reproduced at 3
        ((90.0, 98.0, 99.0), (5, 10), 0),
        ((98.1, 98.2, 98.3, 98.2), (5, 10), 5),  # between steps nothing is looked at
    ],
)
def test_a_cell_is_open_until_a_step_decides_it(stored, values, steps, begun):
    if values:
        stored(rows(values))
    goal = cells()[0][OWN]
    assert (tuple(n for n in goal.chances if n > len(values)), goal.begun) == (steps, begun)
    assert all(0 <= chance <= 1 for chance in goal.chances.values())


def test_a_seed_that_diverged_is_one_of_its_step(stored):
    lost = rows([0, 0, 7], "cpu: B").iloc[-1:].assign(metric="diverged")
    stored(pd.concat([rows([90.0, 98.0]), lost]))
    found, ledger = cells()
    goal = found[OWN]
    assert {len(ledger.seeds(piece)) for piece in goal.pieces} == {3}
    assert goal.at == "inconclusive" and goal.begun == 0
    assert goal.chances[3] == 0 < goal.chances[10]  # at 3 it was looked at


def test_a_seed_that_diverged_is_lost_to_its_cell(stored):
    stored(rows([97.0, 98.0]))
    lines = goals.report.table(TABLES[TABLE], rows=records.load(folder=records.RESULTS))
    (line,) = lines[lines["seeds"] == 2].head(1).itertuples()
    chance = [goals._cell(TABLES[TABLE], line, *at, 0.2) for at in ((3, 10), (2, 9), (2, 10))]
    assert chance[0] == chance[1] != chance[2]


def test_more_seeds_may_tell_a_cell_apart_that_none_can_reproduce(stored):
    table = TABLES["lgfedavg_v1_table1"]
    (cell,) = (
        cell
        for cell in printed.cells(table).to_dict("records")
        if cell["row"] == "MNIST, local only" and cell["metric"] == "new_test_acc"
    )
    ids = dict(table=table.name, dataset="mnist", method="local_only", fedavg_rounds="")
    ids |= dict(protocol="as_described")
    there = rows([cell["paper"] + far for far in (9.5, 10.5, 11.5)], **ids)
    stored(there[there["metric"] == "new_test_acc"], VERSION1.name)
    found, _ = cells(VERSION1.name, table.name)
    end = "MNIST, local only, new test, as described"
    (goal,) = (goal for name, goal in found.items() if name.endswith(end))
    assert goal.at == verdict.UNREACHABLE
    assert goal.chances[3] == 0 < goal.chances[10]


def test_a_pooled_deviation_is_read_both_ways():
    table = TABLES["lgfedavg_table4_adult_fairness"]
    lines = goals.report.table(table, protocol="as_released")
    for line in lines[lines["paper_sd"] > 0].itertuples():
        if goals.collapse.groups_of(table, line._asdict()) is None:
            wide, narrow = goals._prints(table, line)
            assert wide.variance == pytest.approx(table.pooled * narrow.variance)
            assert wide.margin >= narrow.margin
    assert Print.of(2.0, 3.0, 10) == Print(2.0, 1.0, 9)  # a printed one is a population's


def test_a_cell_with_a_collapsed_run_is_read_as_a_mixture(tmp_path):
    table = TABLES["fade_table1_office"]  # D->A: one run of three collapsed
    lines = goals.report.table(table, folder=tmp_path, protocol="as_described")
    fell = lines[(lines["paper"] == 43.1) & (lines["paper_sd"] == 33.0)].head(1)
    (line,) = fell.itertuples()
    groups = collapse.groups_of(table, line._asdict())
    assert goals._prints(table, line) == [Print(collapse.WIDE, pytest.approx(groups.sd**2), 1)]
    (line,) = fell.assign(seeds=3, ours_sd=1.0).itertuples()  # all of ours have collapsed
    chances = [goals._cell(table, line, 3, step, 1.0) for step in (5, 10)]
    assert chances == [0.0, 1.0]  # Fisher's exact test of 1 of 3 and 10 of 10: p = 0.04


def told(*comparisons: tuple[int, float, float], total: int = 0) -> Told:
    """A claim of open comparisons: (runs, p for it, p against it) of each."""
    lines = pd.DataFrame(comparisons, columns=["runs", *ALONE]).assign(outcome=UNTOLD)
    return Told(Claim("L1", "page", "", lambda found: [], total=total), lines)


def test_an_open_comparison_has_the_chance_that_its_p_value_leaves():
    alone = goals._claim(told((3, 0.15, 0.85)), 3, 10)
    among = goals._claim(told(*[(3, 0.15, 0.85)] * 9), 3, 10)
    assert among == pytest.approx(0.34, abs=0.03)  # of each; simulated: 0.345
    assert among < alone < 0.9


HERE = rows([98.0], seconds=100.0)  # of FedAvg on two classes, as released
TWO = [HERE, rows([0, 98.0], "cpu: B", 900.0).iloc[2:]]  # its seed 1, on another machine
FAST = rows([98.0], "cuda: G", 5.0, classes_per_device=5)
MIXED = [HERE, FAST, rows([98.0], "cuda: G", 7.0, method="local_only", fedavg_rounds=0)]
BOTH = [HERE, rows([98.0], seconds=900.0, classes_per_device=5, protocol="as_described")]


@pytest.mark.parametrize(
    ("there", "device", "part", "protocol", "classes", "price"),
    [
        (TWO, "cpu: A", "fedavg", "as_released", 2, 100),
        (TWO, "cpu: A", "fedavg", "as_described", 5, 100),  # of what resembles it
        (TWO, "cpu: A", "local", "as_described", 5, UNKNOWN),
        (MIXED, "cpu: A", "fedavg", "as_released", 5, 100),  # what a GPU took says little of a CPU
        (MIXED, "cpu: B", "fedavg", "as_released", 5, 100),
        (MIXED, "cpu: B", "local", "as_released", 2, 7),  # but more than nothing
        (MIXED, "cuda: H", "fedavg", "as_released", 5, 5),
        (MIXED, "cuda: H", "fedavg", "as_released", 2, 5),  # of five classes, there
        (BOTH, "cpu: A", "fedavg", "as_released", 5, 100),  # and not of another protocol
        (BOTH, "cpu: A", "fedavg", "as_described", 2, 900),
        (BOTH, "cpu: A", "fedavg", "as_described", 5, 900),
    ],
)
def test_a_price_is_of_this_device_or_of_what_resembles_it(
    there, device, part, protocol, classes, price, stored
):
    stored(pd.concat(there))
    ledger, asked = Ledger(goals.pieces(NAME), device), (part, protocol, classes)
    found = {(p.name, p.protocol, dict(p.changes)["classes"]): p for p in ledger.pieces}
    assert ledger.seconds(found[asked]) == price


def test_a_run_of_several_parts_costs_all_of_them():
    times = [10.0, 20.0, 60.0, 70.0]  # two parts of each of two seeds
    found = pd.DataFrame({"seed": [0, 0, 1, 1], "seconds": times})
    assert _typical(found, whole=True) == 80.0  # the median of 30 and 130
    assert _typical(found, whole=False) == 40.0  # and of 15 and 65


def test_a_claim_needs_the_lines_that_it_compares(monkeypatch):
    monkeypatch.setattr(board, "STORED", (claims,))
    found = {goal.name[:2]: goal for goal in goals.of_claims(Ledger(goals.pieces()))}
    assert set(found) == {f"L{n}" for n in range(1, 10)}
    parts = {(dict(p.changes)["classes"], p.name) for p in found["L2"].pieces}
    names = ("local", "lg_1200", "lg_1800")  # all of them are told
    assert parts == {(n, name) for n in (2, 3, 4, 5, 10) for name in names}
    assert {p.experiment for p in found["L7"].pieces} == {NAME}
    for name, one in claims.told().items():  # what is told wants nothing more
        if not one.counts[2]:
            assert not any(found[name].chances.values()), name
    wanted = {dict(piece.changes)["classes"] for piece in found["L7"].pieces}
    assert 2 not in wanted and 10 in wanted  # with two classes all comparisons are told
    assert all(set(goal.chances) <= set(STEPS) for goal in found.values())


def test_what_has_run_for_fewer_rounds_alone_has_its_price_from_them(stored):
    """Games of 500 rounds are no evidence of 8,600, but tell how long they take."""
    ids = dict(table=OPT_OUT, direction="usps-mnist", opt_out=0.25, rounds=500, metric="target_acc")
    ids |= dict(selection="last", scale="short", value=90.0, device="cpu: A")
    some = [stored_row(**ids, seed=seed, seconds=100.0 * (1 + seed)) for seed in range(3)]
    stored(pd.DataFrame(some), DIGITS.name)
    ledger = Ledger(goals.pieces(DIGITS.name), "cpu: A")
    found = {piece.name: piece for piece in ledger.pieces}
    one, other = (found[f"usps-mnist:opt_out:{rate}"] for rate in (0.25, 0.5))
    assert ledger.seconds(one) == pytest.approx(200 * 8600 / 500)
    assert ledger.seconds(other) == UNKNOWN and not ledger.seeds(one)


def test_a_goal_has_the_seeds_that_all_its_pieces_have():
    seeds = {"a": {0, 1, 2}, "b": {0}}
    assert goals._done(["a", "b"], SimpleNamespace(seeds=seeds.__getitem__)) == 1


def test_a_claim_may_be_told_either_way_and_what_has_not_run_may_come_to_be():
    one = comparison_chance(0.5, 3, 10, 0.05)
    assert goals._claim(told((3, 0.5, 0.5)), 3, 10) == pytest.approx(2 * one) and one > 0.01
    assert goals._claim(told((0, 1.0, 1.0)), 0, 3) == goals.TOGETHER
    half = comparison_chance(0.5, 3, 10, 0.025)
    both = goals._claim(told((3, 0.5, 0.5), total=2), 3, 10)
    assert both == pytest.approx(half + goals.TOGETHER / 2)
    assert goals._claim(told((1, 1.0, 1.0)), 1, 3) == goals.TOGETHER  # one seed has no p-value
