"""What cannot be meant is refused by name before anything trains."""

from dataclasses import replace

import pytest
import torch
from cases import adult
from torch import nn

from lgfed_core.data import Dataset, Split
from lgfed_core.data.augment import CropFlip
from lgfed_core.engine import LocalTraining, Participation, arrays, run
from lgfed_core.engine.trackers import Global, Personal, Tracker
from lgfed_core.errors import DataError, LgfedError, SettingsError
from lgfed_core.methods import (
    FADE,
    ClientBaseline,
    FairLGFedAvg,
    FedAvg,
    FedProx,
    LGFedAvg,
    LocalOnly,
)
from toy import Toy, answering, grouped, holding, normed, reading, toy_federation

TRAINING, FED_AVG = LocalTraining(0.1, 4), FedAvg()
FED = toy_federation()


def federation(*train, **changes):
    """The toy federation with other training rows, or other data."""
    fed = holding(FED, train=list(train), validation=None, test=[[0]] * 2) if train else FED
    for name in {"x", "y"} & changes.keys():
        fed = reading(fed, **{name: changes.pop(name)})
    return replace(fed, **changes)


def go(method=FED_AVG, training=TRAINING, rounds=1, start=None, fed=FED, **more):
    return run(fed, method, training, rounds, start, **more)


def on(net, method=FED_AVG, *train, training=TRAINING):
    return go(method, training, fed=federation(*train, net=net))


def softened() -> nn.Module:
    net = Toy()
    net.softmax = nn.Softmax(-1)
    return net


def narrow():
    """Two outputs, for rows 0, 1, 3, 4, ... of labels 0 and 1."""
    return nn.Sequential(Toy(), nn.Linear(3, 2))


def hits(number) -> Tracker:
    return type("Counts", (Tracker,), {"after": lambda *told: {"hits": number}})()


def there(*shares):
    return Participation(0.5, torch.tensor([shares]))


def cropped(fill):
    pictures = [Split(torch.zeros(n, 1, 2, 4), torch.arange(n) % 3) for n in (150, 60)]
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 3))
    fed = federation(data=Dataset("pictures", *pictures, 3), net=net)
    return go(training=replace(TRAINING, augment=CropFlip(fill)), rounds=0, fed=fed)


USERS = [0, 0, 0, 1, 1, 1]


def adapted(y=(0, 1, 0, 1, 0, 1), **more):
    return arrays.adapt(torch.randn(6, 3).numpy(), list(y), USERS, **more)


def begun(value, own=False):
    """A start [1, 75] or [1, 10, 75] with ``value`` at its end, a bias of the upper layer."""
    start = torch.zeros(1, *[10] * own, 75)
    start[..., -1] = value
    return start


