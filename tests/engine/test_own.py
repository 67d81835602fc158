"""What people bring, methods, losses, networks and rows, few or none: right in both lanes."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from lgfed_core import Global, LocalTraining, Participation, Personal, run
from lgfed_core.engine.accuracy import accuracies
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.errors import CheckpointError, SettingsError
from lgfed_core.methods import MTL, QFFL, FedAvg, FedProx, LGFedAvg, Method, Step, Trained
from lgfed_core.methods.cgau import ClientBaseline, ClientRowsAveraged
from lgfed_core.models.adult import Dropout
from lgfed_core.models.layout import joined
from toy import ABOVE, LANES, SGD, Toy, alike, holding, models, prepared, reading, toy_federation


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


def sure(net, x):
    """Right by so much that the loss is exactly 0."""
    most = x[:, :3].argmax(1, keepdim=True)
    return Toy.forward(net, x) * 1e-6 + 1e3 * most.eq(torch.arange(3))


@pytest.mark.parametrize("net", [Toy, Toy.passing(sure)])
@pytest.mark.parametrize("training", [SGD, AdamTraining(lr=0.01, batch_size=4)])
def test_devices_that_rest_or_have_no_loss_left_go_on(training, net):
    assert not alike(toy_federation(net=net), QFFL(q=0.3), training).diverged


@LANES
def test_who_calls_without_gradients_gets_a_trained_model(lanes):
    with torch.no_grad():
        found = run(toy_federation(), FedAvg(), SGD, 1, lanes=lanes)
    assert torch.equal(models(found), models(run(toy_federation(), FedAvg(), SGD, 1, lanes=lanes)))


@LANES
def test_one_output_tells_two_labels_apart(lanes):
    fed = toy_federation(net=lambda: nn.Linear(8, 1))
    for kind in ("train", "test"):
        fed = reading(fed, kind, y=(getattr(fed.data, kind).y == 0).long())
    fed = replace(fed, data=replace(fed.data, classes=2))
    out = run(fed, ClientBaseline(), SGD, 15, tracker=Global(), lanes=lanes)
    x, y = fed.data.test.x, fed.data.test.y
    net = nn.Linear(8, 1)
    nn.utils.vector_to_parameters(models(out)[0, 0], net.parameters())
    with torch.no_grad():
        right = ((net(x)[:, 0] > 0) == y.bool()).float().mean()
    last = out.history["new_test_acc"].iloc[-1]
    assert last == pytest.approx(right.item()) and last > 0.8  # of which 2 in 3 are zeros
    own = run(fed, ClientBaseline(), SGD, 15, tracker=Personal(), lanes=lanes).final.iloc[0]
    assert own["last_new_test_acc_outputs"] > 0.7 < own["last_new_test_acc_probabilities"]


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
    before, own, sent = torch.zeros(2, 3), torch.ones(2, 3), torch.ones(2, 1)
    rest = dict(weights=None, devices=2, _reach=lambda: sent[:, 0])
    trained = Trained(received=sent[0], shared=sent, before=before, own=own, **rest)
    found = ClientRowsAveraged(weighted=False).finish(trained)
    assert found[0] is sent and torch.equal(found[1], torch.full((2, 3), 0.5))


def test_padding_reads_no_row_that_nobody_holds():
    fed = toy_federation(devices=3)
    fed.data.train.y[0] = -1
    alike(holding(fed, train=[[], [3, 4, 5, 6, 7], [8, 9, 10]], validation=None), FedAvg())


def test_to_save_needs_no_gradients_and_draws_nothing(tmp_path):
    wide = nn.Linear(8, 8192), nn.ReLU(), nn.Dropout(), nn.Linear(8192, 3)  # the dual form's
    fed = toy_federation(devices=2, net=nn.Sequential(*wide))
    before = torch.get_rng_state()
    with torch.no_grad():
        run(fed, FedAvg(), SGD, 1, saved=tmp_path / "part.safetensors")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_start_with_gradients_is_taken_as_it_is():
    start = nn.utils.parameters_to_vector(Toy().parameters())[None]
    out = run(toy_federation(), LGFedAvg(layers=ABOVE), SGD, 1, start)
    assert not out.tensors["shared"].requires_grad


class Median(FedAvg):
    def aggregate(self, uploads, weights):
        return uploads.quantile(0.5, 0)


@LANES
@pytest.mark.parametrize("method", [FedAvg(), FedAvg(weighted=False), Median()])
def test_devices_without_rows_have_no_vote(method, lanes):
    whole = toy_federation(devices=5)
    (split,) = whole.partitions

    def of(*held: int):
        """So many devices, with so many of their rows each, none or all."""
        parts = {
            kind: [getattr(split, kind).of(k)[: None if h else 0] for k, h in enumerate(held)]
            for kind in ("train", "test")
        }
        some = holding(whole, validation=None, **parts)
        return run(some, method, SGD, 3, lanes=lanes, workers=1)

    found, other = of(1, 1, 0, 0, 0), of(1, 1)
    torch.testing.assert_close(found.tensors["shared"], other.tensors["shared"])
    assert (found.tensors["shared"][0] - joined(whole.net)).abs().max() > 0.05


def times(by, module, given, outputs):
    return by * outputs


def test_a_hook_is_part_of_what_a_checkpoint_is_of(tmp_path):
    def go(hook, file="part.safetensors"):
        fed = toy_federation()
        fed.net.above.register_forward_hook(hook)
        run(fed, FedAvg(), SGD, 1, saved=tmp_path / file)

    for _ in range(2):
        go(partial(times, 1.0))
    with pytest.raises(CheckpointError):
        go(partial(times, 3.0))
    with pytest.raises(SettingsError, match="a hook of the network's above"):
        go(lambda module, given, outputs: outputs, "other.safetensors")


@LANES
def test_a_device_without_test_rows_is_no_trouble_to_any_network(lanes):
    """Many flatten by `view`, and take no batch without rows."""
    flat = Toy.passing(lambda net, x: Toy.forward(net, x.view(x.size(0), -1)))
    fed = toy_federation(devices=3, net=flat)
    test = fed.partitions[0].test
    phase = prepared(holding(fed, test=[test.of(0), test.of(1), []]), FedAvg())
    engine = Looped(phase, 1) if lanes == "looped" else Batched(phase)
    found = accuracies(engine, "shared", "personal", "test")
    assert found[0, :2].isfinite().all() and found[0, 2].isnan()
    assert engine.own_outputs("shared", "personal", "test").shape == (1, 3, 20, 3)


@dataclass(frozen=True, kw_only=True)
class Seen(Method):
    """Trains alone, and is pulled towards what it sees of the others, by how many there are."""

    needs_peers = True

    def shared(self, net):
        return frozenset()

    def loss(self, local, batch):
        pull = sum((local.params[n] - local.others[n]).square().sum() for n in local.params)
        return super().loss(local, batch) + 0.1 * local.participants * pull


@pytest.mark.parametrize("method", [Seen(), MTL(scale=0.1)])
@LANES
def test_devices_without_rows_are_nobodys_peers(method, lanes):
    """Two that learn are as two among four, of whom two have nothing to learn from."""
    fed = toy_federation(devices=4)
    held, kinds = fed.partitions[0], ("train", "validation", "test")
    first = {kind: [getattr(held, kind).of(k) for k in (0, 1)] for kind in kinds}
    four, two = holding(fed, train=[*first["train"], [], []]), holding(fed, **first)
    many, few = (models(run(f, method, SGD, 3, lanes=lanes, workers=1)) for f in (four, two))
    torch.testing.assert_close(many[:, :2], few, rtol=0, atol=1e-6)
    assert torch.equal(many[0, 2], joined(fed.net))


@LANES
def test_a_device_alone_sees_itself_in_place_of_others(lanes):
    """So that what pulls towards others pulls nowhere as the round begins."""
    pulled, free = (
        run(toy_federation(devices=1), m, replace(SGD, batches=1), 1, lanes=lanes, workers=1)
        for m in (Seen(), LGFedAvg(layers=frozenset()))
    )
    torch.testing.assert_close(pulled.tensors["personal"], free.tensors["personal"])
