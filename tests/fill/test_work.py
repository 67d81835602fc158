"""Working through a plan: within its time, past what cannot run, and never twice at once."""

import errno
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from lgfed_core.engine.checkpoint import claimed
from lgfed_core.errors import Busy, DataError, LgfedError, ResultsError, SettingsError
from lgfed_core.evidence import records
from lgfed_core.fill import errand, work
from lgfed_core.fill.cluster import Cluster
from lgfed_core.fill.errand import Errand
from lgfed_core.fill.plan import Bundle, Task
from lgfed_core.papers.lgfedavg.mnist import MNIST

ROW = pd.DataFrame({"seed": [0]})


class Slow:
    """An experiment that notes what ran, and how; ``ends`` is what a run does."""

    name = "a.b"

    def __init__(self, ends=lambda seeds: None):
        self.ran, self.ends, self.how = [], ends, {}

    def settings(self, *_, **changes):
        return changes

    def run(self, cfg, seeds, **how):
        self.how = how
        self.ends(seeds)
        self.ran.append((cfg["name"], *seeds))
        return ROW, {}


def raising(*errors):
    """What runs do of which the first ones raise these, in turn."""
    left = iter(errors)

    def ends(seeds):
        if error := next(left, None):
            raise error

    return ends


def plan(experiment, *seconds, together=False, kept=()):
    """Makes plans of a bundle for each task that has not run, or of one for all; seconds: of each
    task."""
    tasks = [
        Task(experiment, "as_described", {"name": n}, (0,), (), took, kept)
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


def test_where_nothing_fits_one_task_is_begun():
    planner = plan(Slow(), 7200, 5400, together=True)()
    ((one, two),) = (bundle.tasks for bundle in planner.bundles())
    assert work.choose(planner, 3600, [])[1] == [one]
    assert work.choose(planner, 3600, [str(one)])[1] == [two]


@pytest.mark.parametrize(("alarm", "seconds", "done"), [(True, 5.0, 0), (False, 0.2, 2)])
def test_time_is_up_in_the_middle_of_a_run_or_without_an_alarm_after_it(
    alarm, seconds, done, monkeypatch
):
    if not alarm:
        monkeypatch.delattr(work.signal, "setitimer", raising=False)
    told, experiment, begun = [], Slow(lambda seeds: time.sleep(seconds)), time.monotonic()
    assert work.fill(0.3 / 3600, plan(experiment, *[0.01] * 9), say=told.append) == done
    assert time.monotonic() - begun < 3 and told[-1].startswith("time is up")


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarms on this system")
@pytest.mark.parametrize("errors", [(), (work.TimeUp(),)])
def test_no_alarm_is_left_behind(errors):
    before = signal.getsignal(signal.SIGALRM)
    work.fill(1, plan(Slow(raising(*errors)), 5), say=lambda text: None)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) == before


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (DataError("no data here"), "no data here"),
        (Busy("another process"), "another process"),
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (MemoryError(), "MemoryError: no message"),
        (ValueError("no shape"), "ValueError: no shape"),
        (KeyError("round"), "KeyError: 'round'"),
        (OSError(errno.ENOSPC, "disk full"), f"OSError: [Errno {errno.ENOSPC}] disk full"),
    ],
)
def test_what_cannot_run_is_named_and_left_out(error, why):
    told, experiment = [], Slow(raising(error))
    assert work.fill(1, plan(experiment, 5, 6), say=told.append) == 1
    [line] = [line for line in told if "left out: " in line]
    assert experiment.ran == [(1, 0)] and line.startswith(f"  left out: {why} (test_work.py, line ")
    assert told[-1].endswith(f"; 1 left out, the last one as: {line.removeprefix('  left out: ')}")


def test_what_time_has_stopped_is_not_left_out():
    told, experiment = [], Slow(raising(DataError("no data here"), work.TimeUp()))
    assert work.fill(1, plan(experiment, 5, 6), say=told.append) == 0
    assert told[-1].startswith("time is up") and "; 1 left out, the last one as: no" in told[-1]


def test_where_no_rows_can_be_written_nothing_runs(monkeypatch):
    full = raising(ResultsError("no row can be written"))
    monkeypatch.setattr(records, "writable", lambda: full(()))
    experiment = Slow()
    with pytest.raises(ResultsError):
        work.fill(1, plan(experiment, 5), say=lambda text: None)
    assert experiment.ran == []


def test_where_every_task_fails_the_fill_does():
    told, experiment = [], Slow(raising(*[DataError("No space left")] * 3))
    said = "nothing has run: 3 left out, the last one as: No space left"
    with pytest.raises(LgfedError, match=said):
        work.fill(1, plan(experiment, 5, 6, 7), say=told.append)
    assert sum("left out" in line for line in told) == 3


class There(Cluster):
    """A cluster of one worker, which runs what it is sent at once; ``ends`` as for `Slow`."""

    slots = 1

    def __init__(self, experiment):
        self.experiment, self.sent = experiment, []

    def rows(self, next_one):
        while errand := next_one():
            self.sent.append(errand)
            yield errand, None
            try:
                yield errand, self.experiment.run(errand.changes, errand.seeds)[0]
            except DataError as error:
                yield errand, error


def test_a_cluster_works_through_the_same_plan(monkeypatch):
    told, kept, experiment = [], [], Slow(raising(DataError("no data there")))
    monkeypatch.setattr(records, "record", lambda name, rows: kept.append((name, len(rows))))
    assert work.fill(1, plan(experiment, 5, 6, 7), say=told.append, cluster=There(experiment)) == 2
    assert experiment.ran == [(1, 0), (2, 0)] and kept == [("a.b", 1)] * 2
    assert any(line.endswith("left out, no data there") for line in told)
    assert told[-1].startswith("nothing is left")


@pytest.mark.parametrize(("workers", "there"), [(3, 3), (None, 1)])
def test_who_runs_a_task_is_told_what_stays_and_how_many_work(workers, there, monkeypatch):
    monkeypatch.setattr(records, "record", lambda name, rows: None)
    here, cluster = Slow(), There(Slow())
    for one, where in (here, None), (cluster.experiment, cluster):
        asked = plan(one, 5, kept=("fedavg",))
        work.fill(1, asked, "cpu", workers, say=lambda text: None, cluster=where)
    assert here.how == dict(kept=("fedavg",), device="cpu", workers=workers)
    (sent,) = cluster.sent
    assert (sent.kept, sent.device, sent.workers) == (("fedavg",), "cpu", there)


@pytest.mark.parametrize(("kind", "lanes"), [("cpu", False), ("cuda", True)])
def test_a_plan_is_made_for_the_device_that_works(kind, lanes, monkeypatch):
    monkeypatch.setattr(work, "place_of", lambda device: torch.device(kind))
    monkeypatch.setattr(work, "provenance", lambda place: {"device": f"{place.type}: one"})
    monkeypatch.setattr(work.goals, "pieces", lambda only: [])
    monkeypatch.setattr(work.goals, "every", lambda ledger: [])
    found = work.planner()
    assert (found.lanes, found.ledger.device) == (lanes, f"{kind}: one")
    far = work.planner("cuda", elsewhere=True)
    assert (far.lanes, far.ledger.device) == (True, "cuda"), "whatever is here"


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
