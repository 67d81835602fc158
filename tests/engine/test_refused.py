"""What cannot be meant is refused by name before anything trains."""

from dataclasses import replace

import pytest
import torch
from cases import adult
from torch import nn

from lgfed_core.engine import LocalTraining, Participation, run
from lgfed_core.engine.trackers import Personal, Tracker
from lgfed_core.errors import LgfedError
from lgfed_core.methods import FADE, MTL, ClientBaseline, FairLGFedAvg, FedAvg, FedProx, LGFedAvg
from lgfed_core.partition import ClientIndices, Partition
from toy import Toy, grouped, toy_federation

TRAINING = LocalTraining(0.1, 4)
FED = toy_federation()


def federation(*train, **changes):
    """The toy federation with other training rows, or other data."""
    if train:
        rows = [ClientIndices.from_lists([list(k) for k in kind]) for kind in (train, [[0]] * 2)]
        changes["partitions"] = [Partition("made", rows[0], None, rows[1])]
    for name in ("x", "y"):
        if name in changes:
            split = replace(FED.data.train, **{name: changes.pop(name)})
            changes["data"] = replace(FED.data, train=split)
    return replace(FED, **changes)


def softened() -> nn.Module:
    net = Toy()
    net.softmax = nn.Softmax(-1)
    return net


def narrow():
    """Two outputs, for rows 0, 1, 3, 4, ... of labels 0 and 1."""
    return nn.Sequential(Toy(), nn.Linear(3, 2))


def normed():
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))


def begun(value, own=False):
    """A start [1, 75] or [1, 10, 75] with ``value`` at its end, a bias of the upper layer."""
    start = torch.zeros(1, *[10] * own, 75)
    start[..., -1] = value
    return start


class Seven(Tracker):
    def after(self, round, rounds, engine):
        return {"hits": torch.zeros(7)}


class Three(Tracker):
    def after(self, round, rounds, engine):
        return {"hits": 3}


class Median(FedAvg):
    def aggregate(self, uploads, weights):
        return uploads.median(0)  # with indices


class Forgetful(FedAvg):
    def server_update(self, shared, average):
        shared + average


