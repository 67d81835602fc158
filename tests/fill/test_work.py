"""Working through a plan: within its time, past what cannot run, and never twice at once."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from lgfed_core.engine.checkpoint import claimed
from lgfed_core.errors import Busy, CheckpointError, DataError, LgfedError, SettingsError
from lgfed_core.evidence import records
from lgfed_core.fill import errand, work
from lgfed_core.fill.cluster import Cluster
from lgfed_core.fill.errand import Errand
from lgfed_core.fill.plan import Bundle, Task
from lgfed_core.papers.lgfedavg.mnist.run import MNIST

ROW = pd.DataFrame({"seed": [0]})


class Slow:
    """An experiment that notes what ran; ``ends`` is what a run does."""

    name = "a.b"

    def __init__(self, ends=lambda seeds: None):
        self.ran, self.ends = [], ends

    def settings(self, *_, **changes):
        return changes

    def run(self, cfg, seeds, **how):
        self.ends(seeds)
        self.ran.append((cfg["name"], *seeds))
        return ROW, {}


def plan(experiment, *seconds, together=False):
    """Makes plans of a bundle for each task that has not run, or of one for all; seconds: of each
    task."""
    tasks = [
        Task(experiment, "as_described", {"name": n}, (0,), (), took)
        for n, took in enumerate(seconds)
    ]

    def again():
        left = [t for t in tasks if (t.changes["name"], 0) not in experiment.ran]
        some = [left] if together and left else [[task] for task in left]
        return SimpleNamespace(bundles=lambda: [Bundle((*t,), ("why",), 3, 1.0) for t in some])

    return again


@pytest.fixture(autouse=True)
def no_nice(monkeypatch):
    monkeypatch.setattr(work.os, "nice", lambda by: by, raising=False)


def test_the_plan_is_worked_through_in_order():
    told, experiment = [], Slow()
    assert work.fill(1, plan(experiment, 5, 6), say=told.append) == 2
    assert experiment.ran == [(0, 0), (1, 0)]
    assert told[0] == "to 3 seeds for why:" and told[-1].startswith("nothing is left")
    assert "about 5 s, of 1 h left" in told[1]


def test_what_fits_in_the_time_goes_before_what_does_not():
    experiment = Slow()
    work.fill(1, plan(experiment, 7200, 60), say=lambda text: None)
    assert experiment.ran == [(1, 0), (0, 0)]


def test_each_task_is_held_against_the_time_that_is_left():
    experiment = Slow()
    work.fill(1, plan(experiment, 60, 7200, 7200, 50, together=True), say=lambda text: None)
    assert experiment.ran == [(0, 0), (3, 0), (1, 0), (2, 0)]  # these two are begun, at least
    experiment = Slow(lambda seeds: time.sleep(0.2))
    work.fill(1.2 / 3600, plan(experiment, 0.1, 1.1, 0.1, together=True), say=lambda text: None)
    assert experiment.ran[:2] == [(0, 0), (2, 0)]  # the first took longer than it should have


def test_without_an_alarm_nothing_begins_after_the_end(monkeypatch):
    monkeypatch.delattr(work.signal, "setitimer", raising=False)
    told, experiment = [], Slow(lambda seeds: time.sleep(0.2))
    assert work.fill(0.3 / 3600, plan(experiment, *[0.01] * 9), say=told.append) == 2
    assert told[-1].startswith("time is up")


def test_time_is_up_in_the_middle_of_a_run():
    told, experiment = [], Slow(lambda seeds: time.sleep(5))
    begun = time.monotonic()
    assert work.fill(0.3 / 3600, plan(experiment, 5), say=told.append) == 0
    assert time.monotonic() - begun < 3 and told[-1].startswith("time is up")


@pytest.mark.parametrize(
    "error", [DataError("no data here"), Busy("another process"), RuntimeError("out of memory")]
)
def test_what_cannot_run_is_named_and_left_out(error):
    told, experiment = [], Slow()

    def ends(seeds):
        if not experiment.ran and not told[-1].startswith("  left out"):
            experiment.ends = lambda seeds: None
            raise error

    experiment.ends = ends
    assert work.fill(1, plan(experiment, 5, 6), say=told.append) == 1
    assert experiment.ran == [(1, 0)] and f"  left out: {error}" in told
    assert told[-1].endswith(f"; 1 left out, the last one as: {error}")


def test_where_every_task_fails_the_fill_does():
    def ends(seeds):
        raise CheckpointError("No space left on device")

    told = []
    with pytest.raises(
        LgfedError, match="nothing has run: 3 left out, the last one as: No space left"
    ):
        work.fill(1, plan(Slow(ends), 5, 6, 7), say=told.append)
    assert sum("left out" in line for line in told) == 3


class There(Cluster):
    """A cluster of one worker, which runs what it is sent at once; ``ends`` as for `Slow`."""

    slots = 1

    def __init__(self, experiment):
        self.experiment = experiment

    def rows(self, next_one):
        while errand := next_one():
            yield errand, None
            try:
                yield errand, self.experiment.run(errand.changes, errand.seeds)[0]
            except DataError as error:
                yield errand, error


def test_a_cluster_works_through_the_same_plan(monkeypatch):
    told, kept, experiment = [], [], Slow()
    monkeypatch.setattr(records, "record", lambda name, rows: kept.append((name, len(rows))))

    def ends(seeds):
        if not experiment.ran and not any("left out" in line for line in told):
            raise DataError("no data there")

    experiment.ends = ends
    assert work.fill(1, plan(experiment, 5, 6, 7), say=told.append, cluster=There(experiment)) == 2
    assert experiment.ran == [(1, 0), (2, 0)] and kept == [("a.b", 1)] * 2
    assert any(line.endswith("left out, no data there") for line in told)
    assert told[-1].startswith("nothing is left")


def test_hours_are_a_time_to_work():
    for hours in (0, -1, float("nan"), float("inf"), 1e13):
        with pytest.raises(SettingsError, match="how long to work"):
            work.fill(hours, plan(Slow()))


def test_what_ran_only_as_a_start_leaves_no_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("lgfed_core.papers.experiment.RUNS", tmp_path)
    kept = []
    monkeypatch.setattr(records, "record", lambda name, rows: kept.append(set(rows["method"])))
    asked = Errand("lgfedavg.mnist", "smoke", "as_described", dict(starts=(800,), alone=()), (0,))
    cfg = MNIST.settings("smoke", starts=(800,), alone=())
    rows, histories = MNIST.run(cfg, [0], workers=1, kept=("fedavg",))
    assert set(histories) == {"fedavg", "lg_800"}
    assert kept == [{"lg_fedavg"}] and set(rows["method"]) == {"lg_fedavg"}
    there = errand.rows(errand.answer(replace(asked, kept=("fedavg",)).asked()))
    assert set(there["method"]) == {"lg_fedavg"}


def test_two_runs_never_share_a_folder_of_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr("lgfed_core.papers.experiment.RUNS", tmp_path)
    cfg = MNIST.settings("smoke")
    held = claimed(MNIST.folder(cfg, [0]), folder=True)
    with held, pytest.raises(Busy, match="another process is running .*smoke"):
        MNIST.run(cfg, [0], record=False)
