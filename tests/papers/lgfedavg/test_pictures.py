"""MNIST and CIFAR-10 end to end at smoke scale, on the real images; tables of their pages."""

import numpy as np
import pandas as pd
import pytest

from lgfed_core.evidence import records as results, report
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers.lgfedavg import comparisons, records
from lgfed_core.papers.lgfedavg.cifar10 import CIFAR10
from lgfed_core.papers.lgfedavg.comparisons import BUDGETS, FULL, LOCAL
from lgfed_core.papers.lgfedavg.mnist import MNIST
from lgfed_core.papers.lgfedavg.printed import TABLES
from toy import stored_row


@pytest.fixture(
    scope="module",
    params=[(experiment, protocol) for experiment in (MNIST, CIFAR10) for protocol in PROTOCOLS],
    ids=lambda pair: f"{pair[0].name}-{pair[1]}",
)
def smoke(request):
    experiment, protocol = request.param
    cfg = experiment.settings("smoke", protocol)
    quiet = dict(record=False, resume=False, workers=1, device="cpu")
    return experiment, cfg, *experiment.run(cfg, [0], **quiet)


def test_every_row_of_the_tables_at_both_selections(smoke):
    experiment, cfg, rows, histories = smoke
    starts, whole = BUDGETS[cfg.DATA], BUDGETS[cfg.DATA][-1]
    lines = {("fedavg", whole, 0), ("local_only", 0, 0), *(("lg_fedavg", n, 100) for n in starts)}
    mtl = {("mtl", whole, 0)} if "mtl" in cfg.alone else set()
    alone = ["local", *(method for method, *_ in mtl)]
    assert list(histories) == ["fedavg", *(f"lg_{n}" for n in starts), *alone]
    cells = rows.groupby(["method", "fedavg_rounds", "lg_rounds", "selection"])["metric"].agg(set)
    assert set(cells.index.droplevel("selection")) == lines | mtl
    assert set(rows["selection"]) == {"last", report.SELECTION[cfg.protocol]}
    assert all({"local_test_acc", "new_test_acc", "params_communicated"} <= c for c in cells)
    served = cells.xs("last", level="selection").drop("fedavg")
    assert served.map({f"new_test_acc_{way}" for way in records.NEW}.issubset).all()
    tables = rows.groupby(rows["method"] == "mtl")["table"].agg(set).to_dict()
    assert tables[False] == {experiment.table}
    assert tables.get(True, {"lgfedavg_v2_table1_cifar10"}) == {"lgfedavg_v2_table1_cifar10"}


def test_as_released_lg_is_taken_at_the_first_peak(smoke):
    _, cfg, rows, histories = smoke
    start = BUDGETS[cfg.DATA][0]
    lg = rows[(rows["fedavg_rounds"] == start) & (rows["selection"] != "last")]
    value = lg[lg["method"] == "lg_fedavg"].set_index("metric")["value"]
    if cfg.released:
        history = histories[f"lg_{start}"]
        peak = history.loc[history["averaged_local_test_acc"].idxmax()]
        assert value["local_test_acc"] == pytest.approx(100 * peak["averaged_local_test_acc"])
        assert value["new_test_acc"] == pytest.approx(100 * peak["averaged_new_test_acc"])
    else:
        assert value["new_test_acc"] == value["new_test_acc_outputs"]


def test_the_headline_is_the_best_and_last_is_the_last(smoke):
    _, cfg, rows, histories = smoke
    fedavg = rows[(rows["method"] == "fedavg") & (rows["metric"] == "new_test_acc")]
    value, history = fedavg.set_index("selection")["value"], histories["fedavg"].set_index("round")
    last = history.loc[cfg.rounds(BUDGETS[cfg.DATA][-1]), "new_test_acc"]
    assert value["last"] == pytest.approx(100 * last)
    by = "new_test_acc" if cfg.released else "validation_acc"
    best = history.loc[history[by].idxmax(), "new_test_acc"]
    assert value[report.SELECTION[cfg.protocol]] == pytest.approx(100 * best)