@pytest.mark.parametrize(
    "said, asked",
    [
        ("device is 'cpu'", lambda: run(federation(device="cpu"), FedAvg(), TRAINING, 1)),
        (r"seeds are \['a'\]", lambda: federation(seeds=["a"])),
        ("seeds are .*whole numbers", lambda: federation(seeds=[2.5])),
        ("rounds is 2.5", lambda: run(FED, FedAvg(), TRAINING, 2.5)),
        ("method is <class", lambda: run(FED, FedAvg, TRAINING, 1)),
        ("method is None", lambda: run(FED, None, TRAINING, 1)),
        ("training is None", lambda: run(FED, FedAvg(), None, 1)),
        ("tracker is <class", lambda: run(FED, FedAvg(), TRAINING, 1, tracker=Personal)),
        (r"\[7\] hits for 1 runs", lambda: run(FED, FedAvg(), TRAINING, 1, tracker=Seven())),
        ("Toy.softmax is", lambda: run(federation(net=softened()), FedAvg(), TRAINING, 1)),
        ("parameters in torch.float64", lambda: federation(net=Toy().double())),
        ("parameters in torch.float16", lambda: federation(net=Toy().half())),
        ("Sequential: 0 is an nn.LazyLinear, .* call the network once", lambda: run(
            federation(net=nn.Sequential(nn.LazyLinear(3))), FedAvg(), TRAINING, 1)),
        ("Sequential: 1 is an nn.LazyBatchNorm1d", lambda: run(
            federation(net=nn.Sequential(nn.Linear(8, 3), nn.LazyBatchNorm1d())),
            FedAvg(), TRAINING, 1)),
        ("device 0 .*label below 0.*FedAvg reads", lambda: run(
            federation(y=FED.data.train.y - 1), FedAvg(), TRAINING, 1)),
        ("train labels go from 99", lambda: federation(y=FED.data.train.y + 99)),
        ("does not take rows of shape .8.", lambda: run(
            federation(net=nn.Linear(5, 3)), FedAvg(), TRAINING, 1)),
        ("ClientBaseline cannot take its loss of Sequential.*up to 2: Target 2", lambda: run(
            federation(net=narrow()), ClientBaseline(), TRAINING, 1)),
        ("Sequential has outputs for 2 classes, and toy has 3", lambda: run(
            federation(net=narrow()), FedAvg(), TRAINING, 1)),
        ("Sequential has outputs for 2 classes, and toy has 3", lambda: run(
            federation([0, 1, 3], [4], net=narrow()), FedProx(mu=1.0), TRAINING, 1)),
        ("training row 999; toy has 150", lambda: federation([0, 999], [1])),
        ("no device of run 0 has a training row", lambda: federation([], [])),
        ("lr inf", lambda: LocalTraining(float("inf"), 4)),
        ("batch_size '10', lr '0.1'", lambda: LocalTraining("0.1", "10")),
        ("momentum 1.5: .* below 1", lambda: LocalTraining(0.1, 4, momentum=1.5)),
        ("the momentum, which is 0", lambda: LocalTraining(0.1, 4, 0.0, nesterov=True)),
        ("fraction is 'half'", lambda: Participation("half")),
        ("farthest is 'far'", lambda: Participation(farthest="far")),
        ("mu is '0.1'", lambda: FedProx(mu="0.1")),
        ("batch_size 2.5", lambda: LocalTraining(0.1, 2.5)),
        ("decay inf", lambda: LocalTraining(0.1, 4, decay=float("inf"))),
        ("mu is -1", lambda: FedProx(mu=-1.0)),
        ("scale is nan", lambda: MTL(scale=float("nan"))),
        ("power is inf", lambda: FADE(power=float("inf"))),
        ("gives {'hits': 3}; it has to", lambda: run(FED, FedAvg(), TRAINING, 1, tracker=Three())),
        ("start holds a NaN or .* in above.bias of run 0; .*finite", lambda: run(
            FED, FedAvg(), TRAINING, 1, begun(torch.nan))),
        ("start holds .* an infinite number in above.bias", lambda: run(
            FED, LGFedAvg(layers=frozenset(["below.bias"])), TRAINING, 1, begun(-torch.inf, True))),
        ("device 1 of run 0 has 1 row, .* more rows or none, .*frozen", lambda: run(
            federation([0, 1], [2], net=normed()), FedAvg(), TRAINING, 1)),
        (r"device 0 .* 5 rows, .* choose another batch_size, or limit batches to 1$", lambda: run(
            federation([0, 1, 2, 3, 4], [], net=normed()), FedAvg(), TRAINING, 1)),
        ("device 0 .* 5 rows, so .* choose another batch_size$", lambda: run(
            federation(range(5), [], net=normed()), FedAvg(), LocalTraining(0.1, 1), 1)),
        ("Median.aggregate gives median; it has to", lambda: run(FED, Median(), TRAINING, 1)),
        ("Forgetful.server_update gives NoneType", lambda: run(FED, Forgetful(), TRAINING, 1)),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_by_name(said, asked):
    with pytest.raises(LgfedError, match=said):
        asked()


def test_a_lazy_network_that_has_seen_a_batch_trains():
    net = nn.Sequential(nn.LazyLinear(3))
    net(FED.data.train.x[:2])
    run(federation(net=net), FedAvg(), TRAINING, 1)


def renumbered(made, change):
    """A federation whose groups [n, g] are others."""
    rows = made.data.train
    return replace(made, data=replace(made.data, train=replace(rows, groups=change(rows.groups))))


@pytest.mark.parametrize(
    ("made", "method", "change", "said"),
    [
        (grouped, FADE(), lambda g: g + 1, r"column 0 of the groups has \[2\]; .*from 0 to 1"),
        (grouped, FADE(), lambda g: 2 * g - 1, r"has \[-1\]"),
        (lambda: adult(2), FairLGFedAvg(), lambda g: g * torch.tensor([1, 2]), r"column 1 .*\[2\]"),
    ],
)
def test_groups_are_numbered_as_their_adversary_takes_them(made, method, change, said):
    whole = made()
    run(renumbered(whole, lambda g: g), method, TRAINING, 1)
    with pytest.raises(LgfedError, match=said):
        run(renumbered(whole, change), method, TRAINING, 1)


def test_groups_that_no_adversary_reads_may_be_any():
    run(renumbered(grouped(), lambda g: g + 7), FADE(opt_out=1.0), TRAINING, 1)
    two = renumbered(grouped(), lambda g: torch.cat([g, g + 7], 1))
    run(two, FADE(), TRAINING, 1)  # it reads the first column


@pytest.mark.parametrize(("rows", "method", "more"), [
    ([], FedAvg(), {}), ([2, 3], FedAvg(), {}), ([2], FedAvg(batch_norm="frozen"), {}),
    ([2, 3, 4, 5, 6], FedAvg(), {"batches": 1}),
])  # fmt: skip
def test_what_is_advised_where_batch_normalisation_has_one_row_helps(rows, method, more):
    run(federation([0, 1], rows, net=normed()), method, replace(TRAINING, **more), 1)


def test_a_place_to_save_may_be_a_text(tmp_path):
    place = tmp_path / "x.safetensors"
    first = run(FED, FedAvg(), TRAINING, 1, workers=1, saved=str(place))
    again = run(FED, FedAvg(), TRAINING, 1, workers=1, saved=place)
    assert place.exists() and again.seconds == first.seconds  # it was read
