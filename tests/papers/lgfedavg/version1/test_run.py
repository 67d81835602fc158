"""Version 1's experiment end to end: goal, own heads, rounds and parameters that are found."""

import pandas as pd
import pytest
import torch

from lgfed_core import models
from lgfed_core.data import Dataset, Split
from lgfed_core.models.layout import joined
from lgfed_core.papers.lgfedavg.version1 import run as v1
from lgfed_core.papers.lgfedavg.version1.run import VERSION1
from toy import page, stored_row

PAGE = page("lgfedavg/version1")


@pytest.mark.parametrize(("data", "alone"), [("mnist", ()), ("cifar10", ("local",))])
def test_rounds_and_parameters_are_those_that_were_run(data, alone):
    cfg = VERSION1.settings("smoke", data=data, goal=0.0, shrink=0.001, alone=alone)
    rows, histories = VERSION1.run(cfg, [0], record=False, resume=False, workers=1, device="cpu")
    value = rows.set_index(["method", "selection", "metric"])["value"].sort_index()
    total, shared = models.count(cfg.net()), models.count(cfg.net(), cfg.shared(cfg.net()))
    everybody = 10 + 2
    lg = value["lg_fedavg", "best_val"].groupby(level=0).first()
    assert lg["fedavg_rounds"] == 1 and lg["goal_reached"] == 1  # a goal of 0 is reached at once
    more = cfg.rounds(cfg.lg_rounds)
    assert lg["params_communicated"] == everybody * (total + shared * more)
    best = value["fedavg", "best_val"]["fedavg_rounds"]
    assert best == histories["fedavg"].set_index("round")["validation_acc"].idxmax()
    assert value["fedavg", "best_val"]["params_communicated"] == everybody * total * best
    for name in alone:
        assert value[f"{name}_only", "best_val"]["params_communicated"] == 0


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


def labels(*counts: int) -> Split:
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    return Split(torch.zeros(len(y), 1), y)


def test_strangers_counted_by_hand():
    """Two devices with two of four shards each: training 0 0 | 0 0 | 0 1 | 1 1, test 0 | 1 | 1 | 1.

    Shards 0, 1 and 3 hold one class. Who has 0 and 1 trains on class 0 and is tested on 0 and 1.
    """
    images = Dataset("toy", labels(5, 3), labels(1, 3), 2)
    seen, strangers = set(), PAGE.strangers
    for seed in range(20):
        shares = strangers(images, 2, seed)
        assert shares.shape == (2,)
        seen.add(tuple(sorted(shares.round(6))))
    assert seen == {(0.0, 50.0), (0.0, 0.0)}
    balanced = Dataset("toy", labels(8, 8), labels(4, 4), 2)
    assert not strangers(balanced, 2, 0).any()


def test_values_are_of_full_length_and_by_seed():
    ids = dict(table=VERSION1.table, dataset="mnist", method="lg_fedavg", metric="local_test_acc")
    rows = pd.DataFrame(stored_row(**ids, seed=n, value=v) for n, v in ((2, 98.0), (0, 99.0)))
    asked = "mnist", "local_test_acc", "lg_fedavg"
    assert v1.values_of(rows, VERSION1.table, *asked).to_dict() == {0: 99.0, 2: 98.0}
    assert v1.values_of(rows, v1.BESIDE, *asked).empty
    assert v1.values_of(rows.assign(scale="quick"), VERSION1.table, *asked).empty


@pytest.fixture
def histories():
    """FedAvg reaches 0.6 in round 2 of 3; LG-FedAvg goes on for 2 rounds."""

    def made(*accuracies):
        found = pd.DataFrame(dict(round=range(1, 1 + len(accuracies)), local_test_acc=accuracies))
        return found.assign(seed=0, validation_acc=found["local_test_acc"])

    lg = made(0.8, 0.8)
    return {"fedavg": made(0.4, 0.6, 0.5), "lg_v1": lg, "lg_v2": lg, "local": lg}


def test_curves_go_on_from_the_goal_and_count_what_is_sent(histories):
    cfg = VERSION1.settings("smoke", goal=0.6)
    curves = PAGE.with_sent(VERSION1.progress(cfg, histories), cfg).set_index(["part", "round"])
    everybody = cfg.devices + 2  # two of ten devices upload
    assert curves.loc[("fedavg", 3), "sent"] == everybody * 633_226 * 3
    assert curves.loc[("lg_v1", 4), "sent"] == everybody * (633_226 * 2 + 34_186 * 2)
    assert curves.loc[("local", 2), "sent"] == 0
    assert curves.loc[("lg_v2", 3), "before"] == 2


def test_a_missed_goal_counts_all_rounds(histories):
    cfg = VERSION1.settings("smoke", goal=0.9)
    curves = VERSION1.progress(cfg, histories)
    assert set(curves.loc[curves["part"] == "lg_v1", "before"]) == {cfg.fedavg_rounds}
