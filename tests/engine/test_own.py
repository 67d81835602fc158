"""What people bring, methods, losses, networks and rows: right in both lanes, or named."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core.engine import LocalTraining, Participation, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Global, Personal, Tracker
from lgfed_core.engine.training import AdamTraining
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FADE, MTL, QFFL, FedAvg, FedProx, LGFedAvg, LGFedAvgV1, Step
from lgfed_core.methods.cgau import ClientBaseline, ClientRowsAveraged
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models.adult import Dropout
from toy import (
    ABOVE,
    LANES,
    SGD,
    Toy,
    alike,
    answering,
    in_float64,
    models,
    normed,
    reading,
    toy_federation,
)


def entropy(local, batch, **more):
    return F.cross_entropy(local.net(batch.x), batch.y, **more)


class Plain(FedProx):
    """A strength that is no field, which dataclasses do not compare."""

    def __init__(self, strength):
        super().__init__()
        object.__setattr__(self, "strength", strength)

    def steps(self, net):
        return (Step(self.loss, pull=self.strength),)


def test_runs_whose_methods_differ_beside_their_fields_train_apart():
    found = models(alike(toy_federation((0, 0)), [Plain(0.0), Plain(5.0)]))
    assert not torch.allclose(found[0], found[1], 1e-3)


class Sure(Toy):
    """Right by so much that the loss is exactly 0."""

    def forward(self, x):
        return super().forward(x) * 1e-6 + 1e3 * x[:, :3].argmax(1, keepdim=True).eq(
            torch.arange(3)
        )


@pytest.mark.parametrize("net", [Toy, Sure])
@pytest.mark.parametrize("training", [SGD, AdamTraining(lr=0.01, batch_size=4)])
def test_devices_that_rest_or_have_no_loss_left_go_on(training, net):
    assert not alike(toy_federation(net=net), QFFL(q=0.3), training).diverged


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (MTL(upload=(Privacy(1.0, 1.0),)), "MTL shows devices each other's models"),
        (
            answering(loss=lambda self, local, batch: entropy(local, batch, reduction="none"))(),
            r"Mine gives a loss of \[2\] for a batch",
        ),
        (
            answering(steps=lambda self, net: (Step(self.loss, frozenset({"below.wieght"})),))(),
            r"a step of Mine moves \['below.wieght'\]; Toy has no parameter of that name",
        ),
        (
            answering(weights=lambda self, rows: rows.float())(),
            "Mine.weights gives .* have to sum to 1",
        ),
        (
            answering(weights=lambda self, rows: [1 / len(rows)] * len(rows))(),
            "Mine.weights gives .* a tensor with a weight for each",
        ),
        (FADE(), "FADE cannot take its loss of Toy's outputs"),
        (
            LGFedAvgV1(layers=ABOVE, auxiliary=frozenset({"typo"})),
            r"no parameter called \['typo'\]",
        ),
    ],
)
@LANES
def test_methods_that_would_go_wrong_are_named(method, said, lanes):
    with pytest.raises(SettingsError, match=said):
        run(toy_federation(), method, SGD, 1, lanes=lanes)


def test_a_loss_that_does_not_weigh_rows_is_refused_where_batches_are_padded():
    fed, unweighted = toy_federation(), answering(loss=lambda self, *told: entropy(*told))()
    torch.testing.assert_close(*(models(run(fed, m, SGD, 1)) for m in (unweighted, FedAvg())))
    with pytest.raises(SettingsError, match=r"Mine has another gradient .* batch.mean"):
        run(fed, unweighted, SGD, 1, lanes="batched")


@LANES
def test_who_calls_without_gradients_gets_a_trained_model(lanes):
    with torch.no_grad():
        found = run(toy_federation(), FedAvg(), SGD, 1, lanes=lanes)
    assert torch.equal(models(found), models(run(toy_federation(), FedAvg(), SGD, 1, lanes=lanes)))


PICTURES = nn.Sequential(
    nn.Unflatten(1, (2, 2, 2)), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3)
)  # one alone has places to normalise over


@pytest.mark.parametrize(
    ("net", "method", "batches"),
    [
        (normed(), MTL(scale=0.1), dict(batches=1, batch_size=2)),
        (PICTURES, FedAvg(), dict(batch_size=1)),
    ],
)
def test_networks_with_statistics_train_with_peers_and_on_single_pictures(net, method, batches):
    found = run(toy_federation(net=net), method, replace(SGD, **batches), 1)
    assert models(found).isfinite().all()


@pytest.mark.parametrize("tracker", [Personal(), Global()])
def test_rows_without_a_label_judge_nobody(tracker):
    fed = toy_federation()
    mine = fed.partitions[0].validation.of(3)
    bare = reading(fed, y=fed.data.train.y.index_fill(0, mine, -1))
    with pytest.raises(SettingsError, match="validation rows of run 0 have labels below 0"):
        run(bare, FedAvg(), SGD, 1, tracker=tracker)


class Named(Tracker):
    def __init__(self, name, value=None, tensor=None):
        self.name, self.value, self.tensor = name, value, tensor

    def allocate(self, allocate, phase):
        if self.tensor:
            allocate(self.tensor, 1)

    def after(self, round, rounds, engine):
        return {} if self.value is None else {self.name: self.value}


@pytest.mark.parametrize(
    ("tracker", "said"),
    [
        (Named("round", torch.zeros(1)), "calls a number 'round'"),
        (Named("hits", torch.tensor(1.0)), r"gives \[\] hits for 1 runs"),
        (Named("", tensor="labels"), "Named cannot have a tensor 'labels'"),
        (Named("", tensor="shared"), "Named cannot have a tensor 'shared'"),
    ],
)
def test_trackers_that_would_overwrite_or_confuse_are_named(tracker, said):
    with pytest.raises(SettingsError, match=said):
        run(toy_federation(), FedAvg(), SGD, 1, tracker=tracker)


def test_numbers_of_numpy_and_lists_will_do(tmp_path):
    fed = toy_federation((0, 1))
    who = Participation(0.5, availability=[[0.1] * 10] * 2)
    fed = replace(fed, seeds=np.arange(2), participation=who)
    start = np.stack([np.zeros(75, dtype="float32")] * 2)
    training = LocalTraining(0.1, 4.0, epochs=2.0, batches=1.0)
    how = dict(start=start, saved=tmp_path / "x.safetensors")
    found = run(fed, FedAvg(), training, np.int64(1), **how)
    assert found.history.empty and models(found).shape == (2, 10, 75)


def test_many_rows_of_one_device_are_tested_in_parts(monkeypatch):
    fed = toy_federation(devices=2)
    whole = alike(fed, FedAvg(), SGD, 1, tracker=Personal()).final
    monkeypatch.setattr("lgfed_core.engine.looped_evaluation.ROWS_OF_ONE", 7)
    monkeypatch.setattr("lgfed_core.engine.batched_evaluation.ROWS_OF_ONE", 7)
    assert alike(fed, FedAvg(), SGD, 1, tracker=Personal()).final.equals(whole)


def test_an_average_of_bests_tells_apart_runs_with_and_without_a_peak():
    fed = toy_federation((0, 1))
    history = run(fed, LGFedAvg(layers=ABOVE), SGD, 8, tracker=AveragedBest()).history
    for _, mine in history.groupby("seed"):
        before = mine["averaged_local_test_acc"].cummax().shift(fill_value=-1)
        higher = mine["averaged_local_test_acc"] > before
        assert (mine["averaged_new_test_acc"].notna() == higher).all()


def test_dropout_takes_any_number_of_units_and_may_drop_all():
    x = torch.ones(31, 30)
    assert 0.1 < (Dropout(0.5)(x) == 0).float().mean() < 0.9
    assert (Dropout(1.0)(x) == 0).all() and torch.equal(Dropout(1.0).eval()(x), x)


def test_clients_count_alike_where_rows_do_not():
    assert ClientBaseline(weighted=False).weights(torch.tensor([1, 9])) is None
    before, trained = torch.zeros(2, 3), torch.ones(2, 3)
    kept = ClientRowsAveraged(weighted=False).keep(before, trained, None)
    assert torch.equal(kept, torch.full((2, 3), 0.5))


def test_two_workers_keep_double_precision():
    with in_float64():
        fed = toy_federation(net=Toy())
        one, two = (models(run(fed, FedAvg(), SGD, 2, workers=n)) for n in (1, 2))
    assert one.dtype == two.dtype == torch.float64 and torch.equal(one, two)
