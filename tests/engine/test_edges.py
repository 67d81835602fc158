"""At the edges: one output, statistics of a device's own, no rows, steps that are declined."""

from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from torch import nn

from lgfed_core.engine import LocalTraining, run
from lgfed_core.engine.accuracy import accuracies
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.errors import CheckpointError, SettingsError
from lgfed_core.methods import MTL, FedAvg, LGFedAvg, Method, Step
from lgfed_core.methods.cgau import ClientBaseline
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models.layout import joined
from toy import (
    ABOVE,
    BELOW,
    LANES,
    SGD,
    Toy,
    alike,
    answering,
    holding,
    models,
    normed,
    prepared,
    reading,
    toy_federation,
)


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


@pytest.mark.parametrize("released", [False, True])
def test_the_best_model_is_tested_with_what_devices_had_beside_it(released):
    """Statistics of batch normalisation are devices' own: those of the last round are others."""
    training = LocalTraining(1.0, 2, 0.9, batches=1)
    out = run(
        toy_federation(net=normed), FedAvg(), training, 12, tracker=Global(best_on_test=released)
    )
    judged = out.history["new_test_acc" if released else "validation_acc"]
    found = out.history.loc[judged.idxmax(), "new_test_acc"]
    assert out.final["best_new_test_acc"].iloc[0] == pytest.approx(found)
    assert judged.idxmax() < len(judged) - 1  # or the last round's would do as well


def test_statistics_that_are_sent_are_not_blurred():
    training, how = LocalTraining(0.1, 2, batches=1), dict(upload=(Privacy(1.0, 2.0),))
    with pytest.raises(SettingsError, match="a variance may fall below 0"):
        run(toy_federation(net=normed), FedAvg(batch_norm="averaged", **how), training, 1)
    run(toy_federation(net=normed), FedAvg(batch_norm="local", **how), training, 1)


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


def test_steps_that_may_all_be_declined_are():
    declined = answering(
        steps=lambda self, net: (Step(self.loss, None, lambda chance: chance < 0.5),)
    )
    half = models(alike(toy_federation(), declined(), SGD, 3))
    assert not torch.equal(half, models(run(toy_federation(), FedAvg(), SGD, 3)))


class Steep(LGFedAvg):
    """A loss without end in the third round."""

    def loss(self, local, batch):
        return super().loss(local, batch) * (torch.inf if local.round == 2 else 1.0)


@pytest.mark.parametrize("layers", [ABOVE, ABOVE | BELOW])
@pytest.mark.parametrize(
    "tracker", [Global((2, 4), best_on_test=True), Global((4,), best_on_test=True, every=5)]
)
def test_what_a_lost_run_never_reached_is_its_last_model(tracker, layers):
    with pytest.warns(RuntimeWarning, match="round 3"):
        out = run(toy_federation(), Steep(layers=layers), SGD, 5, tracker=tracker)
    t = out.tensors
    assert out.diverged == {0: 3} and t["shared"].any()
    assert all(torch.equal(t[f"at_{n}"], t["shared"]) for n in tracker.snapshots)
    if tracker.every == 5:  # no look at any model before it was lost
        for kept in {"best", "best_personal"} & t.keys():
            assert torch.equal(t[kept], t["shared" if kept == "best" else "personal"])


@LANES
@pytest.mark.parametrize(
    "method",
    [
        *(FedAvg(), FedAvg(weighted=False)),
        answering(aggregate=lambda self, uploads, weights: uploads.quantile(0.5, 0))(),
    ],
)
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
    with pytest.raises(SettingsError, match="a folder; name a file"):
        go(partial(times, 1.0), "")


class Flat(Toy):
    """The toy, which flattens by `view`, as many do: it takes no batch without rows."""

    def forward(self, x):
        return super().forward(x.view(x.size(0), -1))


@LANES
def test_a_device_without_test_rows_is_no_trouble_to_any_network(lanes):
    fed = toy_federation(devices=3, net=Flat())
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
