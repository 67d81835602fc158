"""Every printed number of communicated parameters, recomputed; and the two that do not follow."""

import shutil

import pytest

from lgfed_core import models
from lgfed_core.errors import ResultsError
from lgfed_core.papers.lgfedavg.communication.counts import (
    SYSTEMS,
    System,
    budgets,
    by_formula,
    deployment,
    one_off,
    ratios,
    recompute_tables,
)
from lgfed_core.paths import PAPER

# Golden values, exact: (method, FedAvg rounds, LG rounds) -> parameters sent, m = 10, K = 100.
TABLE6 = {  # MNIST; printed 5.6, 0, 2.9, 3.6, 4.3, 5.0, 5.7 x 10^10
    ("fedavg", 800, 0): 55_723_888_000,
    ("local_only", 0, 0): 0,
    ("lg_fedavg", 400, 100): 28_961_702_000,
    ("lg_fedavg", 500, 100): 35_927_188_000,
    ("lg_fedavg", 600, 100): 42_892_674_000,
    ("lg_fedavg", 700, 100): 49_858_160_000,
    ("lg_fedavg", 800, 100): 56_823_646_000,
}
TABLE8 = {  # CIFAR-10; printed 12.7, 0, 7.1, 8.5, 9.9, 11.3, 12.7 x 10^9
    ("fedavg", 1800, 0): 12_692_196_000,
    ("local_only", 0, 0): 0,
    ("lg_fedavg", 1000, 100): 7_082_812_000,
    ("lg_fedavg", 1200, 100): 8_493_056_000,
    ("lg_fedavg", 1400, 100): 9_903_300_000,
    ("lg_fedavg", 1600, 100): 11_313_544_000,
    ("lg_fedavg", 1800, 100): 12_723_788_000,
}
TABLE1 = {  # v2, CIFAR-10
    ("fedavg", 1800, 0): 12_692_196_000,
    ("local_only", 0, 0): 0,
    ("mtl", 1800, 0): 12_692_196_000,
    ("lg_fedavg", 1200, 100): 8_493_056_000,
    ("lg_fedavg", 1800, 100): 12_723_788_000,
}
V1_MNIST = {
    ("fedavg", 725, 0): 50_499_773_500,
    ("local_only", 0, 0): 0,
    ("lg_fedavg", 400, 50): 28_411_823_000,
}
V1_CIFAR = {
    ("fedavg", 1850, 0): 13_044_757_000,
    ("local_only", 0, 0): 0,
    ("lg_fedavg", 1200, 60): 8_480_419_200,
}
VQA = {("fedavg", 47, 0): 139_700_048_620, ("lg_fedavg", 32, 17): 99_929_428_720}  # m 5, K 50


@pytest.fixture(scope="module")
def table():
    return recompute_tables()


def computed(rows):
    keys = zip(rows.method, rows.fedavg_rounds, rows.lg_rounds, strict=True)
    return dict(zip(keys, rows.computed, strict=True))


@pytest.mark.parametrize("classes", [2, 3, 4, 5, 10])
@pytest.mark.parametrize(
    "name, golden", [("lgfedavg_v2_table6_mnist", TABLE6), ("lgfedavg_v2_table8_cifar10", TABLE8)]
)
def test_tables_6_and_8_follow_in_every_row(table, name, golden, classes):
    rows = table[(table.table == name) & (table.classes_per_device == classes)]
    assert computed(rows) == golden
    assert rows.matches.all()


@pytest.mark.parametrize(
    "name, data, golden",
    [
        ("lgfedavg_v2_table1_cifar10", "cifar10", TABLE1),
        ("lgfedavg_v1_table1", "mnist", V1_MNIST),
        ("lgfedavg_v1_table1", "cifar10", V1_CIFAR),
        ("lgfedavg_table2_vqa", "vqa", VQA),
    ],
)
def test_tables_1_and_2(table, name, data, golden):
    assert computed(table[(table.table == name) & (table.dataset == data)]) == golden


def test_two_rows_of_83_do_not_follow(table):
    assert len(table) == 83
    wrong = table[~table.matches]
    named = list(zip(wrong.table, wrong.dataset, wrong.method, wrong.reported, strict=True))
    assert named == [
        ("lgfedavg_v1_table1", "mnist", "lg_fedavg", 2.80e10),
        ("lgfedavg_v2_table1_cifar10", "cifar10", "mtl", 12.0e9),
    ]


def test_two_layers_would_break_table_6():
    """They explain version 1's 2.80e10, but Table 6 prints 2.9e10."""
    two = System(34_186, 633_226, 10, 100)
    assert two.papers(400, 50) == 28_049_967_000 and round(two.papers(400, 100) / 1e9) == 28
    assert SYSTEMS["cifar10"].papers(1700, 0) == 11_987_074_000  # rounds that fit MTL's 12.0e9


def test_ratios_of_the_headline_pairs(table):
    found = ratios(budgets(table))
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


