"""The loop: methods that must coincide do, lanes agree, and arithmetic is what hands compute."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from lgfed_core.engine import LocalTraining, Participation, rounds, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.errors import SettingsError
from lgfed_core.methods import MTL, FedAvg, FedProx, LGFedAvg, LocalOnly, Method, ReleasedMTL
from lgfed_core.models.layout import Layout, joined
from lgfed_core.seeds import Purpose, stream
from toy import ABOVE, BELOW, LANES, SGD, Toy, alike, batches, models, step, toy_federation


def test_fedprox_with_a_pull_stays_closer():
    federation = toy_federation(fraction=0.1)
    start = joined(federation.net)
    drift = {
        mu: (run(federation, FedProx(mu=mu), SGD, 1, workers=1).tensors["shared"] - start).norm()
        for mu in (0.0, 1.0)
    }
    assert drift[1.0] < 0.95 * drift[0.0]


@LANES
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FedProx(mu=0.0), FedAvg()),
        (LGFedAvg(layers=ABOVE | BELOW), FedAvg()),
        (LGFedAvg(layers=frozenset()), LocalOnly()),
    ],
)
def test_at_its_limits_a_method_is_another(federation, one, other, lanes):
    found, same = (models(run(federation, m, SGD, 4, lanes=lanes, workers=1)) for m in (one, other))
    assert torch.equal(found, same)
    assert torch.equal(found[0, 0], found[0, 1]) == isinstance(other, FedAvg)


def test_one_device_is_plain_sgd():
    federation = toy_federation(devices=1)
    ours = run(federation, FedAvg(), SGD, 3, workers=1)
    net = copy.deepcopy(federation.net)
    for number in range(3):
        optimiser = torch.optim.SGD(net.parameters(), SGD.lr, SGD.momentum)
        for batch in batches(federation, number):
            step(net, optimiser, *batch)
    assert torch.allclose(ours.tensors["shared"][0], joined(net), atol=1e-6)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    "method",
    [
        *(FedAvg(), LGFedAvg(layers=ABOVE), LocalOnly(), FedProx()),
        *(MTL(scale=0.1), ReleasedMTL(scale=0.01)),
    ],
)
def test_batched_lanes_equal_looped_lanes(method, keep):
    training = LocalTraining(0.1, 4, epochs=2, weight_decay=0.01, keep_momentum=keep)
    alike(toy_federation((0, 1), fraction=0.4), method, training, 3, tracker=Personal())


def test_workers_change_no_bit():
    federation = toy_federation(seeds=(0, 1), fraction=0.5)
    method = LGFedAvg(layers=ABOVE)
    one, two = (run(federation, method, SGD, 3, tracker=Personal(), workers=w) for w in (1, 2))
    assert all(torch.equal(one.tensors[n], two.tensors[n]) for n in one.tensors)
    assert one.final.equals(two.final)


@LANES
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


def test_availability_must_leave_enough_devices(federation):
    here = torch.zeros(1, federation.clients)
    here[0, :3] = 1 / 3  # in float32, so that the sum is one to seven digits alone
    run(replace(federation, participation=Participation(0.3, here)), FedAvg(), SGD, 1)
    with pytest.raises(SettingsError, match="5 devices are drawn a round, but only 3"):
        run(replace(federation, participation=Participation(0.5, here)), FedAvg(), SGD, 1)


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
    """A method of three lines, to show that a new one needs no change elsewhere."""

    def loss(self, local, batch):
        return batch.mean(local.net(batch.x).square().mean(-1))


def test_a_new_method_is_one_short_class(federation):
    found, x = alike(federation, Mean()), federation.data.train.x
    before = federation.net(x).square().mean()
    nn.utils.vector_to_parameters(found.tensors["shared"][0], federation.net.parameters())
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
    found = alike(federation, HeadOnly())
    moved = (found.tensors["shared"][0] != joined(federation.net)).nonzero().flatten().tolist()
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
