"""Every printed number of parameters sent, recomputed; two do not follow; accuracy by bytes."""

import shutil

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lgfed_core import models
from lgfed_core.errors import ResultsError, SettingsError
from lgfed_core.evidence import records as results
from lgfed_core.papers.lgfedavg.communication import SYSTEMS, System, by_formula, recompute_tables
from lgfed_core.papers.lgfedavg.mnist import MNIST
from lgfed_core.paths import PAPER
from toy import page, stored_row

PAGE = page("lgfedavg/communication")
EXACT = {  # parameters sent in rounds of either phase; printed 2.9, 5.05 x 10^10, 8.5 x 10^9 ...
    ("mnist", 400, 100): 28_961_702_000,
    ("mnist", 725, 0): 50_499_773_500,
    ("cifar10", 1200, 100): 8_493_056_000,
    ("cifar10", 1850, 0): 13_044_757_000,
    ("vqa", 47, 0): 139_700_048_620,
    ("vqa", 32, 17): 99_929_428_720,
}


@pytest.fixture(scope="module")
def table():
    return recompute_tables()


def test_counts_are_exact_and_tables_6_and_8_repeat_them(table):
    sent = table.groupby(["dataset", "fedavg_rounds", "lg_rounds"])["computed"].agg(set)
    assert {key: sent[key] for key in EXACT} == {key: {n} for key, n in EXACT.items()}
    lines = table.groupby("table")["classes_per_device"].value_counts()
    assert set(lines["lgfedavg_v2_table6_mnist"]) == set(lines["lgfedavg_v2_table8_cifar10"]) == {7}
    rows = PAGE.budgets(table)
    assert len(rows) == 27 and rows["lines"].sum() == len(table)
    assert set(rows.loc[rows["table"].str.contains("table[68]"), "lines"]) == {5}


def test_two_rows_of_83_do_not_follow(table):
    assert len(table) == 83
    wrong = table[~table.matches]
    named = list(zip(wrong.table, wrong.dataset, wrong.method, wrong.reported, strict=True))
    assert named == [
        ("lgfedavg_v1_table1", "mnist", "lg_fedavg", 2.80e10),
        ("lgfedavg_v2_table1_cifar10", "cifar10", "mtl", 12.0e9),
    ]


def test_ratios_of_the_headline_pairs(table):
    found = PAGE.ratios(PAGE.budgets(table))
    mnist = found.loc["v2, MNIST"]
    assert mnist["printed"] == pytest.approx(100 * 2.9 / 5.6)
    assert mnist["formula"] == pytest.approx(100 * 28_961_702 / 55_723_888)
    once, fedavg = 63_322_600 + 53_324_800, 10_131_616_000 + 63_322_600
    assert mnist["deployed"] == pytest.approx(100 * (5_265_764_000 + once) / fedavg)
    assert mnist["rounds"] == 50
    assert found.loc["v1 and v2, VQA", "rounds"] == pytest.approx(100 * 32 / 47)


def test_a_reported_number_that_is_off_is_found(tmp_path):
    for path in PAPER.glob("lgfedavg_*.csv"):
        shutil.copy(path, tmp_path)
    path = tmp_path / "lgfedavg_v2_table8_cifar10.csv"
    text = path.read_text()
    assert "7100000000.0" in text
    path.write_text(text.replace("7100000000.0", "7200000000.0"))
    wrong = recompute_tables(tmp_path).query("table.str.contains('table8') and not matches")
    assert len(wrong) == 5 and set(wrong.fedavg_rounds) == {1000}


def test_the_systems_are_the_networks_we_train():
    mlp, cnn = models.mlp_mnist(), models.cnn_cifar()
    mnist, cifar = SYSTEMS["mnist"], SYSTEMS["cifar10"]
    assert mnist.total == models.count(mlp)
    assert mnist.shared == models.count(mlp, models.last_layers(mlp, 3))
    assert cifar.total == models.count(cnn)
    assert cifar.shared == models.count(cnn, models.first_layers(cnn, 2))


def test_a_deployed_system_sends_to_participants_only_and_less_unless_all_take_part():
    # 2 m P = 12,664,520 parameters in a FedAvg round on MNIST, 1,999,560 in an LG round
    mnist = SYSTEMS["mnist"]
    assert mnist.deployed(1, 0) == 12_664_520 and mnist.deployed(0, 1) == 1_999_560
    assert mnist.deployed(400, 100) == 5_265_764_000
    assert mnist.deployed(400, 100) * 11 == mnist.papers(400, 100) * 2  # 2 m / (m + K) = 20 / 110
    assert PAGE.one_off(mnist, "lg_fedavg") == (63_322_600, 53_324_800)
    assert by_formula("mnist", "local_only", 0, 0) == 0
    all_take_part = System(3, 10, 7, 7)
    assert all_take_part.papers(5, 2) == all_take_part.deployed(5, 2) == 2 * 7 * (10 * 5 + 3 * 2)
    assert all_take_part.papers(0, 0) == all_take_part.deployed(0, 0) == 0


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        (lambda: System(11, 10, 1, 2), SettingsError, "shared is"),  # more than there are
        (lambda: System(-1, 10, 1, 2), SettingsError, "shared is"),
        (lambda: System(1, 10, 3, 2), SettingsError, "m is"),  # more participants than devices
        (lambda: System(1, 10, 0, 2), SettingsError, "m is"),
        (lambda: System(0.5, 10, 1, 2), SettingsError, "shared is"),
        (lambda: by_formula("mnist", "local_only", 100, 0), ResultsError, "has no 100 . 0 rounds"),
        (lambda: by_formula("mnist", "fedavg", 800, 100), ResultsError, "has no 800 . 100 rounds"),
        (lambda: by_formula("mnist", "lgfedavg", 1, 1), ResultsError, "'lgfedavg' is none of fed"),
    ],
)
def test_contradictions_and_rounds_that_a_method_does_not_have_are_refused(asked, error, said):
    with pytest.raises(error, match=said):
        asked()


