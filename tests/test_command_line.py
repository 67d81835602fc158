"""python -m lgfed_core: parsing, errors in one line, and a run that records its rows."""

import numpy as np
import pandas as pd
import pytest

from lgfed_core import __main__ as command, arguments
from lgfed_core.data.features import compute
from lgfed_core.engine import loop, provenance
from lgfed_core.evidence import records as results
from lgfed_core.papers import command_checks, experiment, experiments, printed
from lgfed_core.papers.lgfedavg.mnist import MNIST
from toy import stored_row


@pytest.mark.parametrize(
    ("text", "seeds"), [("0", [0]), ("0-3", [0, 1, 2, 3]), ("1,4-5", [1, 4, 5])]
)
def test_seeds(text, seeds):
    assert arguments.seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "why"),
    [(text, "is empty or repeats a seed") for text in ("3-1", "3-1,5", "0,0", "0-2,1")]
    + [(text, "more than 1,000 seeds") for text in ("0-99999999", "0-999,1000")]
    + [(text, "is no seed; use e.g. 0") for text in ("", "a", "1-", "-1", "0,x", "9" * 20)],
)
def test_seeds_that_are_none(text, why, capsys):
    with pytest.raises(SystemExit):
        command.main(["run", "lgfedavg.mnist", f"--seeds={text}"])
    said = capsys.readouterr().err
    assert "--seeds" in said and why in said


def test_features_of_pictures_are_computed_by_name(monkeypatch, capsys):
    class Part:
        name, x = "office31-dslr", np.zeros((3, 5))

        def __len__(self):
            return 3

    monkeypatch.setattr(compute.objects, "load", lambda *asked: said.append(asked) or Part())
    said: list = []
    assert command.main(["features", "office31", "mobilenet_v2"]) == 0
    assert said == [("office31", d, "mobilenet_v2") for d in ("amazon", "dslr", "webcam")]
    assert "office31-dslr: 3 rows of 5 numbers are ready" in capsys.readouterr().out
    for name, network, wrong in (
        ("office13", "mobilenet_v2", "set"),
        ("cifar10", "resnet50", "network"),
        ("office31", "lenet", "network"),
    ):
        assert command.main(["features", name, network]) == 1
        told = capsys.readouterr().err
        assert told.startswith("SettingsError") and wrong in told and told.count("\n") == 1


SMOKE, FILL = "run lgfedavg.mnist --scale smoke", "fill --hours 0.001 --only cgau.new_clients"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run lgfedavg.mnist --scale huge", "'huge' is none of"),
        ("run lgfedavg.mnist --protocol guess", "'guess' is none of"),
        ("run lgfedavg.mnist --set clases=5", "no setting is called 'clases'"),
        ("run lgfedavg.mnist --set classes=two", "'two' is no value for classes"),
        ("run lgfedavg.mnist --set softmax=yes", "'yes' is no value for softmax"),
        ("run lgfedavg.mnist --set batch_size=10,20", "batch_size, which is int"),
        ("run lgfedavg.mnist --set rows_per_class=1", "which is tuple[int, int] | None"),
        ("run lgfedavg.mnist --set local_stop=0.9", "which is tuple[float, int] | None"),
        ("run lgfedavg.mnist --set shrink=-1", "shrink is -1.0; it must be above 0"),
        ("run lgfedavg.mood --set persons=10000 each=1000", "persons times each is 10,000,000;"),
        ("run lgfedavg.mnist --set classes=2 lr=0.1 --set classes=5", "classes is set twice"),
        ("run fade.digits --set losses=vanilla,vanilla", "losses has 'vanilla' twice"),
        ("bench --json /nowhere/at/all.json", "cannot write /nowhere/at/all.json"),
        ("run lgfedavg.mnist --set scale=paper", "no setting is called 'scale'"),
        (f"{SMOKE} --workers 0", "workers is 0"),
        (f"{SMOKE} --lanes both", "lanes 'both' is none of"),
        ("bench --rounds 0", "rounds is 0"),
        (f"{SMOKE} --workers 1000000", "workers is 1000000; it must be at"),
        ("fill --hours 8760 --workers 1000000", "workers is 1,000,000; it must be at most 1,000"),
        ("fill --hours 1000000", "hours is 1000000.0"),
        ("bench --rounds 1000000", "rounds is 1,000,000; it must be at most 10,000"),
        (f"{FILL} --workers 0", "workers is 0; it must be at least 1"),
        (f"{FILL} --plan --workers 2", "leave out --workers and --cluster"),
        (f"{FILL} --plan --cluster banana", "leave out --workers and --cluster"),
    ],
)
def test_mistakes_give_one_line_and_status_1(line, said, capsys):
    assert command.main(line.split()) == 1
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_list_names_every_experiment(capsys):
    assert command.main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in experiments.PLACES)


