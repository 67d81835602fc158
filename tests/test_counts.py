"""Counts that become processes, tensors or hours: as many as there is use for, or refused by name.

Nothing here starts what it asks for: pools are told apart from what would fork.
"""

import os

import pytest

import build
from lgfed_core.engine import LocalTraining, processes, run
from lgfed_core.engine.processes import checked_workers
from lgfed_core.errors import SettingsError
from lgfed_core.fill import errand
from lgfed_core.methods import FedAvg
from lgfed_core.papers import experiments
from lgfed_core.papers.settings import _kinds
from toy import SGD, toy_federation

MNIST = experiments.find("lgfedavg.mnist")


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    """A machine on which nothing forks."""

    def refuse(workers, *_):
        raise RuntimeError(f"{workers} processes")

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(processes.sys, "platform", "linux")
    monkeypatch.setattr(processes, "ProcessPoolExecutor", refuse)
    monkeypatch.delenv("LGFED_WORKERS", raising=False)
    processes._tell.cache_clear()


@pytest.mark.parametrize(
    ("asked", "jobs", "due", "said"),
    [
        (None, None, 8, ""),
        (None, 3, 3, ""),
        (1, None, 1, ""),
        (8, 100, 8, ""),
        (9, None, 8, "workers is 9, and there are 8 cores: no more processes"),
        (1000, 100, 8, "workers is 1000, and there are 8 cores"),
        (8, 1, 1, "workers is 8, and there is 1 model: no more"),
        (8, 3, 3, "workers is 8, and there are 3 models:"),
    ],
)
def test_there_are_no_more_workers_than_cores_or_jobs(asked, jobs, due, said, monkeypatch, capsys):
    assert checked_workers(asked, jobs) == due
    assert said in capsys.readouterr().err
    assert checked_workers(asked, jobs) == due and not capsys.readouterr().err, "said once"
    if asked:
        monkeypatch.setenv("LGFED_WORKERS", str(asked))
        assert checked_workers(None, jobs) == due
        assert said.replace("workers", "LGFED_WORKERS", 1) in capsys.readouterr().err


@pytest.mark.parametrize("number", [1001, 10**6, 10**9, 10**30, "9" * 30, "9" * 5000], ids=range(6))
def test_more_workers_than_anybody_can_mean_are_refused_by_name(number, monkeypatch):
    monkeypatch.setenv("LGFED_WORKERS", str(number))
    for asked, name in ((number, "workers"), (None, "LGFED_WORKERS")):
        with pytest.raises(SettingsError, match=f"^{name} is .* must be at most 1,000"):
            checked_workers(asked)


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "2.5"])
def test_what_is_no_number_of_workers_names_the_variable(wrong, monkeypatch):
    monkeypatch.setenv("LGFED_WORKERS", wrong)
    with pytest.raises(SettingsError, match=f"LGFED_WORKERS is '{wrong}'; it must be a whole"):
        checked_workers(None)


def test_a_run_starts_a_process_for_each_model_at_most():
    federation = toy_federation()
    lanes = len(federation.seeds) * federation.clients
    with pytest.raises(RuntimeError, match=f"^{min(8, lanes)} processes"):
        run(federation, FedAvg(), SGD, 1, workers=1000)


@pytest.mark.parametrize("many", [range(1001), range(10**9)])
def test_nor_does_an_experiment(many):
    with pytest.raises(SettingsError, match=r"number of seeds is .* must be at most 1,000"):
        MNIST.plan(MNIST.settings("smoke"), many, "cpu")


@pytest.mark.parametrize("name", experiments.PLACES)
def test_every_whole_number_of_an_experiment_has_an_end(name):
    experiment = experiments.find(name)
    for setting, kind in _kinds(experiment.Settings).items():
        if kind.kinds[0] is int:
            several = (10**9,) * max(len(kind.kinds), 1)
            value = several if kind.many or len(kind.kinds) > 1 else 10**9
            with pytest.raises(SettingsError, match=rf"{setting} (is|has) 10{{9}}; .* at most"):
                experiment.settings("smoke", **{setting: value})


@pytest.mark.parametrize(
    ("name", "setting", "most"),
    [
        *(("lgfedavg.vqa", "batch_size", 10_000), ("lgfedavg.mood", "mlp", 10_000)),
        *(("lgfedavg.mood", "epochs", 1_000), ("cgau.audio", "units", 10_000)),
        *(("fade.objects", "target_users", 1_000), ("fade.digits", "looks", 10_000)),
    ],
)
def test_what_becomes_tensors_or_parts_ends_where_a_machine_does(name, setting, most):
    experiment = experiments.find(name)
    experiment.Settings(**{setting: most})
    for many in (most + 1, 10**6):
        with pytest.raises(SettingsError, match=f"{setting} is {many}; .* at most {most:,}"):
            experiment.settings("smoke", **{setting: many})


def test_batches_are_not_padded_to_a_size_that_no_device_has():
    large = LocalTraining(0.1, 10**6)
    with pytest.raises(SettingsError, match="batch_size is 1,000,000, and no device has more than"):
        run(toy_federation(), FedAvg(), large, 1, lanes="batched")
    assert run(toy_federation(), FedAvg(), large, 1, workers=1).final is not None
    run(toy_federation(), FedAvg(), LocalTraining(0.1, 1000), 1, lanes="batched")


def test_an_errand_asks_nobody_for_a_million_workers():
    with pytest.raises(SettingsError, match="workers is 1,000,000"):
        errand.Errand("lgfedavg.mnist", "smoke", "as_described", {}, (0,), workers=10**6)


@pytest.mark.parametrize("jobs", ["0", "-3", "1000000", "1000000000"])
def test_a_build_refuses_jobs_that_nobody_can_mean(jobs, capsys):
    with pytest.raises(SystemExit):
        build.main(["--jobs", jobs])
    assert f"--jobs is {jobs}; it must be at least 1 and at most 1,000" in capsys.readouterr().err


def test_a_build_runs_no_more_at_once_than_there_are_cores(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(build, "build", lambda *how, **_: asked.append(how[2]))
    monkeypatch.setattr(build, "cores", lambda: 8)
    monkeypatch.setattr(build.signal, "signal", lambda *_: None)
    assert build.main(["--jobs", "1000"]) == 0 and asked == [8]
    assert "--jobs is 1000, and there are 8 cores" in capsys.readouterr().out