def test_missing_tables_are_named(tmp_path):
    with pytest.raises(ResultsError, match=r"lgfedavg_v1_table1\.csv is missing"):
        recompute_tables(tmp_path)


def test_the_systems_are_the_networks_we_train():
    mlp, cnn = models.mlp_mnist(), models.cnn_cifar()
    mnist, cifar = SYSTEMS["mnist"], SYSTEMS["cifar10"]
    assert mnist.total == models.count(mlp)
    assert mnist.shared == models.count(mlp, models.last_layers(mlp, 3))
    assert cifar.total == models.count(cnn)
    assert cifar.shared == models.count(cnn, models.first_layers(cnn, 2))


def test_a_deployed_system_sends_to_participants_only():
    # 2 m P = 12,664,520 parameters in a FedAvg round on MNIST, 1,999,560 in an LG round
    mnist = SYSTEMS["mnist"]
    assert mnist.deployed(1, 0) == 12_664_520 and mnist.deployed(0, 1) == 1_999_560
    assert mnist.deployed(400, 100) == 5_265_764_000
    assert mnist.deployed(400, 100) * 11 == mnist.papers(400, 100) * 2  # 2 m / (m + K) = 20 / 110
    assert mnist.personal == 53_324_800


def test_both_conventions_agree_when_every_device_takes_part():
    all_take_part = System(3, 10, 7, 7)
    assert all_take_part.papers(5, 2) == all_take_part.deployed(5, 2) == 2 * 7 * (10 * 5 + 3 * 2)


def test_nothing_is_sent_without_rounds():
    alone = System(0, 633_226, 10, 100)
    assert alone.papers(0, 0) == alone.deployed(0, 0) == 0


@pytest.mark.parametrize("counted", ["papers", "deployed"])
@pytest.mark.parametrize(
    "arguments",
    [
        (11, 10, 1, 2, 1, 1),  # more shared than there are
        (-1, 10, 1, 2, 1, 1),
        (1, 10, 3, 2, 1, 1),  # more participants than devices
        (1, 10, 0, 2, 1, 1),
        (1, 10, 1, 2, -1, 1),
        (1, 10, 1, 2, 1, -1),
        (1, 10, 1, 2, 1.5, 1),
        (1, 10, 0.5, 2, 1, 1),
    ],
)
def test_contradictions_are_refused(counted, arguments):
    with pytest.raises(ResultsError, match="cannot count communication"):
        getattr(System(*arguments[:4]), counted)(*arguments[4:])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("local_only", 100, 0), "local_only has no 100 . 0 rounds"),
        (("fedavg", 800, 100), "fedavg has no 800 . 100 rounds"),
        (("lgfedavg", 1, 1), "method 'lgfedavg' is none of fedavg, lg_fedavg"),
    ],
)
def test_rounds_that_a_method_does_not_have_are_refused(row, said):
    with pytest.raises(ResultsError, match=said):
        by_formula("mnist", *row)
    with pytest.raises(ResultsError, match=said):
        deployment(SMALL, [("fedavg", 6, 0), row])
    with pytest.raises(ResultsError, match="the first one is FedAvg's"):
        deployment(SMALL, [("mtl", 6, 0)])
    assert by_formula("mnist", "local_only", 0, 0) == 0


# By hand: P = 10, P_g = 3, m = 2, K = 5.
SMALL = System(shared=3, total=10, m=2, K=5)


def test_what_is_sent_one_time():
    assert one_off(SMALL, "fedavg") == (50, 0)
    assert one_off(SMALL, "lg_fedavg") == (50, 35)
    assert one_off(SMALL, "local_only") == one_off(SMALL, "mtl") == (0, 50)


def test_a_deployment_is_rounds_and_what_is_sent_one_time():
    found = deployment(SMALL, [("fedavg", 6, 0), ("lg_fedavg", 4, 5), ("local_only", 0, 0)])
    assert found["row"].tolist() == ["FedAvg, 6 rounds", "LG-FedAvg, 4 + 5 rounds", "local only"]
    parts = found[["papers", "fed", "lg", "down", "up"]] * 1e9 / 4  # parameters
    by_hand = [[420, 240, 0, 50, 0], [385, 160, 60, 50, 35], [0, 0, 0, 0, 50]]
    assert parts.to_numpy().tolist() == [pytest.approx(line) for line in by_hand]
    assert found["per_device"].tolist() == pytest.approx([290 * 4e-6 / 5, 305 * 4e-6 / 5, 4e-5])
    assert found["papers_ratio"].tolist() == pytest.approx([1, 385 / 420, 0])
    assert found["ratio"].tolist() == pytest.approx([1, 305 / 290, 50 / 290])


def test_budgets_tell_repeated_counts_once(table):
    rows = budgets(table)
    assert len(rows) == 27 and rows["lines"].sum() == len(table)
    assert set(rows.loc[rows["table"].str.contains("table[68]"), "lines"]) == {5}