RUN = ["run", "lgfedavg.mnist", "--protocol", "as_described", "--workers", "1"]


def test_run_records_rows_and_continues(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(experiment, "RUNS", tmp_path / "runs")
    record = results.record
    monkeypatch.setattr(results, "record", lambda name, rows: record(name, rows, tmp_path))
    monkeypatch.setitem(MNIST.scales, "quick", MNIST.scales["smoke"])
    monkeypatch.setattr(provenance, "_commit", lambda: "0123abcd+dirty")
    arguments = [*RUN, "--scale", "quick", "--seeds", "0,1", "--device", "cpu"]
    assert command.main(arguments) == 0
    assert "rows will say +dirty" in capsys.readouterr().out
    written = (tmp_path / "lgfedavg.mnist.csv").read_bytes()
    assert set(results.load("lgfedavg.mnist", tmp_path)["seed"]) == {0, 1}
    assert len(list((tmp_path / "runs").rglob("*.safetensors"))) == 8
    monkeypatch.setattr(loop, "round_of", None)  # any round would now fail
    assert command.main(arguments) == 0  # all parts are read, the same rows come out
    assert (tmp_path / "lgfedavg.mnist.csv").read_bytes() == written


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--scale", "smoke"], "The smallest scale"),
        (["--scale", "quick", "--set", "lr=0.2"], "--set lr changes what lgfedavg.mnist computes"),
    ],
)
def test_what_is_no_cell_is_shown_but_never_recorded(tmp_path, monkeypatch, capsys, options, why):
    monkeypatch.setattr(experiment, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(results, "record", None)  # a call would fail
    monkeypatch.setitem(MNIST.scales, "quick", MNIST.scales["smoke"])
    assert command.main([*RUN, "--set", "starts=400", *options]) == 0
    said = capsys.readouterr().out
    assert why in said and "nothing is recorded" in said and "lg_fedavg" in said


def test_rows_of_any_experiment_can_be_shown():
    ids = dict(table="t", seed=0, metric="acc")
    rows = [
        stored_row(loss="vanilla", probability=0.5, value=50.0, **ids),
        stored_row(loss="central", probability=None, value=60.0, **ids),
    ]
    said = command._shown(pd.DataFrame(rows))
    assert "50.0" in said and "60.0" in said and "probability" in said


def test_the_baselines_can_be_run_without_fedavg(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "RUNS", tmp_path)
    parts = [
        {name: outcome.final for name, outcome in MNIST.stages(cfg, [0], workers=1)}
        for cfg in (MNIST.settings("smoke", fedavg=False), MNIST.settings("smoke"))
    ]
    assert set(parts[0]) == {"local"} < set(parts[1])
    assert parts[0]["local"].equals(parts[1]["local"])
    assert len(list(tmp_path.iterdir())) == 1, "which cells are run is in no folder's name"


def test_ctrl_c_says_how_to_continue(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment.Experiment, "run", interrupted)
    assert command.main(["run", "lgfedavg.mnist", "--scale", "smoke"]) == 130
    assert "continues from the last checkpoint" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch, tmp_path):
    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr(command, "_list", closed)
    with open(tmp_path / "out", "w") as out:
        monkeypatch.setattr(command.sys, "stdout", out)
        assert command.main(["list"]) == 0


def test_a_bench_of_nothing_leaves_no_file(capsys, tmp_path):
    assert command.main(["bench", "--tasks", "", "--json", str(tmp_path / "speed.json")]) == 1
    assert "tasks names nothing to measure" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


FILLS = [(t, e, s) for t in printed.TABLES.values() for e in t.experiments for s in t.sets]


@pytest.mark.parametrize(("table", "name", "some"), FILLS, ids=lambda v: getattr(v, "name", v))
def test_what_a_report_says_to_run_is_recorded(table, name, some):
    experiment = experiments.find(name)
    changes = command_checks.changes(experiment.Settings, [some] if some else [])
    assert changes.keys() <= experiment.chooses
    for protocol in table.protocols:
        experiment.settings("paper", protocol, **changes)
