"""At the edges: one output, statistics of a device's own, no rows, steps that are declined."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from lgfed_core.data import Dataset, Split
from lgfed_core.data.augment import CropFlip
from lgfed_core.engine import LocalTraining, Participation, arrays, run
from lgfed_core.engine.accuracy import accuracies
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.prepare import prepare
from lgfed_core.engine.trackers import Global, Personal, Tracker
from lgfed_core.engine.training import both, decided
from lgfed_core.errors import SettingsError
from lgfed_core.methods import MTL, FedAvg, LGFedAvg, Method, Step
from lgfed_core.methods.cgau import ClientBaseline
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices
from toy import ABOVE, SGD, Toy, models, toy_federation

LANES = ("looped", "batched")


class One(nn.Module):
    """8 -> 1."""

    def __init__(self):
        super().__init__()
        self.only = nn.Linear(8, 1)

    def forward(self, x):
        return self.only(x)


class Normed(Toy):
    """The toy, with batch normalisation between its layers."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        return self.above(self.norm(self.below(x)).relu())


def two_labels():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fed = toy_federation(net=One())
    splits = (replace(s, y=(s.y == 0).long()) for s in (fed.data.train, fed.data.test))
    train, test = splits
    return replace(fed, data=replace(fed.data, train=train, test=test, classes=2))


@pytest.mark.parametrize("lanes", LANES)
def test_one_output_tells_two_labels_apart(lanes):
    fed = two_labels()
    out = run(fed, ClientBaseline(), SGD, 15, tracker=Global(), lanes=lanes)
    x, y = fed.data.test.x, fed.data.test.y
    net = One()
    nn.utils.vector_to_parameters(models(out)[0, 0], net.parameters())
    with torch.no_grad():
        right = ((net(x)[:, 0] > 0) == y.bool()).float().mean()
    last = out.history["new_test_acc"].iloc[-1]
    assert last == pytest.approx(right.item()) and last > 0.8  # of which 2 in 3 are zeros
    own = run(fed, ClientBaseline(), SGD, 15, tracker=Personal(), lanes=lanes).final.iloc[0]
    assert own["last_new_test_acc_outputs"] > 0.7 < own["last_new_test_acc_probabilities"]


def test_an_output_alone_is_read_as_its_probability_is():
    outputs = torch.tensor([[-2.0], [-0.1], [0.1], [2.0]])
    said, chance = both(One(), outputs)
    assert decided(said).tolist() == decided(chance).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("released", [False, True])
