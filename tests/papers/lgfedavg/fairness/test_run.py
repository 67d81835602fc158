"""The Adult experiment end to end at smoke scale, and its networks against the paper's tables."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from lgfed_core import models
from lgfed_core.engine import LocalTraining, run
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.methods import WatchedFedAvg
from lgfed_core.models.adult import AdultNet, Dropout
from lgfed_core.models.layout import parts
from lgfed_core.papers.lgfedavg.fairness import run as adult, settings
from lgfed_core.papers.lgfedavg.fairness.measures import measure
from lgfed_core.papers.lgfedavg.fairness.run import FAIRNESS


def test_networks_are_those_of_the_tables():
    net = models.make(AdultNet, 0)
    sizes = {p: models.count(net, parts(net, p)) for p in ("local", "own", "head", "adversary")}
    assert sizes == {"local": 5120, "own": 33, "head": 3201, "adversary": 3234}
    released = models.make(lambda: AdultNet(2, 0.2, 0.0), 0)
    assert models.count(released, parts(released, "head")) == 2145
    fedavg = AdultNet(0)
    assert fedavg.head is None and not parts(fedavg, "head")


def test_two_logits_are_one_sigmoid_and_dropout_is_off_at_test():
    net, x = models.make(AdultNet, 0).eval(), torch.randn(6, 93)
    out, protected = net(x, own=True, watch=lambda h: h)
    assert torch.equal(out[:, 0], torch.zeros(6))
    assert torch.allclose(out.softmax(-1)[:, 1], net.own(net.local(x))[:, 0].sigmoid())
    assert torch.equal(protected, net.adversary(net.local(x)))
    assert torch.equal(net(x), net(x)) and not torch.equal(net(x), net(x, own=True))
    net.train()
    assert not torch.equal(net(x), net(x))


def test_dropout_keeps_its_share_and_the_mean():
    x, layer = torch.ones(1000, 32), Dropout(0.2)
    out = layer(x)
    assert set(out.unique().tolist()) == {0.0, out.max().item()}
    assert (out == 0).float().mean() == pytest.approx(0.2, abs=0.01)
    assert out.mean() == pytest.approx(1.0, abs=0.02)
    lanes = torch.func.vmap(layer, randomness="different")(x[None].expand(2, -1, -1))
    assert not torch.equal(lanes[0], lanes[1])
    assert torch.equal(layer.eval()(x), x)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_row_of_the_table_and_the_frontier(protocol):
    cfg = FAIRNESS.settings("smoke", protocol)
    rows, _ = FAIRNESS.run(cfg, [0, 1], record=False, resume=False)
    table = rows[rows["table"] == FAIRNESS.table]
    assert set(table["method"]) == set(settings.METHODS) and set(table["split"]) == {"iid"}
    wanted = {"class_acc", "class_auc", "adv_auc", "adv_auc_race", "adv_auc_sex", "probe_best"}
    wanted |= {"probe_logistic_race", "probe_trees_sex", "probe_network_sex", "eo_race", "dp_sex"}
    assert all(wanted <= set(g["metric"]) for _, g in table.groupby(["method", "seed"]))
    assert set(rows["seed"]) == {0, 1} and set(rows["selection"]) == {"last"}
    percent = table[table["metric"].str.contains("acc|auc|probe")]
    assert percent["value"].between(0, 100).all()
    frontier = rows[rows["table"] == adult.FRONTIER]
    assert frontier.empty if cfg.released else set(frontier["lambda"]) == {0.0, *cfg.frontier}
    steps = rows[rows["table"] == adult.STEPS]
    assert steps.empty == (not cfg.released)


@pytest.mark.parametrize(("split", "rows"), [("iid", 15_470), ("noniid", 15_000)])
def test_the_papers_devices_and_their_test_rows(split, rows):
    fed, start = FAIRNESS.federation(FAIRNESS.settings("paper"), [0], split)
    part, data = fed.partitions[0], fed.data
    assert len(data.train.y) == len(data.test.y) == rows
    assert part.test.size.tolist() == [rows // 10] * 10
    assert (part.train.size + part.validation.size).tolist() == [rows // 10] * 10
    assert start.shape == (1, 5120 + 33 + 3201 + 3234)
    mine = torch.stack([data.train.y[part.train.of(k)].float().mean() for k in range(10)])
    tested = torch.stack([data.test.y[part.test.of(k)].float().mean() for k in range(10)])
    if split == "noniid":  # test rows match their device
        assert mine.std() > 0.05 and torch.corrcoef(torch.stack([mine, tested]))[0, 1] > 0.95


def test_a_diverged_seed_is_measured_as_nothing_and_the_other_as_ever():
    cfg = FAIRNESS.settings("smoke", dropout=0.0)
    fed, start = FAIRNESS.federation(cfg, [0, 1], "iid", False)
    out = run(fed, WatchedFedAvg(), LocalTraining(0.1, 32), 1, start, lanes="batched")
    whole = measure(fed, out, 1, 200, one_model=True).final
    out.tensors["shared"][1] = torch.nan
    found = measure(fed, replace(out, diverged={1: 1}), 1, 200, one_model=True)
    assert found.final.loc[0].equals(whole.loc[0]) and found.diverged == {1: 1}


def test_no_lambda_can_be_picked_where_nobody_stayed_finite():
    line = pd.DataFrame({"validation_acc": [torch.nan], "validation_probe": [torch.nan]}, [0.0])
    assert adult.pick(line) == 0.0


@pytest.mark.parametrize("method", settings.METHODS)
def test_the_released_loop_that_diverges_says_when(method):
    cfg = FAIRNESS.settings("smoke", "as_released", methods=(method,), lr=1e38)
    rows, _ = FAIRNESS.run(cfg, [0, 1], device="cpu", record=False, resume=False)
    assert set(rows["metric"]) == {"diverged"} and set(rows["value"]) == {1.0}
    assert set(rows["method"]) == {method} and sorted(rows["seed"]) == [0, 1]
