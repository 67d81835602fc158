"""Version 1's experiment end to end: goal, own heads, rounds and parameters that are found."""

import pytest
import torch

from lgfed_core import models
from lgfed_core.errors import SettingsError
from lgfed_core.evidence import records as results
from lgfed_core.evidence.report import table
from lgfed_core.models.layout import joined
from lgfed_core.papers.lgfedavg.printed import TABLES
from lgfed_core.papers.lgfedavg.version1 import run as v1
from lgfed_core.papers.lgfedavg.version1.run import VERSION1


@pytest.fixture(scope="module", params=["mnist", "cifar10"])
def smoke(request):
    alone = ("local",) if request.param == "cifar10" else ()
    cfg = VERSION1.settings("smoke", data=request.param, goal=0.0, shrink=0.001, alone=alone)
    rows, _ = VERSION1.run(cfg, [0], record=False, resume=False, workers=1, device="cpu")
    return cfg, rows.set_index(["method", "selection", "metric"])["value"].sort_index()


def test_rounds_and_parameters_are_those_that_were_run(smoke):
    cfg, value = smoke
    total, shared = models.count(cfg.net()), models.count(cfg.net(), cfg.shared(cfg.net()))
    everybody = 10 + 2
    lg = value["lg_fedavg", "best_val"].groupby(level=0).first()
    assert lg["fedavg_rounds"] == 1 and lg["goal_reached"] == 1  # a goal of 0 is reached at once
    more = cfg.rounds(cfg.lg_rounds)
    assert lg["params_communicated"] == everybody * (total + shared * more)
    best = value["fedavg", "best_val"]["fedavg_rounds"]
    assert value["fedavg", "best_val"]["params_communicated"] == everybody * total * best
    for name in cfg.alone:
        assert value[f"{name}_only", "best_val"]["params_communicated"] == 0


def test_rows_fill_the_papers_table(smoke, tmp_path):
    cfg, _ = smoke
    outcome = next(iter(VERSION1.stages(cfg, [0], resume=False, workers=1)))[1]
    results.record(VERSION1.name, VERSION1.records(cfg, "fedavg", outcome), tmp_path)
    cells = table(TABLES[VERSION1.table], "smoke", "as_described", folder=tmp_path)
    ran = cells[cells["seeds"] > 0]
    assert set(ran["dataset"]) == {cfg.data} and set(ran["method"]) == {"fedavg"}
    assert set(ran["metric"]) == {m.name for m in TABLES[VERSION1.table].metrics}


def test_own_heads_start_as_copies_of_the_global_one():
    cfg = VERSION1.settings("smoke", data="mnist")
    fed, first = VERSION1.federation(cfg, [0, 1])
    two_heads, start = v1.with_own_heads(fed, first)
    assert start.shape == (2, models.count(two_heads.net))
    net, x = models.mlp_mnist_v1(), torch.randn(4, 784)
    for vector, plain in zip(start, first, strict=True):
        torch.nn.utils.vector_to_parameters(vector, net.parameters())
        torch.nn.utils.vector_to_parameters(plain, fed.net.parameters())
        assert torch.equal(net(x), fed.net(x)) and torch.equal(net(x, own=True), fed.net(x))
    assert torch.equal(joined(net), start[1])


def test_settings_are_the_papers():
    mnist, cifar = (VERSION1.settings("paper", data=data) for data in ("mnist", "cifar10"))
    assert models.count(mnist.net(), mnist.shared(mnist.net())) == 34_186
    assert models.count(cifar.net(), cifar.shared(cifar.net())) == 2_872
    assert (mnist.batch_size, mnist.lr, mnist.goal, mnist.lg_rounds) == (10, 0.05, 0.975, 50)
    assert (cifar.batch_size, cifar.lr, cifar.goal, cifar.lg_rounds) == (50, 0.1, 0.57, 60)


def test_there_is_no_released_protocol():
    with pytest.raises(SettingsError, match="no released protocol"):
        VERSION1.settings("smoke", "as_released")
    with pytest.raises(SettingsError, match="mnist, cifar10"):
        VERSION1.settings("smoke", data="faces")