def test_the_best_model_is_tested_with_what_devices_had_beside_it(released):
    """Statistics of batch normalisation are devices' own: those of the last round are others."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fed = toy_federation(net=Normed())
    training = LocalTraining(1.0, 2, 0.9, batches=1)
    out = run(fed, FedAvg(), training, 12, tracker=Global(best_on_test=released))
    judged = out.history["new_test_acc" if released else "validation_acc"]
    found = out.history.loc[judged.idxmax(), "new_test_acc"]
    assert out.final["best_new_test_acc"].iloc[0] == pytest.approx(found)
    assert judged.idxmax() < len(judged) - 1  # or the last round's would do as well


def test_steps_that_may_all_be_declined_are():
    @dataclass(frozen=True, kw_only=True)
    class Half(FedAvg):
        def steps(self, net):
            return (Step(self.loss, None, lambda chance: chance < 0.5),)

    looped, batched = (models(run(toy_federation(), Half(), SGD, 3, lanes=x)) for x in LANES)
    torch.testing.assert_close(looped, batched)
    assert not torch.equal(looped, models(run(toy_federation(), FedAvg(), SGD, 3)))


def test_statistics_that_are_sent_are_not_blurred():
    fed = toy_federation(net=Normed())
    training = LocalTraining(0.1, 2, batches=1)
    how = dict(upload=(Privacy(1.0, 2.0),))
    with pytest.raises(SettingsError, match="a variance may fall below 0"):
        run(fed, FedAvg(batch_norm="averaged", **how), training, 1)
    run(fed, FedAvg(batch_norm="local", **how), training, 1)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(
    "training",
    [LocalTraining(0.1, 4, 0.9, keep_momentum=True), LocalTraining(0.1, 4, annealing=Annealing(5))],
)
def test_who_is_kept_out_goes_on_as_before_that_round(lanes, training):
    """As if it had not been asked: its momentum and the count of its steps are what they were."""

    @dataclass(frozen=True, kw_only=True)
    class Leaps(FedAvg):
        far: float = 1.0

        def loss(self, local, batch):
            there = batch.x.abs().amax() > 50  # device 0 alone has such a row
            leap = torch.where(there & torch.tensor(local.round == 1), self.far, 1.0)
            return super().loss(local, batch) * leap

    fed = toy_federation(devices=3)
    x = fed.data.train.x.clone()
    x[fed.partitions[0].train.of(0)] *= 100
    fed = replace(fed, data=replace(fed.data, train=replace(fed.data.train, x=x)))
    who = Participation(farthest=1e6, keep_out=True)
    first = run(fed, Leaps(), training, 1, lanes=lanes)
    with pytest.warns(RuntimeWarning, match="round 2: what client 0 sent is"):
        found = run(replace(fed, participation=who), Leaps(far=1e12), training, 2, lanes=lanes)
    for name in {"velocity", "taken"} & first.tensors.keys():
        assert torch.equal(found.tensors[name][0, 0], first.tensors[name][0, 0])
        assert not torch.equal(found.tensors[name][0, 1], first.tensors[name][0, 1])


def test_padding_reads_no_row_that_nobody_holds():
    fed = toy_federation(devices=3)
    held = [[], [3, 4, 5, 6, 7], [8, 9, 10]]
    part = replace(fed.partitions[0], train=ClientIndices.from_lists(held), validation=None)
    y = fed.data.train.y.clone()
    y[0] = -1
    data = replace(fed.data, train=replace(fed.data.train, y=y))
    fed = replace(fed, data=data, partitions=[part])
    looped, batched = (models(run(fed, FedAvg(), SGD, 2, lanes=x)) for x in LANES)
    torch.testing.assert_close(looped, batched)


@pytest.mark.parametrize("lanes", LANES)
def test_without_any_test_rows_of_devices_the_whole_set_is_tested(lanes):
    fed = toy_federation(devices=3)
    part = replace(fed.partitions[0], test=ClientIndices.from_lists([[], [], []]))
    fed = replace(fed, partitions=[part])
    out = run(fed, FedAvg(), SGD, 2, tracker=Global(best_on_test=True), lanes=lanes)
    assert out.final["best_new_test_acc"].iloc[0] > 0.3
    assert out.final["best_local_test_acc"].isna().all()


class Wide(nn.Module):
    """A first layer that may take the dual form, with noise behind it."""

    def __init__(self):
        super().__init__()
        self.first, self.noise, self.last = nn.Linear(8, 8192), nn.Dropout(), nn.Linear(8192, 3)

    def forward(self, x):
        return self.last(self.noise(self.first(x).relu()))


def test_to_save_needs_no_gradients_and_draws_nothing(tmp_path):
    fed = toy_federation(devices=2, net=Wide())
    torch.manual_seed(1)
    wanted = torch.rand(1)
    torch.manual_seed(1)
    with torch.no_grad():
        run(fed, FedAvg(), SGD, 1, saved=tmp_path / "part.safetensors")
    assert torch.equal(torch.rand(1), wanted)


class Steep:
    """A loss without end in the third round."""

    def loss(self, local, batch):
        return super().loss(local, batch) * (torch.inf if local.round == 2 else 1.0)


def test_a_snapshot_that_a_lost_run_never_reached_is_its_last_model():
    @dataclass(frozen=True, kw_only=True)
    class Breaks(Steep, FedAvg):
        pass

    with pytest.warns(RuntimeWarning, match="round 3"):
        out = run(toy_federation(), Breaks(), SGD, 5, tracker=Global((2, 4)))
    assert out.diverged == {0: 3}
    assert torch.equal(out.tensors["at_4"], out.tensors["shared"])
    assert torch.equal(out.tensors["at_2"], out.tensors["shared"])  # as it was before round 3


def test_a_run_that_is_lost_before_the_first_look_keeps_the_model_it_had():
    @dataclass(frozen=True, kw_only=True)
    class Breaks(Steep, LGFedAvg):
        pass

    with pytest.warns(RuntimeWarning, match="round 3"):
        rare = Global((5,), best_on_test=True, every=5)
        out = run(toy_federation(), Breaks(layers=ABOVE), SGD, 5, tracker=rare)
    t = out.tensors
    assert out.diverged == {0: 3} and t["shared"].any()
    assert torch.equal(t["best"], t["shared"]) and torch.equal(t["best_personal"], t["personal"])
    assert torch.equal(t["at_5"], t["shared"])


@dataclass(frozen=True, kw_only=True)
class Median(FedAvg):
    def aggregate(self, uploads, weights):
        return uploads.quantile(0.5, 0)


@pytest.mark.parametrize("lanes", ["looped", "batched"])
@pytest.mark.parametrize("method", [FedAvg(), FedAvg(weighted=False), Median()])
def test_devices_without_rows_have_no_vote(method, lanes):
    whole = toy_federation(devices=5)
    (split,) = whole.partitions

    def of(*held: int):
        """So many devices, with so many of their rows each, none or all."""
        parts = [
            ClientIndices.from_lists([p.of(k)[: None if h else 0] for k, h in enumerate(held)])
            for p in (split.train, split.test)
        ]
        some = replace(split, train=parts[0], validation=None, test=parts[1])
        return run(replace(whole, partitions=[some]), method, SGD, 3, lanes=lanes, workers=1)

    found, other = of(1, 1, 0, 0, 0), of(1, 1)
    torch.testing.assert_close(found.tensors["shared"], other.tensors["shared"])
    start = torch.cat([p.detach().flatten() for p in whole.net.parameters()])
    assert (found.tensors["shared"][0] - start).abs().max() > 0.05


def hooked(by: float) -> Toy:
    net = Toy()
    net.load_state_dict(toy_federation().net.state_dict())
    net.above.register_forward_hook(_Times(by))
    return net


class _Times:
    def __init__(self, by: float):
        self.by = by

    def __call__(self, module, given, outputs):
        return self.by * outputs


def test_a_hook_is_part_of_what_a_checkpoint_is_of(tmp_path):
    from lgfed_core.errors import CheckpointError

    saved = tmp_path / "part.safetensors"
    run(toy_federation(net=hooked(1.0)), FedAvg(), SGD, 1, saved=saved)
    with pytest.raises(CheckpointError):
        run(toy_federation(net=hooked(3.0)), FedAvg(), SGD, 1, saved=saved)
    run(toy_federation(net=hooked(1.0)), FedAvg(), SGD, 1, saved=saved)
    net = toy_federation().net
    net.above.register_forward_hook(lambda module, given, outputs: outputs)
    with pytest.raises(SettingsError, match="a hook of the network's above"):
        run(toy_federation(net=net), FedAvg(), SGD, 1, saved=tmp_path / "other.safetensors")


@pytest.mark.parametrize(
    "said, asked",
    [
        ("snapshot 0 is 1.5", lambda tmp: Global((1.5,))),
        ("snapshot 0 is True", lambda tmp: Global((True,))),
        ("every is 2.5", lambda tmp: Global(every=2.5)),
        ("a folder; name a file", lambda tmp: run(toy_federation(), FedAvg(), SGD, 1, saved=tmp)),
        ("batch_size None", lambda tmp: LocalTraining(0.1, None)),
        ("lr None", lambda tmp: LocalTraining(None, 4)),
        ("lr '0.1'", lambda tmp: LocalTraining("0.1", 4)),
        ("no object with a method `apply`", lambda tmp: LocalTraining(0.1, 4, augment="x")),
        ("no object with a method `factor`", lambda tmp: LocalTraining(0.1, 4, annealing=3)),
        ("batch_size is 0", lambda tmp: adapted(batch_size=0)),
        ("seed is 1.5", lambda tmp: adapted(seed=1.5)),
        ("made by DANN", lambda tmp: adapted(method="SHOT")),
        ("there must be two", lambda tmp: adapted(y=[7] * 6)),
        ("row 1 of user 0 has the label -1", lambda tmp: adapted(y=[0, -1, 1, 0, 1, 0])),
        ("row 2 of user 0 has the label nan", lambda tmp: adapted(y=[0.0, 1.0, math.nan, 0, 1, 0])),
        (
            "row 0 of user 0 has the label None",
            lambda tmp: adapted(y=[None, "a", "b", "a", "b", "a"]),
        ),
        (
            "a number in row 1 that is not finite",
            lambda tmp: SAID.predict([[0, 0, 0], [0, 1, math.nan]]),
        ),
        ("no object with a method `apply`", lambda tmp: LocalTraining(0.1, 4, augment=CropFlip)),
        ("CropFlip has 2 numbers in fill, for pictures with 1", lambda tmp: cropped((0, 0))),
        ("fill is 0.0; it must be a number for each", lambda tmp: cropped(0.0)),
        ("padding is -1", lambda tmp: CropFlip((0.0,), -1)),
        ("partitions is one Partition", lambda tmp: federated(partitions=FED.partitions[0])),
        (r"seeds is 0; give a list, as \[0\]", lambda tmp: federated(seeds=0)),
        ("net is <class 'toy.Toy'>; it must be made by Module", lambda tmp: federated(net=Toy)),
        ("participation is 0.5; it must be made", lambda tmp: federated(participation=0.5)),
        ("data is None", lambda tmp: federated(data=None)),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(said, asked, tmp_path):
    with pytest.raises(SettingsError, match=said):
        asked(tmp_path)


FED = toy_federation()
SAID = SimpleNamespace(
    predict=lambda x: arrays.adapt(X_OF_3, [0, 1, 0, 1, 0, 1], USERS, rounds=1).predict(x, 1)
)
X_OF_3, USERS = [[float(i + j) for j in range(3)] for i in range(6)], [0, 0, 0, 1, 1, 1]


def federated(**changed):
    return replace(FED, **changed)


def cropped(fill):
    pictures = Split(torch.zeros(150, 1, 2, 4), FED.data.train.y)
    tests = Split(torch.zeros(60, 1, 2, 4), FED.data.test.y)
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 3))
    fed = federated(data=Dataset("pictures", pictures, tests, 3), net=net)
    return run(fed, FedAvg(), replace(SGD, augment=CropFlip(fill)), 0)


def adapted(y=(0, 1, 0, 1, 0, 1), **more):
    return arrays.adapt(torch.randn(6, 3).numpy(), list(y), [0, 0, 0, 1, 1, 1], **more)


def test_a_start_with_gradients_is_taken_as_it_is():
    fed = toy_federation()
    start = nn.utils.parameters_to_vector(fed.net.parameters())[None]
    out = run(fed, LGFedAvg(layers=ABOVE), SGD, 1, start)
    assert not out.tensors["shared"].requires_grad


class Flat(Toy):
    """The toy, which flattens by `view`, as many do: it takes no batch without rows."""

    def forward(self, x):
        return super().forward(x.view(x.size(0), -1))


@pytest.mark.parametrize("lanes", LANES)
def test_a_device_without_test_rows_is_no_trouble_to_any_network(lanes):
    fed = toy_federation(devices=3, net=Flat())
    part = fed.partitions[0]
    test = ClientIndices.from_lists([part.test.of(0), part.test.of(1), part.test.of(2)[:0]])
    fed = replace(fed, partitions=[replace(part, test=test)])
    phase = prepare(fed, FedAvg(), SGD, joined(fed.net)[None], Tracker(), False)
    engine = (Looped if lanes == "looped" else Batched)(phase, *([1] * (lanes == "looped")))
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
@pytest.mark.parametrize("lanes", LANES)
def test_devices_without_rows_are_nobodys_peers(method, lanes):
    """Two that learn are as two among four, of whom two have nothing to learn from."""
    fed = toy_federation(devices=4)
    part = fed.partitions[0]
    bare = [part.train.of(0), part.train.of(1), part.train.of(2)[:0], part.train.of(3)[:0]]
    four = replace(fed, partitions=[replace(part, train=ClientIndices.from_lists(bare))])
    two = replace(
        part,
        train=ClientIndices.from_lists(bare[:2]),
        validation=ClientIndices.from_lists([part.validation.of(k) for k in (0, 1)]),
        test=ClientIndices.from_lists([part.test.of(k) for k in (0, 1)]),
    )
    many, few = (
        models(run(one, method, SGD, 3, lanes=lanes, workers=1))
        for one in (four, replace(fed, partitions=[two]))
    )
    torch.testing.assert_close(many[:, :2], few, rtol=0, atol=1e-6)
    assert torch.equal(many[0, 2], joined(fed.net))


@pytest.mark.parametrize("lanes", LANES)
def test_a_device_alone_sees_itself_in_place_of_others(lanes):
    """So that what pulls towards others pulls nowhere as the round begins."""
    fed = toy_federation(devices=1)
    first = replace(SGD, momentum=0.0, batches=1)
    pulled, free = (
        run(fed, m, first, 1, lanes=lanes, workers=1).tensors["personal"]
        for m in (Seen(), LGFedAvg(layers=frozenset()))
    )
    torch.testing.assert_close(pulled, free)
