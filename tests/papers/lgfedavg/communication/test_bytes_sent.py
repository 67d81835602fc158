"""Accuracy against bytes: counted by hand on small numbers, with and without our rows."""

import pandas as pd
import pytest
from scipy import stats

from lgfed_core.evidence import records as results
from lgfed_core.papers.lgfedavg.communication import bytes_sent
from lgfed_core.papers.lgfedavg.mnist.run import MNIST
from toy import stored_row

P, P_G = 633_226, 99_978


def row(method, fed, lg, value, seed, metric="local_test_acc", **changes):
    ids = dict(table=MNIST.table, classes_per_device=2)
    ids |= dict(method=method, fedavg_rounds=fed, lg_rounds=lg)
    return stored_row(**(ids | dict(seed=seed, metric=metric, value=value) | changes))


@pytest.fixture(scope="module")
def stored():
    rows = [
        row("lg_fedavg", 400, 100, 98.0, 0),
        row("lg_fedavg", 400, 100, 99.0, 1),
        row("fedavg", 800, 0, 98.5, 0),
        row("mtl", 800, 0, 97.5, 0, table="lgfedavg_mtl_mnist"),
        row("fedavg", 800, 0, 11.0, 0, protocol="as_released", selection="best_test"),
        row("fedavg", 800, 0, 12.0, 0, selection="last"),
        row("fedavg", 800, 0, 13.0, 0, scale="quick"),
        row("fedavg", 800, 0, 14.0, 0, classes_per_device=3),
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def points(stored):
    return bytes_sent.points(stored, "mnist", 2, "as_described")


def test_every_budget_is_a_point_of_the_paper_and_ours_are_those_run(points):
    paper, ours = (points[points["who"] == who] for who in ("paper", "ours"))
    assert len(paper) == 14 and set(paper["fedavg_rounds"]) == {0, 400, 500, 600, 700, 800}
    assert ours[["method", "mean", "seeds"]].values.tolist() == [
        ["fedavg", 98.5, 1],
        ["lg_fedavg", 98.5, 2],
        ["mtl", 97.5, 1],
    ]
    lg = ours[ours["method"] == "lg_fedavg"].iloc[0]
    assert lg["high"] - lg["mean"] == pytest.approx(stats.t.ppf(0.975, 1) * 0.5)  # sd/sqrt(n)
    assert lg["gigabytes"] == pytest.approx(20 * (400 * P + 100 * P_G) * 4e-9)
    assert ours.loc[ours["method"] != "lg_fedavg", "low"].isna().all()
    assert (points.loc[points["method"] == "local_only", "gigabytes"] == 0).all()


def test_without_rows_of_ours_there_are_the_papers_alone(tmp_path):
    nothing = results.load(folder=tmp_path)
    for data, classes, lines in (("cifar10", 2, 16), ("cifar10", 3, 14), ("mnist", 10, 14)):
        found = bytes_sent.points(nothing, data, classes, "as_released")
        assert len(found) == lines and set(found["who"]) == {"paper"}  # MTL for two classes


def test_rows_on_stand_in_data_are_no_points(stored):
    other = stored.assign(stand_in="usps")
    assert set(bytes_sent.points(other, "mnist", 2, "as_described")["who"]) == {"paper"}


@pytest.fixture(scope="module")
def cfg():
    return MNIST.settings("smoke")  # 10 devices, 2 in a round; 4 rounds for 800, 2 for 400


def test_bytes_of_a_live_run_round_by_round(cfg):
    curves = pd.DataFrame(
        [
            ("fedavg", "fedavg", 3),
            ("lg_fedavg", "lg_400", 3),
            ("local_only", "local", 9),
            ("mtl", "mtl", 4),
        ],
        columns=["method", "part", "round"],
    )
    found = bytes_sent.by_round(cfg, curves)["megabytes"] * 1e6 / 4 / (2 * 2)
    assert found.tolist() == pytest.approx([3 * P, 2 * P + P_G, 0, 4 * P])


def test_bytes_at_the_end_of_a_live_run(cfg):
    rows = [row("lg_fedavg", 400, 100, 90.0, 0, selection="last")]
    rows += [row("lg_fedavg", 400, 100, 80.0, 0, "new_test_acc", selection="last")]
    rows += [row("lg_fedavg", 400, 100, 1.0, 0)]  # another selection
    found = bytes_sent.ends(cfg, pd.DataFrame(rows)).iloc[0]
    assert found[["local_test_acc", "new_test_acc"]].tolist() == [90, 80]
    assert found["megabytes"] == pytest.approx(4 * (2 * P + P_G) * 4e-6)  # one LG round
