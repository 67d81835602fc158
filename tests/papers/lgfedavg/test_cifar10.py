"""The CIFAR-10 experiment at smoke scale, and the tables and pictures of its page."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lgfed_core import plotting
from lgfed_core.evidence import records as results, report
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers.lgfedavg import (
    comparisons,
    records as lgfedavg_rows,
    stored as lgfedavg_stored,
)
from lgfed_core.papers.lgfedavg.cifar10 import figures as figures_cifar10
from lgfed_core.papers.lgfedavg.cifar10.run import CIFAR10
from lgfed_core.papers.lgfedavg.printed import TABLES
from lgfed_core.paths import PAPER


@pytest.fixture(scope="module", params=PROTOCOLS)
def smoke(request):
    cfg = CIFAR10.settings("smoke", request.param)
    rows, histories = CIFAR10.run(cfg, [0], record=False, resume=False, workers=1, device="cpu")
    return cfg, rows, histories


def test_every_row_of_both_tables(smoke):
    _, rows, histories = smoke
    assert list(histories) == ["fedavg", "lg_1200", "lg_1800", "local", "mtl"]
    tables = rows.groupby("method")["table"].agg(set)
    assert tables["mtl"] == {"lgfedavg_v2_table1_cifar10"}
    assert set().union(*tables.drop("mtl")) == {CIFAR10.table}
    served = rows[(rows["selection"] == "last") & (rows["method"] != "fedavg")]
    ways = {f"new_test_acc_{way}" for way in lgfedavg_rows.NEW}
    assert served.groupby(["method", "fedavg_rounds"])["metric"].agg(ways.issubset).all()
    accuracy = rows.loc[rows["metric"] != "params_communicated", "value"]
    assert accuracy.between(0, 100).all()


def test_the_rows_are_found_by_the_claims_and_the_tables(smoke, tmp_path):
    cfg, rows, _ = smoke
    results.record(CIFAR10.name, rows.assign(scale="paper"), tmp_path)
    stored = results.load(folder=tmp_path)
    reading = (cfg.protocol, report.SELECTION[cfg.protocol])
    read = comparisons.Read(lgfedavg_stored.by_seed(stored), reading)
    for who in (("fedavg", 1800), ("lg_fedavg", 1200), ("local_only", 0), ("mtl", 1800)):
        assert len(read.local("cifar10", 2, who)) == len(read.new("cifar10", 2, who)) == 1
    served = lgfedavg_stored.ways_to_serve(stored, 2, "cifar10")
    assert len(served) == 4 and set(served.columns.get_level_values(0)) == set(lgfedavg_rows.NEW)
    mtl = report.table(TABLES["lgfedavg_v2_table1_cifar10"], folder=tmp_path)
    assert (mtl.loc[mtl["method"] == "mtl", "seeds"] > 0).any()


def test_quick_scale_is_the_same_method_on_less():
    quick, paper = (CIFAR10.settings(scale) for scale in ("quick", "paper"))
    assert quick.rounds(1800) == 54 and paper.rounds(1800) == 1800
    same = ("lr", "decay", "shared_layers", "shared_side", "validation", "mtl_scale", "softmax")
    assert all(getattr(quick, name) == getattr(paper, name) for name in same)


def test_without_any_row_nothing_is_served():
    empty = results.load(folder=PAPER / "none")
    assert lgfedavg_stored.ways_to_serve(empty, 2, "cifar10").empty


def test_the_texts_pull_gathers_and_the_released_one_shifts():
    with plotting.style():
        figure = figures_cifar10.regularisers(steps=60)
    for ax, gathers in zip(figure.axes, (True, False), strict=True):
        dots = {line.get_label(): np.array(line.get_data(), float).T for line in ax.lines}
        before, after = dots["before"], dots["after"]
        spread = after.std(0) / before.std(0)
        moved = np.abs(after.mean(0) - before.mean(0)).max()
        if gathers:
            assert spread.max() < 0.2 and moved < 1e-5
        else:
            assert spread == pytest.approx([1, 1], abs=1e-4) and np.abs(after.mean(0)).max() < 0.01
            np.testing.assert_allclose(dots["mean after"][0], after.mean(0), atol=1e-6)
    plt.close(figure)
