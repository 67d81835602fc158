"""The loop: methods that must coincide do, lanes agree, and arithmetic is what hands compute."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from lgfed_core import FedAvg, FedProx, Global, LGFedAvg, LocalOnly, Method, Personal, Tracker
from lgfed_core.engine import LocalTraining, Participation, rounds, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.methods import FADE, MTL, ClientBaseline, FedPer
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.layout import Layout, joined
from lgfed_core.seeds import Purpose, stream
from toy import ABOVE, BELOW, LANES, SGD, Toy, alike, grouped, models, toy_federation


@LANES
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FedProx(mu=0.0), FedAvg()),
        (LGFedAvg(layers=ABOVE | BELOW), FedAvg()),
        (LGFedAvg(layers=frozenset()), LocalOnly()),
        (FedPer(layers=BELOW), LGFedAvg(layers=BELOW)),
        (ClientBaseline(), FedAvg()),
    ],
)
def test_at_its_limits_a_method_is_another(federation, one, other, lanes):
    found, same = (models(run(federation, m, SGD, 4, lanes=lanes, workers=1)) for m in (one, other))
    assert torch.equal(found, same)
    assert torch.equal(found[0, 0], found[0, 1]) == isinstance(other, FedAvg)


@pytest.mark.parametrize("keep", [False, True])
def test_batched_lanes_equal_looped_lanes(keep):
    method = MTL(scale=0.1)  # whose loss reads the others' models
    training = LocalTraining(0.1, 4, epochs=2, weight_decay=0.01, keep_momentum=keep)
    alike(toy_federation((0, 1), fraction=0.4), method, training, 3, tracker=Personal())


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


def test_participants_are_drawn_as_they_are_available_and_the_cohort_is_max_1():
    for who, due in (
        (Participation(0.2), [200] * 10),
        (Participation(0.1, torch.tensor([[0.02] * 5 + [0.18] * 5])), [20] * 5 + [180] * 5),
    ):
        drawn = [who.chosen(stream(0, Purpose.SELECT, t), 10) for t in range(1000)]
        assert {len(d) for d in drawn} == {who.cohort(10)}
        counts = np.bincount(np.concatenate(drawn), minlength=10)
        assert (np.abs(counts - due) < 4.5 * np.sqrt(due)).all()  # above four deviations
    assert Participation(0.01).cohort(10) == 1 and Participation(0.29).cohort(100) == 29
    assert Participation().chosen(stream(0, Purpose.SELECT, 0), 4).tolist() == [0, 1, 2, 3]


def test_layout_splits_and_joins():
    layout, vector = Layout(Toy(), ABOVE), torch.arange(150.0).view(2, 75)
    shared, personal = layout.split(vector)
    assert shared[0].tolist() == list(range(54, 75))
    assert torch.equal(layout.join(shared, personal), vector)
    assert torch.equal(layout.join(shared[:1], personal)[1, :54], vector[1, :54])


KEPT = LocalTraining(
    0.1, 5, 0.9, batches=2, nesterov=True, keep_momentum=True, annealing=Annealing(12)
)
GAME = FADE(rounds=3, power=2.0, opt_out=0.3, beta=1.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    ("make", "method", "training", "tracker"),
    [
        (toy_federation, LGFedAvg(layers=ABOVE), SGD, AveragedBest()),
        (toy_federation, FedAvg(), SGD, Global((2,))),
        (toy_federation, LocalOnly(), KEPT, Personal("test", patience=2, stop_at=(0.9, 1))),
        (partial(grouped, normalised=True), GAME, KEPT, Tracker()),
        (partial(grouped, normalised=True), replace(GAME, batch_norm="averaged"), KEPT, Tracker()),
    ],
)
def test_gpu_equals_cpu(make, method, training, tracker):
    cpu = replace(make((0, 1)), participation=Participation(0.5))
    gpu = replace(cpu, net=copy.deepcopy(cpu.net).cuda(), device=torch.device("cuda"))
    a, b = (run(f, method, training, 3, tracker=tracker, workers=1) for f in (cpu, gpu))
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