def test_rows_are_found_by_claims_and_tables(smoke, tmp_path):
    experiment, cfg, rows, _ = smoke
    results.record(experiment.name, rows.assign(scale="paper"), tmp_path)
    stored, data = results.load(folder=tmp_path), cfg.DATA
    read = comparisons.Read(records.by_seed(stored), (cfg.protocol, report.SELECTION[cfg.protocol]))
    for who in (FULL[data], LOCAL, *map(comparisons.lg, BUDGETS[data])):
        for test in ("local_test_acc", "new_test_acc"):
            assert len(read.get(data, 2, who, test)) == 1
    if experiment is CIFAR10:
        mtl = report.table(TABLES["lgfedavg_v2_table1_cifar10"], folder=tmp_path)
        assert (mtl.loc[mtl["method"] == "mtl", "seeds"] > 0).any()


def test_progress_puts_lg_after_its_fedavg(smoke):
    experiment, cfg, _, histories = smoke
    curves, start = experiment.progress(cfg, histories), BUDGETS[cfg.DATA][-1]
    assert curves[curves["part"] == f"lg_{start}"]["round"].min() == cfg.rounds(start) + 1
    assert curves["local_test_acc"].dropna().between(0, 100).all()


def test_ways_to_serve():
    ids = dict(table=MNIST.table, classes_per_device=2, protocol="as_released", selection="last")
    ids |= dict(method="lg_fedavg", fedavg_rounds=800, lg_rounds=100)
    stored = pd.DataFrame(
        stored_row(**ids, seed=seed, metric=f"new_test_acc_{way}", value=value + seed)
        for seed in (0, 2)
        for way, value in (("weights", 79.0), ("outputs", 70.0))
    )
    served = records.ways_to_serve(stored, 2)
    assert served["weights"].iloc[0].tolist() == pytest.approx([80.0, np.sqrt(2)])
    assert served["outputs", "mean"].item() == pytest.approx(71.0)
    assert records.ways_to_serve(stored, 5).empty
    assert records.ways_to_serve(stored.iloc[:0], 2, "cifar10").empty


def test_runs_that_left_the_finite_numbers_are_kept_apart():
    def run(seed, method="local_only", budget=0, selection="last", **metrics):
        ids = dict(table="lgfedavg_v2_table8_cifar10", classes_per_device=2, method=method)
        ids |= dict(fedavg_rounds=budget, lg_rounds=100 * (budget > 0), selection=selection)
        return [stored_row(**ids, seed=seed, metric=m, value=v) for m, v in metrics.items()]

    def lost(*runs):
        return records.left_the_numbers(pd.DataFrame(line for one in runs for line in one), DATA)

    DATA, BROKEN = "cifar10", dict(local_test_acc=85.0, new_test_acc_probabilities=10.0)
    fine = BROKEN | dict(new_test_acc_probabilities=54.0)
    found = lost(run(7, "lg_fedavg", 1200, **BROKEN), run(7, "lg_fedavg", 1800, **fine))
    assert found["fedavg_rounds"].tolist() == [1200], "the mean over budgets would hide it"
    counted = run(2, devices_diverged=0), run(3, devices_diverged=4)
    found = lost(run(0, **fine), run(1, **BROKEN), *counted)
    assert found["seed"].tolist() == [1, 3] and found["devices"].isna().tolist() == [True, False]
    assert found["devices"].tolist()[1] == 4
    flat = {f"new_test_acc_{way}": 10.0 for way in records.NEW} | dict(local_test_acc=41.6)
    found = lost(
        run(4, "lg_fedavg", 1200, diverged=38),  # all that is left of such a run
        run(5, "lg_fedavg", 1200, devices_diverged=0, **flat),  # its numbers are finite: it stays
    )
    assert found["seed"].tolist() == [4] and found["in round"].tolist() == [38]
    rows = [pd.DataFrame(run(0, **fine) + run(1, **BROKEN))]
    chosen = pd.concat([*rows, rows[0].assign(selection="best_val")])  # an index with repetitions
    kept = records.unbroken(chosen, DATA).groupby("selection")["seed"].unique()
    assert kept["last"].tolist() == [0] and kept["best_val"].tolist() == [0, 1]
    values = records.by_seed(chosen)
    key = (DATA, 2, ("local_only", 0), "new_test_acc_probabilities")
    assert values[*key, ("as_described", "last")].index.tolist() == [0]
    assert values[*key, ("as_described", "best_val")].index.tolist() == [0, 1]
