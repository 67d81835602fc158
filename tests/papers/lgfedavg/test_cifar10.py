"""The CIFAR-10 experiment at smoke scale, and the tables of its page."""

import pytest
import torch

from lgfed_core.evidence import records as results, report
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.methods import MTL, ReleasedMTL
from lgfed_core.papers.lgfedavg import (
    comparisons,
    records as lgfedavg_rows,
    stored as lgfedavg_stored,
)
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


@pytest.mark.parametrize("method", [MTL(), ReleasedMTL()], ids=["text", "released"])
def test_the_texts_pull_gathers_and_the_released_one_shifts(method):
    start = torch.randn(10, 2, generator=torch.Generator().manual_seed(0)) + 1
    w = start
    for _ in range(60):
        w = w.detach().requires_grad_()
        others = (w.detach().sum(0) - w.detach()) / 9
        pull = sum(method.pull(w[k], others[k], 10) for k in range(10))
        w = w.detach() - 0.02 * torch.autograd.grad(pull, w)[0]
    spread = w.std(0) / start.std(0)
    if isinstance(method, ReleasedMTL):
        assert spread.tolist() == pytest.approx([1, 1], abs=1e-4) and w.mean(0).abs().max() < 0.01
    else:
        assert spread.max() < 0.2 and (w.mean(0) - start.mean(0)).abs().max() < 1e-5
