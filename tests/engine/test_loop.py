"""The loop: methods that must coincide do, lanes agree, and arithmetic is what hands compute."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core.engine import Federation, LocalTraining, Participation, rounds, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.errors import SettingsError
from lgfed_core.methods import MTL, FedAvg, FedProx, LGFedAvg, LocalOnly, Method, ReleasedMTL
from lgfed_core.models.layout import Layout, joined
from lgfed_core.seeds import Purpose, stream, visits
from toy import ABOVE, SGD, Toy, models, toy_federation


@pytest.mark.parametrize("lanes", ["looped", "batched"])
def test_fedprox_without_pull_is_fedavg(federation, lanes):
    pulled, plain = (
        run(federation, m, SGD, 4, lanes=lanes, workers=1) for m in (FedProx(mu=0.0), FedAvg())
    )
    assert torch.equal(models(pulled), models(plain))


def test_fedprox_with_a_pull_stays_closer():
    federation = toy_federation(fraction=0.1)
    start = joined(federation.net)
    drift = {
        mu: (run(federation, FedProx(mu=mu), SGD, 1, workers=1).tensors["shared"] - start).norm()
        for mu in (0.0, 1.0)
    }
    assert drift[1.0] < 0.95 * drift[0.0]


def test_lg_fedavg_sharing_all_is_fedavg(federation):
    everything = frozenset(n for n, _ in federation.net.named_parameters())
    shared = run(federation, LGFedAvg(layers=everything), SGD, 4, workers=1)
    plain = run(federation, FedAvg(), SGD, 4, workers=1)
    assert torch.equal(models(shared), models(plain))


def test_lg_fedavg_sharing_nothing_is_local_only(federation):
    none = run(federation, LGFedAvg(layers=frozenset()), SGD, 4, workers=1)
    alone = run(federation, LocalOnly(), SGD, 4, workers=1)
    assert torch.equal(models(none), models(alone))
    assert not torch.allclose(models(none)[0, 0], models(none)[0, 1])


def test_one_device_is_plain_sgd():
    federation = toy_federation(devices=1)
    rounds, rows = 3, federation.partitions[0].train.of(0)
    ours = run(federation, FedAvg(), SGD, rounds, workers=1)

    net = copy.deepcopy(federation.net)
    x, y = federation.data.train.x[rows], federation.data.train.y[rows]
    for number in range(rounds):
        optimiser = torch.optim.SGD(net.parameters(), SGD.lr, SGD.momentum)
        for at in torch.from_numpy(visits(0, number, 0, len(rows), 1)[0]).split(SGD.batch_size):
            optimiser.zero_grad()
            F.cross_entropy(net(x[at]), y[at]).backward()
            optimiser.step()
    assert torch.allclose(ours.tensors["shared"][0], joined(net), atol=1e-6)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    "method",
    [
        FedAvg(),
        LGFedAvg(layers=ABOVE),
        LocalOnly(),
        FedProx(),
        MTL(scale=0.1),
        ReleasedMTL(scale=0.01),
    ],
)
def test_batched_lanes_equal_looped_lanes(method, keep):
    federation = toy_federation(seeds=(0, 1), fraction=0.4)
    training = LocalTraining(0.1, 4, epochs=2, weight_decay=0.01, keep_momentum=keep)
    looped, batched = (
        run(federation, method, training, 3, tracker=Personal(), lanes=lanes, workers=1)
        for lanes in ("looped", "batched")
    )
    assert torch.allclose(models(looped), models(batched), atol=1e-5)
    assert np.allclose(looped.final, batched.final)
    assert np.allclose(looped.history, batched.history)


def test_workers_change_no_bit():
    federation = toy_federation(seeds=(0, 1), fraction=0.5)
    method = LGFedAvg(layers=ABOVE)
    one, two = (run(federation, method, SGD, 3, tracker=Personal(), workers=w) for w in (1, 2))
    assert all(torch.equal(one.tensors[n], two.tensors[n]) for n in one.tensors)
    assert one.final.equals(two.final)


@pytest.mark.parametrize("lanes", ["looped", "batched"])
def test_a_seed_alone_equals_that_seed_among_ten(lanes):
    method, third = LGFedAvg(layers=ABOVE), dict(fraction=0.3)
    many = run(toy_federation(range(10), **third), method, SGD, 3, lanes=lanes, workers=1)
    alone = run(toy_federation([7], **third), method, SGD, 3, lanes=lanes, workers=1)
    equal = torch.equal if lanes == "looped" else torch.allclose
    assert equal(models(alone)[0], models(many)[7])
    assert not torch.allclose(models(many)[6], models(many)[7])


def test_a_later_phase_draws_other_devices_and_batches():
    federation = toy_federation(fraction=0.1)
    first = run(federation, FedAvg(), SGD, 1, workers=1)
    later = run(federation, FedAvg(), SGD, 1, workers=1, first_round=1)
    both = run(federation, FedAvg(), SGD, 2, workers=1)
    then = run(federation, FedAvg(), SGD, 1, first.tensors["shared"], workers=1, first_round=1)
    assert not torch.equal(first.tensors["shared"], later.tensors["shared"])
    assert torch.equal(then.tensors["shared"], both.tensors["shared"])


def test_the_average_by_hand():
    uploads, rows = torch.tensor([[0.0, 8.0], [4.0, 0.0]]), torch.tensor([1, 3])
    for method, average in ((FedAvg(), [3.0, 2.0]), (FedAvg(weighted=False), [2.0, 4.0])):
        found = method.aggregate(uploads, method.weights(rows))
        assert found.tolist() == average
        assert method.server_update(torch.zeros(2), found) is found


def test_only_shared_layers_are_equal_across_devices(federation):
    outcome = run(federation, LGFedAvg(layers=ABOVE), SGD, 2, workers=1)
    assert outcome.tensors["shared"].shape == (1, 21)
    assert outcome.tensors["personal"].shape == (1, 10, 54)
    below = outcome.tensors["personal"][0]
    assert all(not torch.equal(below[0], other) for other in below[1:])


def test_devices_left_out_keep_their_personal_layers():
    federation = toy_federation(fraction=0.3)
    chosen = federation.participation.chosen(stream(0, Purpose.SELECT, 0), 10).tolist()
    outcome = run(federation, LGFedAvg(layers=ABOVE), SGD, 1, workers=1)
    start = Layout(federation.net, ABOVE).split(joined(federation.net))[1]
    moved = [k for k in range(10) if not torch.equal(outcome.tensors["personal"][0, k], start)]
    assert moved == chosen and len(chosen) == 3


def test_participants_are_fair_and_the_cohort_is_max_1():
    tenth = Participation(0.1)
    drawn = [tenth.chosen(stream(0, Purpose.SELECT, t), 20) for t in range(2000)]
    assert {len(d) for d in drawn} == {2}
    counts = np.bincount(np.concatenate(drawn), minlength=20)  # each 200 on average, sd 13.4
    assert counts.min() > 140 and counts.max() < 260
    assert Participation(0.01).cohort(10) == 1 and Participation(0.29).cohort(100) == 29
    assert Participation().chosen(stream(0, Purpose.SELECT, 0), 4).tolist() == [0, 1, 2, 3]


def test_layout_splits_and_joins():
    layout, vector = Layout(Toy(), ABOVE), torch.arange(150.0).view(2, 75)
    shared, personal = layout.split(vector)
    assert shared[0].tolist() == list(range(54, 75))
    assert torch.equal(layout.join(shared, personal), vector)
    assert torch.equal(layout.join(shared[:1], personal)[1, :54], vector[1, :54])


def test_momentum_is_kept_only_when_asked(federation):
    kept = run(federation, LocalOnly(), LocalTraining(0.1, 4, keep_momentum=True), 2, workers=1)
    reset = run(federation, LocalOnly(), LocalTraining(0.1, 4), 2, workers=1)
    assert not torch.allclose(models(kept), models(reset))
    assert kept.tensors["velocity"].abs().sum() > 0 and "velocity" not in reset.tensors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(lanes="sideways"), "looped"),
        (dict(rounds=-1), "rounds is -1"),
        (dict(start=torch.zeros(1, 3)), "shape"),
        (dict(workers=0), "workers is 0"),
        (dict(method=LGFedAvg(layers=frozenset({"nowhere"}))), "nowhere"),
        (dict(tracker=Global(snapshots=(2,))), r"snapshots \(2,\) are asked of 1 rounds"),
    ],
)
def test_impossible_settings_are_named(federation, change, message):
    arguments = dict(method=FedAvg(), training=SGD, rounds=1) | change
    with pytest.raises(SettingsError, match=message):
        run(federation, **arguments)


def test_impossible_federations_are_named(federation):
    with pytest.raises(SettingsError, match="one each"):
        Federation(federation.data, federation.partitions, federation.net, [0, 1])
    with pytest.raises(SettingsError, match="same number of devices"):
        Federation(
            federation.data,
            [*federation.partitions, *toy_federation(devices=4).partitions],
            federation.net,
            [0, 1],
        )
    leaky = nn.BatchNorm1d(3, momentum=None)  # its mean is over all batches of all devices
    with pytest.raises(SettingsError, match="1 keeps buffers"):
        toy_federation(net=nn.Sequential(nn.Linear(8, 3), leaky))
    with pytest.raises(SettingsError, match="fraction"):
        Participation(0.0)
    with pytest.raises(SettingsError, match="negative"):
        toy_federation(seeds=(-1,))


@pytest.mark.parametrize("there", [[1.5, -0.5], [0.5, 0.4], [float("nan"), 1.0]])
def test_an_impossible_availability_is_named(there):
    with pytest.raises(SettingsError, match="availability"):
        Participation(0.5, torch.tensor([there]))


def test_availability_must_leave_enough_devices(federation):
    here = torch.zeros(1, federation.clients)
    here[0, :3] = 1 / 3  # in float32, so that the sum is one to seven digits alone
    run(replace(federation, participation=Participation(0.3, here)), FedAvg(), SGD, 1)
    with pytest.raises(SettingsError, match="5 devices are drawn a round, but only 3"):
        run(replace(federation, participation=Participation(0.5, here)), FedAvg(), SGD, 1)


@pytest.mark.parametrize(
    "change",
    [
        dict(batch_size=0),
        dict(epochs=0),
        dict(batches=0),
        dict(momentum=-1.0),
        dict(lr=-0.1),
        dict(lr=float("nan")),
        dict(weight_decay=-1.0),
        dict(decay=-0.1),
    ],
)
def test_impossible_training_is_named(change):
    with pytest.raises(SettingsError, match=next(iter(change))):
        LocalTraining(**(dict(lr=0.1, batch_size=4) | change))


def test_trackers_name_what_they_cannot_do():
    for make, said in (
        (lambda: Personal(ties="frist"), "frist"),
        (lambda: Personal(every=0), "every is 0"),
        (lambda: Global(every=0), "every is 0"),
    ):
        with pytest.raises(SettingsError, match=said):
            make()


def test_a_network_may_have_a_parameter_without_axes():
    class Scaled(Toy):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            return self.scale * super().forward(x)

    outcome = run(toy_federation(net=Scaled()), FedAvg(), SGD, 1)
    assert outcome.layout.views(outcome.tensors["shared"][0], torch.empty(0))["scale"].shape == ()


class Mean(Method):
    """A method of ten lines, to show that a new one needs no change elsewhere."""

    def loss(self, local, batch):
        return batch.mean(local.net(batch.x).square().mean(-1))


def test_a_new_method_is_one_short_class(federation):
    looped, batched = (
        run(federation, Mean(), SGD, 2, lanes=lanes, workers=1) for lanes in ("looped", "batched")
    )
    assert torch.allclose(models(looped), models(batched), atol=1e-6)
    x = federation.data.train.x
    before = federation.net(x).square().mean()
    nn.utils.vector_to_parameters(looped.tensors["shared"][0], federation.net.parameters())
    assert federation.net(x).square().mean() < before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_equals_cpu():
    cpu = toy_federation(seeds=(0, 1), fraction=0.5)
    gpu = replace(cpu, net=copy.deepcopy(cpu.net).cuda(), device=torch.device("cuda"))
    cases = [
        (LGFedAvg(layers=ABOVE), SGD, AveragedBest),
        (FedAvg(), SGD, lambda: Global((2,))),
        (
            LocalOnly(),
            LocalTraining(0.1, 4, keep_momentum=True),
            lambda: Personal("test", patience=2, stop_at=(0.9, 1)),
        ),
    ]
    for method, training, tracker in cases:
        a, b = (run(f, method, training, 3, tracker=tracker(), workers=1) for f in (cpu, gpu))
        assert torch.allclose(models(a), models(b).cpu(), atol=1e-4)
        assert np.allclose(a.final, b.final, atol=0.05)  # a row near a tie may fall either way


class HeadOnly(Method):
    """An objective that leaves the lower layer out: its gradient is zero in both kinds of lanes."""

    def loss(self, local, batch):
        score = local.params["above.bias"] * torch.arange(3.0)
        return (score - 1).square().sum() * batch.mean(torch.ones(len(batch.y)))


def test_parameters_that_an_objective_leaves_out_stay():
    federation = toy_federation(fraction=0.1)  # an average of equal numbers may round
    looped, batched = (
        run(federation, HeadOnly(), SGD, 2, lanes=lanes, workers=1)
        for lanes in ("looped", "batched")
    )
    assert torch.allclose(models(looped), models(batched), atol=1e-6)
    start = joined(federation.net)
    moved = (looped.tensors["shared"][0] != start).nonzero().flatten().tolist()
    assert moved == [73, 74]  # the two biases of `above` that the score depends on


@pytest.mark.parametrize("seeds", [(0, 0), (0, 1)])
def test_each_run_draws_by_its_own_availability(seeds):
    there = torch.zeros(2, 10)
    there[0, :5] = there[1, 5:] = 0.2
    fed = replace(toy_federation(seeds), participation=Participation(0.3, there))
    drawn = {(run, device >= 5) for n in range(5) for run, device in rounds._jobs(fed, None, n)}
    assert drawn == {(0, False), (1, True)}


def test_devices_begin_alike_where_they_share():
    fed = toy_federation()
    start = joined(fed.net).expand(1, 10, -1).clone()
    start[0, 3] += 1
    with pytest.raises(SettingsError, match="different values of parameters that are shared"):
        run(fed, FedAvg(), SGD, 1, start, workers=1)
