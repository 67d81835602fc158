"""The MNIST experiment end to end at smoke scale, on the real images."""

import numpy as np
import pandas as pd
import pytest

from lgfed_core import models, paths
from lgfed_core.errors import LgfedError, SettingsError
from lgfed_core.evidence import records as results, report
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers.lgfedavg import stored as lgfedavg_stored
from lgfed_core.papers.lgfedavg.mnist.run import MNIST
from lgfed_core.papers.lgfedavg.printed import TABLES
from toy import stored_row


@pytest.mark.parametrize("protocol, validation", [("as_described", 0.0), ("as_released", 0.1)])
def test_each_protocol_chooses_on_its_own_rows(protocol, validation):
    with pytest.raises(SettingsError, match=f"validation is {validation}; {protocol} chooses on"):
        MNIST.settings("smoke", protocol, validation=validation)


@pytest.fixture(scope="module", params=PROTOCOLS)
def smoke(request):
    cfg = MNIST.settings("smoke", request.param)
    rows, histories = MNIST.run(cfg, [0], record=False, resume=False, workers=1, device="cpu")
    return cfg, rows, histories


def test_every_row_of_the_table_at_both_selections(smoke):
    cfg, rows, histories = smoke
    assert list(histories) == ["fedavg", "lg_400", "lg_800", "local"]
    cells = rows.groupby(["method", "fedavg_rounds", "lg_rounds", "selection"])["metric"].agg(set)
    assert set(cells.index.droplevel("selection")) == {
        ("fedavg", 800, 0),
        ("local_only", 0, 0),
        ("lg_fedavg", 400, 100),
        ("lg_fedavg", 800, 100),
    }
    assert set(rows["selection"]) == {"last", report.SELECTION[cfg.protocol]}
    assert all({"local_test_acc", "new_test_acc", "params_communicated"} <= c for c in cells)
    accuracy = rows.loc[rows["metric"] != "params_communicated", "value"]
    assert accuracy.between(0, 100).all()


def test_as_released_lg_is_taken_at_the_first_peak(smoke):
    cfg, rows, histories = smoke
    lg = rows[(rows["fedavg_rounds"] == 400) & (rows["selection"] != "last")]
    value = lg.set_index("metric")["value"]
    if cfg.released:
        history = histories["lg_400"]
        peak = history.loc[history["averaged_local_test_acc"].idxmax()]
        assert value["local_test_acc"] == pytest.approx(100 * peak["averaged_local_test_acc"])
        assert value["new_test_acc"] == pytest.approx(100 * peak["averaged_new_test_acc"])
    else:
        assert value["new_test_acc"] == value["new_test_acc_outputs"]


def test_local_training_learns_even_in_two_epochs(smoke):
    _, rows, _ = smoke
    local = rows[(rows["method"] == "local_only") & (rows["metric"] == "local_test_acc")]
    assert local["value"].max() > 25  # ten classes, two per device; chance over all is 10 %


def test_the_headline_is_the_best_and_last_is_the_last(smoke):
    cfg, rows, histories = smoke
    fedavg = rows[(rows["method"] == "fedavg") & (rows["metric"] == "new_test_acc")]
    value = fedavg.set_index("selection")["value"]
    history = histories["fedavg"].set_index("round")
    assert value["last"] == pytest.approx(100 * history.loc[cfg.rounds(800), "new_test_acc"])
    if cfg.released:
        assert value["best_test"] == pytest.approx(100 * history["new_test_acc"].max())
    else:
        best = history["validation_acc"].idxmax()
        assert value["best_val"] == pytest.approx(100 * history.loc[best, "new_test_acc"])


def test_rows_are_accepted_and_reported(smoke, tmp_path):
    cfg, rows, _ = smoke
    results.record(MNIST.name, rows.assign(seed=0), tmp_path)
    results.record(MNIST.name, rows.assign(seed=0), tmp_path)  # again: replaced, not doubled
    stored = results.load(MNIST.name, tmp_path)
    assert len(stored) == len(rows)
    table = report.table(TABLES[MNIST.table], "smoke", cfg.protocol, folder=tmp_path)
    ran = table[table["seeds"] > 0]
    assert set(ran["verdict"]) == {"smoke scale, not judged"}


def test_paper_settings_are_the_papers():
    cfg = MNIST.settings("paper", "as_described")
    assert (cfg.devices, cfg.fraction, cfg.batch_size, cfg.lr) == (100, 0.1, 10, 0.05)
    assert cfg.rounds(800) == 800 and cfg.budgets == (400, 500, 600, 700, 800)
    printed = pd.read_csv(paths.PAPER / f"{MNIST.table}.csv")
    assert set(printed["fedavg_rounds"]) == {0, *cfg.budgets}
    assert set(printed["lg_rounds"]) == {0, cfg.lg_rounds}
    net = models.mlp_mnist()
    assert models.count(net, models.last_layers(net, cfg.shared_layers)) == 99_978


