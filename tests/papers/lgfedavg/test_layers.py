"""Every cut of the network: from the very FedAvg model of the experiments, counted, compared."""

import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.evidence import records as results
from lgfed_core.papers import experiment
from lgfed_core.papers.lgfedavg import layers as cuts
from lgfed_core.papers.lgfedavg.layers import LAYERS
from lgfed_core.papers.lgfedavg.mnist import MNIST
from toy import stored_row


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """FedAvg and the paper's cut by the MNIST experiment, then five cuts from its checkpoints."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "RUNS", place)
        cpu = torch.device("cpu")
        own = dict(MNIST.stages(MNIST.settings("smoke"), [0], cpu, workers=1))
        before = {p: p.stat().st_mtime_ns for p in place.rglob("*.safetensors")}
        cfg = LAYERS.settings("smoke", budget=400, last=(3, 0, 5), first=(2, 3))
        found = dict(LAYERS.stages(cfg, [0], cpu, workers=1))
    return cfg, own, found, before, place


def test_cuts_start_from_the_checkpoints_of_the_experiment(runs):
    _, own, found, before, place = runs
    assert before and all(path.stat().st_mtime_ns == time for path, time in before.items())
    new = set(place.rglob("*.safetensors")) - set(before)
    folders = {path.parent.name for path in new}
    assert folders == {"last_0", "last_5", "first_2", "first_3"}, "the paper's cut was there"
    assert found["last_3"].final.equals(own["lg_400"].final)
    assert not found["first_3"].final.equals(own["lg_400"].final)


def test_all_layers_shared_is_fedavg_going_on(runs):
    cfg, own, found, _, _ = runs
    history = own["fedavg"].history.set_index("round")
    after = history.loc[cfg.base.rounds(400) + 1]
    assert cfg.base.rounds(cfg.base.lg_rounds) == 1
    final = found["last_5"].final.loc[0]
    assert final["last_new_test_acc_weights"] == pytest.approx(after["new_test_acc"])
    assert final["last_local_test_acc"] == pytest.approx(after["local_test_acc"])


def test_rows_are_accepted_and_name_what_is_shared(runs, tmp_path):
    cfg, own, found, _, _ = runs
    rows = pd.concat([LAYERS.records(cfg, part, outcome) for part, outcome in found.items()])
    results.record(LAYERS.name, rows, tmp_path)
    stored = results.select(LAYERS.name, folder=tmp_path)
    sizes = stored[stored["metric"] == "params_shared"].groupby(["side", "shared_layers"])["value"]
    total, last, first = 633_226, 99_978, 784 * 512 + 512 + 512 * 256 + 256
    expected = {("start", 5): total, ("last", 5): total, ("last", 0): 0, ("last", 3): last}
    expected |= {("first", 2): first, ("first", 3): first + 256 * 256 + 256}
    assert sizes.first().to_dict() == expected
    for part in cfg.cuts:
        assert found["{}_{}".format(*part)].layout.size_shared == expected[part]
    assert cuts.cell(stored, "mnist", scale="smoke").empty, "another start than the usual"
    start = stored[(stored["side"] == "start") & (stored["metric"] == "local_test_acc")]["value"]
    line = own["fedavg"].history.set_index("round").loc[cfg.base.rounds(400)]
    assert start.item() == pytest.approx(100 * line["local_test_acc"])
    assert stored["value"][stored["metric"].str.contains("_acc")].between(0, 100).all()


def test_as_released_starts_at_the_best_on_test():
    cfg = LAYERS.settings("smoke", "as_released", last=(5,), first=())
    rows, _ = LAYERS.run(cfg, [0], record=False, resume=False, workers=1, device="cpu")
    start = rows[rows["side"] == "start"]
    assert set(start["selection"]) == {"best_test"} and "local_test_acc" not in set(start["metric"])
    assert set(rows.loc[rows["side"] == "last", "selection"]) == {"last", "best_test"}


def invented(values: dict) -> pd.DataFrame:
    """Stored rows of MNIST: {(side, n): (local of each seed, new of each seed)}."""
    ids = dict(table=LAYERS.table, dataset="mnist", classes_per_device=2, fedavg_rounds=800)
    cut, start = dict(lg_rounds=100), dict(lg_rounds=0, selection="last")
    lines = [
        stored_row(side=side, shared_layers=n, seed=seed, metric=metric, value=value, **ids)
        | (start if side == "start" else cut)
        for (side, n), tests in values.items()
        for metric, numbers in zip(("local_test_acc", "new_test_acc_outputs"), tests, strict=True)
        for seed, value in enumerate(numbers)
    ]
    sizes = [x | {"metric": "params_shared", "value": 1} for x in lines if "local" in x["metric"]]
    weights = [x | {"metric": "new_test_acc_weights"} for x in lines if "outputs" in x["metric"]]
    return pd.DataFrame(lines + weights + sizes)


def test_the_papers_cut_is_paired_with_each_other_that_has_run():
    ran = {
        ("start", 5): ([80, 80, 80], [80, 80, 80]),
        ("last", 3): ([91, 92, 93], [70, 70, 70]),
        ("last", 5): ([90, 90, 90], [80, 80, 80]),
        ("first", 3): ([96, 96, 96], [60, 60]),
    }
    cell = cuts.cell(invented(ran), "mnist")
    said = cuts.sharing(cell, "mnist")
    reach = 4.302653 / np.sqrt(3)  # t at 97.5 %, two degrees of freedom, deviation 1
    ahead = f"+2.00</td><td>{2 - reach:+.2f} to {2 + reach:+.2f}</td><td>3</td>"
    assert f"<td>local test, all shared</td><td>{ahead}" in said
    assert "<td>new test, the first 3 layers shared</td><td><b>+10.00</b>" in said
    assert "none shared" not in said, "what has not run has no line"
    assert "not yet run" in cuts.sharing(cell.iloc[:0], "mnist")
    assert cuts.cell(invented(ran), "cifar10").empty