# By hand: P = 10, P_g = 3, m = 2, K = 5.
SMALL = System(shared=3, total=10, m=2, K=5)


def test_a_deployment_is_rounds_and_what_is_sent_one_time():
    rows = [("fedavg", 6, 0), ("lg_fedavg", 4, 5), ("local_only", 0, 0), ("mtl", 6, 0)]
    mtl = PAGE.deployment(SMALL, rows).iloc[3]
    assert np.isnan(mtl["papers"]) and mtl[["down", "up"]].tolist() == pytest.approx([0, 2e-7])
    found = PAGE.deployment(SMALL, rows[:3])
    assert found["row"].tolist() == ["FedAvg, 6 rounds", "LG-FedAvg, 4 + 5 rounds", "local only"]
    parts = found[["papers", "fed", "lg", "down", "up"]] * 1e9 / 4  # parameters
    by_hand = [[420, 240, 0, 50, 0], [385, 160, 60, 50, 35], [0, 0, 0, 0, 50]]
    assert parts.to_numpy().tolist() == [pytest.approx(line) for line in by_hand]
    assert found["per_device"].tolist() == pytest.approx([290 * 4e-6 / 5, 305 * 4e-6 / 5, 4e-5])
    assert found["papers_ratio"].tolist() == pytest.approx([1, 385 / 420, 0])
    assert found["ratio"].tolist() == pytest.approx([1, 305 / 290, 50 / 290])


def test_every_budget_is_a_point_of_the_paper_and_ours_are_those_run():
    def row(method, fed, lg, value, seed=0, **changes):
        ids = dict(table=MNIST.table, classes_per_device=2, method=method, metric="local_test_acc")
        ids |= dict(fedavg_rounds=fed, lg_rounds=lg, seed=seed, value=value)
        return stored_row(**(ids | changes))

    rows = pd.DataFrame(
        [
            row("lg_fedavg", 400, 100, 98.0),
            row("lg_fedavg", 400, 100, 99.0, 1),
            row("fedavg", 800, 0, 98.5),
            row("mtl", 800, 0, 97.5, table="lgfedavg_mtl_mnist"),
            row("fedavg", 800, 0, 11.0, protocol="as_released", selection="best_test"),
            row("fedavg", 800, 0, 12.0, selection="last"),
            row("fedavg", 800, 0, 13.0, scale="quick"),
            row("fedavg", 800, 0, 14.0, classes_per_device=3),
        ]
    )
    points = PAGE.points(rows, "mnist", 2, "as_described")
    paper, ours = (points[points["who"] == who] for who in ("paper", "ours"))
    assert len(paper) == 14 and set(paper["fedavg_rounds"]) == {0, 400, 500, 600, 700, 800}
    assert ours[["method", "mean", "seeds"]].values.tolist() == [
        ["fedavg", 98.5, 1],
        ["lg_fedavg", 98.5, 2],
        ["mtl", 97.5, 1],
    ]
    lg = ours[ours["method"] == "lg_fedavg"].iloc[0]
    assert lg["high"] - lg["mean"] == pytest.approx(stats.t.ppf(0.975, 1) * 0.5)  # sd/sqrt(n)
    assert lg["gigabytes"] == pytest.approx(20 * (400 * 633_226 + 100 * 99_978) * 4e-9)
    assert ours.loc[ours["method"] != "lg_fedavg", "low"].isna().all()
    assert (points.loc[points["method"] == "local_only", "gigabytes"] == 0).all()
    other = PAGE.points(rows.assign(stand_in="usps"), "mnist", 2, "as_described")
    assert set(other["who"]) == {"paper"}  # other data than the paper's


@pytest.mark.parametrize(
    ("data", "classes", "lines"), [("cifar10", 2, 16), ("cifar10", 3, 14), ("mnist", 10, 14)]
)
def test_without_rows_of_ours_there_are_the_papers_alone(data, classes, lines):
    found = PAGE.points(results.load(folder=PAPER / "none"), data, classes, "as_released")
    assert len(found) == lines and set(found["who"]) == {"paper"}  # MTL for two classes