def test_full_scale_partition_on_real_labels():
    cfg = MNIST.settings("paper", "as_described")
    federation, start = MNIST.federation(cfg, [0])
    split = federation.partitions[0]
    assert start.shape == (1, 633_226)
    sizes = split.train.size + split.validation.size
    assert len(split) == 100 and sizes.sum() == 60_000
    assert sizes.min() >= 2 * 271 and sizes.max() <= 2 * 338
    share = split.validation.size.sum() / 60_000
    assert np.isclose(share, 0.1, atol=0.005)


def test_progress_puts_lg_after_its_fedavg(smoke):
    cfg, _, histories = smoke
    curves = MNIST.progress(cfg, histories)
    first = curves[curves["part"] == "lg_800"]["round"].min()
    assert first == cfg.rounds(800) + 1
    assert curves["local_test_acc"].between(0, 100).all()


@pytest.mark.parametrize("change", [dict(starts=(450,)), dict(classes=11)])
def test_impossible_settings_are_refused(change):
    with pytest.raises(LgfedError):
        MNIST.federation(MNIST.settings("smoke", **change), [0])


def test_ways_to_serve(tmp_path):
    ids = dict(table=MNIST.table, classes_per_device=2, protocol="as_released", selection="last")
    ids |= dict(method="lg_fedavg", fedavg_rounds=800, lg_rounds=100)
    cells = [
        stored_row(**ids, seed=seed, metric=f"new_test_acc_{way}", value=value + seed)
        for seed in (0, 2)
        for way, value in (("weights", 79.0), ("outputs", 70.0))
    ]
    results.record(MNIST.name, pd.DataFrame(cells), tmp_path)
    stored = results.load(MNIST.name, tmp_path)
    served = lgfedavg_stored.ways_to_serve(stored, 2)
    assert served["weights"].iloc[0].tolist() == pytest.approx([80.0, np.sqrt(2)])
    assert served["outputs", "mean"].item() == pytest.approx(71.0)
    assert lgfedavg_stored.ways_to_serve(stored, 5).empty


def test_runs_that_left_the_finite_numbers_are_kept_apart():
    ids = dict(table="lgfedavg_v2_table8_cifar10", classes_per_device=2, method="local_only")
    ids |= dict(fedavg_rounds=0, lg_rounds=0, protocol="as_described", selection="last")
    lines = []
    for seed, new in enumerate((54.0, 10.0)):
        for metric, value in (("local_test_acc", 85.0), ("new_test_acc_probabilities", new)):
            lines.append(ids | dict(seed=seed, metric=metric, value=value, scale="paper"))
    rows = pd.DataFrame(lines)
    ten = dict(method="lg_fedavg", seed=7, selection="last", scale="paper")
    budgets = [line | ten | dict(fedavg_rounds=b) for line in lines[-2:] for b in (1200, 1800)]
    budgets[-1] |= dict(value=54.0)  # of 1800 the outputs are well
    found = lgfedavg_stored.left_the_numbers(pd.DataFrame(budgets), "cifar10")
    assert found["fedavg_rounds"].tolist() == [1200], "the mean over budgets would hide it"
    lost = lgfedavg_stored.left_the_numbers(rows, "cifar10")
    assert lost["seed"].tolist() == [1] and lost["devices"].isna().all()
    counted = [ids | dict(seed=s, metric="devices_diverged", value=n) for s, n in ((2, 0), (3, 4))]
    more = pd.concat([rows, pd.DataFrame(counted).assign(scale="paper")], ignore_index=True)
    assert lgfedavg_stored.left_the_numbers(more, "cifar10")["devices"].tolist()[1:] == [4]
    lg = ids | dict(method="lg_fedavg", fedavg_rounds=1200, lg_rounds=100)
    ended = [lg | dict(seed=4, metric="diverged", value=38)]  # all that is left of such a run
    flat = {f"new_test_acc_{way}": 10.0 for way in ("weights", "outputs", "probabilities")}
    flat |= {"local_test_acc": 41.6, "devices_diverged": 0}
    ended += [lg | dict(seed=5, metric=metric, value=value) for metric, value in flat.items()]
    # that one's numbers are finite: it stays
    found = lgfedavg_stored.left_the_numbers(pd.DataFrame(ended).assign(scale="paper"), "cifar10")
    assert found["seed"].tolist() == [4] and found["in round"].tolist() == [38]
    chosen = pd.concat([rows, rows.assign(selection="best_val")])  # an index with repetitions
    kept = lgfedavg_stored.unbroken(chosen, "cifar10").groupby("selection")["seed"].unique()
    assert kept["last"].tolist() == [0] and kept["best_val"].tolist() == [0, 1]
    values = lgfedavg_stored.by_seed(chosen)
    key = ("cifar10", 2, ("local_only", 0), "new_test_acc_probabilities")
    assert values[*key, ("as_described", "last")].index.tolist() == [0]
    assert values[*key, ("as_described", "best_val")].index.tolist() == [0, 1]
