"""What is worth running next, on made-up goals, rows and prices."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from lgfed_core.engine import checkpoint
from lgfed_core.fill.goals import Goal
from lgfed_core.fill.plan import Planner
from lgfed_core.fill.words import beside, full, length, said
from lgfed_core.papers import commands
from lgfed_core.papers.parts import Piece


def piece(name: str, classes: int = 2, after: tuple[str, ...] = ()) -> Piece:
    lg = (int(name[3:]),) if name.startswith("lg_") else ()
    changes = dict(classes=classes, fedavg=name != "local", starts=lg)
    changes["alone"] = ("local",) if name == "local" else ()
    cell = (("classes_per_device", classes), ("part", name))
    return Piece("lgfedavg.mnist", "as_described", name, tuple(changes.items()), cell, after)


FEDAVG, LG, LOCAL = piece("fedavg"), piece("lg_400", after=("fedavg",)), piece("local")
FAR, OTHER = piece("local", classes=5), piece("lg_800", after=("fedavg",))
HOUR = {FEDAVG: 3600.0, LOCAL: 600.0, LG: 600.0, FAR: 600.0}  # in the order of their parts


@pytest.fixture(autouse=True)
def no_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr("lgfed_core.papers.experiment.RUNS", tmp_path)


def plan(goals, seeds=None, seconds=HOUR, lanes=False) -> Planner:
    """seeds: how many each piece has, from 0 on; seconds: of one seed of each."""
    there = {one: frozenset(range((seeds or {}).get(one, 0))) for one in seconds}
    ledger = SimpleNamespace(
        pieces=tuple(seconds), seeds=there.__getitem__, seconds=seconds.__getitem__
    )
    return Planner(goals, ledger, lanes)


def goal(*pieces, claim=False, name="", begun=0, **chances) -> Goal:
    """chances: of a verdict, as at3=.5."""
    found = {int(step[2:]): chance for step, chance in chances.items()}
    return Goal(name or pieces[0].name, claim, "inconclusive", frozenset(pieces), found, begun)


def first(planner: Planner):
    return next(planner.bundles())


def test_of_two_verdicts_the_likelier_for_its_time_comes_first():
    likely, dear = goal(LOCAL, at3=0.4), goal(FEDAVG, at3=0.9)
    assert first(plan([dear, likely])).tasks[0].pieces == (LOCAL,)
    dear = goal(FEDAVG, at3=0.9, name="dear")
    assert first(plan([dear, likely], seconds=HOUR | {FEDAVG: 60.0})).tasks[0].pieces == (FEDAVG,)


def test_of_two_steps_that_gain_alike_for_their_time_the_smaller_comes_first():
    found = plan([goal(LOCAL, at3=0.25, at5=0.75)], {LOCAL: 2}).bundles()
    assert [bundle.step for bundle in found] == [3, 5]


def test_a_claim_comes_before_a_single_cell():
    cell, claim = goal(FAR, at3=0.5), goal(LOCAL, claim=True, name="claim", at3=0.5)
    assert first(plan([cell, claim])).why == ("claim",)


def test_a_claim_that_drives_a_bundle_is_named_first():
    cell, claim = (
        goal(LOCAL, at3=0.5, name="cell"),
        goal(LOCAL, FAR, claim=True, name="all", at3=0.5),
    )
    idle = goal(LOCAL, at10=0.9, name="idle")  # gains nothing yet
    assert first(plan([cell, claim, idle], {LOCAL: 2, FAR: 3})).why == ("all", "cell")


def test_all_pieces_of_a_comparison_run_together_to_the_next_step_that_can_decide():
    found = first(plan([goal(FEDAVG, LG, LOCAL, at5=0.9)], {FEDAVG: 3, LG: 3, LOCAL: 3}))
    assert found.step == 5 and found.decided == pytest.approx(0.9)
    assert [(task.seeds, task.pieces) for task in found.tasks] == [
        ((3,), (FEDAVG, LOCAL, LG)),
        ((4,), (FEDAVG, LOCAL, LG)),
    ]


def test_nothing_runs_for_what_is_decided_or_cannot_be():
    assert not list(plan([goal(LOCAL), goal(FAR, at10=0.0)], {FAR: 5}).bundles())


def test_a_step_that_was_begun_is_finished_and_promises_no_more_than_it_can():
    begun, open_ = goal(LOCAL, begun=3, at3=0.1), goal(FAR, at3=0.9)
    found = first(plan([open_, begun], {LOCAL: 2, FAR: 2}))
    assert found.why == ("local",) and found.tasks[0].pieces == (LOCAL,)
    assert found.decided == pytest.approx(0.1)


def test_a_first_look_at_what_is_unknown_beats_a_third_seed_that_decides_nothing():
    new, known = goal(FAR, at3=0.0), goal(LOCAL, at3=0.01)
    found = first(plan([known, new], {LOCAL: 2}))
    assert (found.step, found.tasks[0].pieces, found.tasks[0].seeds) == (1, (FAR,), (0,))
    part = goal(LOCAL, FAR, at3=0.0)  # of which something is known
    assert not list(plan([part], {LOCAL: 1}).bundles())


def saved(task, name: str, share: float = 0.0) -> Path:
    """The checkpoint of a part of ``task``, after a ``share`` of its rounds; 0: as it is."""
    plan = task.experiment.plan(task.settings, task.seeds, "cpu")
    (part,) = (part for part in plan if part.name == name)
    if share:
        checkpoint.save(part.saved, {}, {"round": round(share * part.rounds)}, "")
    return part.saved


def test_what_a_run_goes_on_from_is_paid_once():
    lg = [goal(LG, at3=0.5)]
    alone = first(plan(lg, {FEDAVG: 3, LG: 2}))
    assert alone.seconds == 4200  # FedAvg has rows, but no checkpoint here
    saved(alone.tasks[0], "fedavg", 1.0)
    assert first(plan(lg, {FEDAVG: 3, LG: 2})).seconds == 600
    saved(alone.tasks[0], "fedavg").unlink()
    other = goal(piece("lg_400", after=("fedavg",)), FEDAVG, at3=0.5, name="both")
    assert sum(b.seconds for b in plan([*lg, other]).bundles()) == 3 * 4200


def test_what_shares_a_start_is_cheaper_once_that_has_run():
    goals = [goal(LG, at3=0.9, name="a"), goal(OTHER, at5=0.9, name="b"), goal(FAR, at3=0.05)]
    there = {FEDAVG: 1, LG: 1, OTHER: 1, FAR: 2}
    found = list(plan(goals, there, HOUR | {OTHER: 600.0}).bundles())
    assert [(bundle.why[0], bundle.seconds) for bundle in found] == [
        ("a", 2 * 4200),  # seeds 1 and 2
        ("b", 4 * 600 + 2 * 3600),  # seeds 1 to 4, of which 3 and 4 have no start
        ("local", 600),  # before "b", if that paid for all four starts
    ]


def test_what_gains_nothing_at_a_step_is_not_brought_there_along():
    goals = [goal(LG, at5=0.9), goal(OTHER, at3=0.25)]
    there = dict.fromkeys((FEDAVG, LG, OTHER), 2)
    one, two = plan(goals, there, HOUR | {OTHER: 600.0}).bundles()
    assert (one.step, {task.pieces for task in one.tasks}) == (5, {(LG,)})
    assert (two.step, {task.pieces for task in two.tasks}) == (3, {(OTHER,)})


def test_rounds_that_a_checkpoint_has_are_not_paid_again():
    lg, seeds = [goal(LG, at3=0.5)], {FEDAVG: 3, LG: 2}
    task = first(plan(lg, seeds)).tasks[0]
    saved(task, "fedavg", 0.5)
    assert first(plan(lg, seeds)).seconds == pytest.approx(1800 + 600)
    saved(task, "lg_400", 0.75)
    assert first(plan(lg, seeds)).seconds == pytest.approx(1800 + 150)
    saved(task, "fedavg").write_bytes(b"")  # damaged: nothing of it counts
    assert first(plan(lg, seeds)).seconds == pytest.approx(3600 + 150)


def test_budgets_that_share_a_start_come_together_before_what_is_worth_more_than_each_alone():
    budgets = [piece(f"lg_{n}", after=("fedavg",)) for n in (400, 500, 600, 700, 800)]
    seconds = {FEDAVG: 1500.0, FAR: 1600.0} | dict.fromkeys(budgets, 150.0)
    goals = [goal(FAR, at3=0.9), *(goal(one, at3=0.9) for one in budgets)]
    one, two = plan(goals, {FEDAVG: 3} | dict.fromkeys((FAR, *budgets), 2), seconds).bundles()
    assert set(one.tasks[0].pieces) == set(budgets) and one.decided == pytest.approx(4.5)
    assert (one.seconds, two.seconds) == (2250, 1600)  # a budget alone takes 1650


def test_what_was_trained_along_is_done_and_no_bundle_is_empty():
    goals = [goal(LG, at3=0.9), goal(FEDAVG, at3=0.5), goal(OTHER, at3=0.2)]
    found = list(plan(goals, seconds=HOUR | {OTHER: 600.0}).bundles())
    assert sum(bundle.decided for bundle in found) == pytest.approx(1.6)
    assert all(bundle.tasks for bundle in found)
    assert sum(bundle.seconds for bundle in found) == 3 * (3600 + 600 + 600)


def test_rows_of_a_start_stay_as_they_are():
    lg = [goal(LG, at3=0.5)]
    for there, kept in ((3, ("fedavg",)), (2, ())):
        (task,) = first(plan(lg, {FEDAVG: there, LG: 2})).tasks
        assert (task.seeds, task.kept) == ((2,), kept)
    (task,) = first(plan(lg, {FEDAVG: 2, LG: 1}, lanes=True)).tasks
    assert (task.seeds, task.kept) == ((1, 2), ())  # one of them has none
    (task,) = first(plan([goal(LG, FEDAVG, at3=0.5)], {FEDAVG: 2, LG: 2})).tasks
    assert task.kept == ()  # it is asked for itself


def test_seeds_are_lanes_where_a_gpu_works():
    (task,) = first(plan([goal(LOCAL, at3=0.9)], lanes=True)).tasks
    assert task.seeds == (0, 1, 2) and task.seconds == 1800


def test_tasks_come_seed_by_seed_in_the_order_of_numbers():
    tasks = plan([]).tasks({(LOCAL, 10), (FAR, 2), (LOCAL, 2)})
    found = [(*task.seeds, *task.pieces) for task in tasks]
    assert found == [(2, LOCAL), (2, FAR), (10, LOCAL)]


def test_a_full_board_counts_what_is_missing_everywhere():
    planner = plan([goal(LOCAL, at3=0.0), goal(FAR)], {LOCAL: 2, FAR: 3})
    assert [planner.full(step) for step in (3, 5)] == [(1, 600.0), (5, 3000.0)]
    assert full(planner).splitlines()[0].endswith("at 3 seeds: 1 runs, 10 min")


def test_the_plan_says_what_why_and_how_long():
    text = said(plan([goal(LOCAL, at3=0.9, name="Table 6: local only")]))
    assert "30 min, 30 min in all: to 3 seeds, about 0.9 verdicts; Table 6: local only" in text
    assert "lgfedavg.mnist as_described classes=2 fedavg=False starts= alone=local seed 2" in text
    assert said(plan([])).startswith("nothing is left that could decide anything")
    assert [length(s) for s in (20, 90, 3599, 6600)] == ["20 s", "2 min", "1 h", "1 h 50 min"]


def test_what_is_planned_can_be_typed():
    from lgfed_core.papers import command_checks, experiments

    task = first(plan([goal(FEDAVG, LG, at3=1.0)])).tasks[0]
    words = str(task).split(" seed")[0].split()[2:]
    assert (
        command_checks.changes(experiments.find("lgfedavg.mnist").Settings, words) == task.changes
    )
    assert commands.text((1, 2)) == "1,2"


def test_what_decides_nothing_is_said_beside_the_plan():
    goals = [goal(LG, at3=0.5)]  # LOCAL and FAR are nobody's; FEDAVG is what LG goes on from
    line = "beside these, what decides no verdict: lgfedavg.mnist, "
    assert beside(plan(goals)) == [line + "2 runs, 20 min"]
    assert beside(plan(goals, {LOCAL: 1})) == [line + "1 run, 10 min"]
    assert beside(plan(goals, {LOCAL: 1, FAR: 3})) == []
    assert said(plan(goals)).endswith("2 runs, 20 min")