@pytest.mark.parametrize(
    "said, asked",
    [
        # a run,
        ("looped", lambda: go(lanes="sideways")),
        ("rounds is -1", lambda: go(rounds=-1)),
        ("rounds is 2.5", lambda: go(rounds=2.5)),
        ("shape", lambda: go(start=torch.zeros(1, 3))),
        ("workers is 0", lambda: go(workers=0)),
        ("nowhere", lambda: go(LGFedAvg(layers=frozenset({"nowhere"})))),
        ("method is <class", lambda: go(FedAvg)),
        ("method is None", lambda: go(None)),
        ("training is None", lambda: go(training=None)),
        ("tracker is <class", lambda: go(tracker=Personal)),
        (r"snapshots \(2,\) are asked of 1 rounds", lambda: go(tracker=Global(snapshots=(2,)))),
        (r"\[7\] hits for 1 runs", lambda: go(tracker=hits(torch.zeros(7)))),
        ("gives {'hits': 3}; it has to", lambda: go(tracker=hits(3))),
        ("start holds a NaN or .* in above.bias of run 0; .*finite", lambda: go(
            start=begun(torch.nan))),
        ("start holds .* an infinite number in above.bias", lambda: go(
            LGFedAvg(layers=frozenset(["below.bias"])), start=begun(-torch.inf, True))),
        ("Mine.aggregate gives median; it has to", lambda: go(answering(
            aggregate=lambda self, uploads, weights: uploads.median(0))())),  # with indices
        ("Mine.server_update gives NoneType", lambda: go(answering(
            server_update=lambda self, shared, average: None)())),
        # a federation and its data,
        ("one each", lambda: federation(seeds=[0, 1])),
        ("same number of devices", lambda: federation(seeds=[0, 1], partitions=[
            *FED.partitions, *toy_federation(devices=4).partitions])),
        ("negative", lambda: federation(seeds=[-1])),
        *[("seeds are .*whole numbers", lambda seed=seed: federation(seeds=[seed]))
          for seed in ("a", 2.5)],
        (r"seeds is 0; give a list, as \[0\]", lambda: federation(seeds=0)),
        ("device is 'cpu'", lambda: go(fed=federation(device="cpu"))),
        ("partitions is one Partition", lambda: federation(partitions=FED.partitions[0])),
        ("data is None", lambda: federation(data=None)),
        ("device 0 .*label below 0.*FedAvg reads", lambda: go(
            fed=federation(y=FED.data.train.y - 1))),
        ("train labels go from 99", lambda: federation(y=FED.data.train.y + 99)),
        ("training row 999; toy has 150", lambda: federation([0, 999], [1])),
        ("no device of run 0 has a training row", lambda: federation([], [])),
        # its network,
        ("net is <class 'toy.Toy'>; it must be made by Module", lambda: federation(net=Toy)),
        ("1 keeps buffers", lambda: federation(net=normed(momentum=None))),  # of all devices
        ("1: it keeps no running statistics|: 1 keeps no running statistics", lambda: federation(
            net=normed(track_running_stats=False))),
        *[(f"parameters in {kind}", lambda kind=kind: federation(net=Toy().to(kind)))
          for kind in (torch.float64, torch.float16)],
        ("Toy.softmax is", lambda: on(softened())),
        ("Sequential: 0 is an nn.LazyLinear, .* call the network once", lambda: on(
            nn.Sequential(nn.LazyLinear(3)))),
        ("Sequential: 1 is an nn.LazyBatchNorm1d", lambda: on(
            nn.Sequential(nn.Linear(8, 3), nn.LazyBatchNorm1d()))),
        ("does not take rows of shape .8.", lambda: on(nn.Linear(5, 3))),
        ("ClientBaseline cannot take its loss of Sequential.*up to 2: Target 2", lambda: on(
            narrow(), ClientBaseline())),
        ("Sequential has outputs for 2 classes, and toy has 3", lambda: on(narrow())),
        ("Sequential has outputs for 2 classes, and toy has 3", lambda: on(
            narrow(), FedProx(mu=1.0), [0, 1, 3], [4])),
        ("device 1 of run 0 has 1 row, .* more rows or none, .*frozen", lambda: on(
            normed(), FED_AVG, [0, 1], [2])),
        (r"device 0 .* 5 rows, .* choose another batch_size, or limit batches to 1$", lambda: on(
            normed(), FED_AVG, [0, 1, 2, 3, 4], [])),
        ("device 0 .* 5 rows, so .* choose another batch_size$", lambda: on(
            normed(), FED_AVG, range(5), [], training=LocalTraining(0.1, 1))),
        # who takes part,
        ("participation is 0.5; it must be made", lambda: federation(participation=0.5)),
        ("fraction is 'half'", lambda: Participation("half")),
        ("fraction", lambda: Participation(0.0)),
        ("farthest is 'far'", lambda: Participation(farthest="far")),
        ("availability", lambda: there(1.5, -0.5)),
        ("availability.*sum to 1|sum to 1.*availability", lambda: there(0.5, 0.4)),
        ("availability", lambda: there(float("nan"), 1.0)),
        ("shape", lambda: federation(participation=there(0.5, 0.5))),
        # training,
        *[(f"{named} {value!r}", lambda named=named, value=value: replace(
            TRAINING, **{named: value})) for named, value in (
                ("batch_size", 0), ("batch_size", 2.5), ("batch_size", None), ("epochs", 0),
                ("batches", 0), ("momentum", -1.0), ("lr", -0.1), ("lr", float("nan")),
                ("lr", float("inf")), ("lr", None), ("lr", "0.1"), ("weight_decay", -1.0),
                ("decay", -0.1), ("decay", float("inf")))],
        *[(f"{named} is 1,000,000,000; it must be at most", lambda named=named: replace(
            TRAINING, **{named: 10**9})) for named in ("batch_size", "batches", "epochs")],
        ("batch_size '10', lr '0.1'", lambda: LocalTraining("0.1", "10")),
        ("momentum 1.5: .* below 1", lambda: LocalTraining(0.1, 4, momentum=1.5)),
        ("the momentum, which is 0", lambda: LocalTraining(0.1, 4, 0.0, nesterov=True)),
        *[("no object with a method `apply`", lambda way=way: LocalTraining(0.1, 4, augment=way))
          for way in ("x", CropFlip)],
        ("no object with a method `factor`", lambda: LocalTraining(0.1, 4, annealing=3)),
        ("CropFlip has 2 numbers in fill, for pictures with 1", lambda: cropped((0, 0))),
        ("fill is 0.0; it must be a number for each", lambda: cropped(0.0)),
        ("padding is -1", lambda: CropFlip((0.0,), -1)),
        # trackers,
        ("frist", lambda: Personal(ties="frist")),
        *[(f"every is {n}", lambda kind=kind, n=n: kind(every=n))
          for kind, n in ((Personal, 0), (Global, 0), (Global, 2.5))],
        *[(f"snapshot 0 is {n}", lambda n=n: Global((n,))) for n in (0, 1.5, True)],
        ("patience is 0", lambda: Personal(patience=0)),
        ("judge 'pool' is none of validation, test", lambda: Personal("pool")),
        ("stop_at is 0.5; it has", lambda: Personal(stop_at=0.5)),
        (r"stop_at is \(99, 1\); it has an accuracy between 0 and 1", lambda: Personal(
            stop_at=(99, 1))),
        # methods,
        ("batch_norm 'frozn' is none of frozen, local", lambda: LocalOnly(batch_norm="frozn")),
        # and arrays.
        ("batch_size is 0", lambda: adapted(batch_size=0)),
        ("seed is 1.5", lambda: adapted(seed=1.5)),
        ("made by DANN", lambda: adapted(method="SHOT")),
        ("there must be two", lambda: adapted(y=[7] * 6)),
        *[(f"row 1 of user 0 has the label {label}", lambda label=label: adapted(
            y=[0, label, 1, 0, 1, 0])) for label in (-1, torch.nan, None)],
        ("a number in row 1 that is not finite", lambda: adapted(rounds=1).predict(
            [[0, 0, 0], [0, 1, torch.nan]], 1)),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_by_name(said, asked):
    with pytest.raises((SettingsError, DataError), match=said):
        asked()


def test_a_lazy_network_that_has_seen_a_batch_trains():
    net = nn.Sequential(nn.LazyLinear(3))
    net(FED.data.train.x[:2])
    run(federation(net=net), FedAvg(), TRAINING, 1)


def renumbered(made, change):
    """A federation whose groups [n, g] are others."""
    return reading(made, groups=change(made.data.train.groups))


@pytest.mark.parametrize(
    ("made", "method", "change", "said"),
    [
        (grouped, FADE(), lambda g: g + 1, r"column 0 of the groups has \[2\]; .*from 0 to 1"),
        (grouped, FADE(), lambda g: 2 * g - 1, r"has \[-1\]"),
        (lambda: adult(2), FairLGFedAvg(), lambda g: g * torch.tensor([1, 2]), r"column 1 .*\[2\]"),
    ],
)
def test_groups_are_numbered_as_their_adversary_takes_them(made, method, change, said):
    with pytest.raises(LgfedError, match=said):
        run(renumbered(made(), change), method, TRAINING, 1)


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
