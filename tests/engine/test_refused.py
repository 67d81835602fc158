"""What cannot be meant is refused by name before anything trains."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import adult
from torch import nn

from lgfed_core import (
    Dataset,
    FedAvg,
    FedProx,
    Global,
    LGFedAvg,
    Personal,
    Split,
    Tracker,
    adaptation,
)
from lgfed_core.data.augment import CropFlip
from lgfed_core.engine import LocalTraining, Participation, run
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.errors import DataError, LgfedError, SettingsError
from lgfed_core.methods import FADE, MTL, ClientBaseline, FairLGFedAvg, FedBN
from lgfed_core.methods.privacy import Privacy
from toy import Toy, grouped, holding, normed, reading, toy_federation

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


def hits(number, name="hits") -> Tracker:
    return type("Counts", (Tracker,), {"after": lambda *told: {name: number}})()


def keeping(name) -> Tracker:
    return type("Keeps", (Tracker,), {"allocate": lambda self, make, phase: make(name, 1)})()


def together(*methods):
    return go(list(methods), fed=grouped((0, 1)))


THIRDS = [1 / 3] * 3 + [0] * 7  # the sum is one to seven digits alone


def there(*shares):
    return Participation(0.5, torch.tensor([shares]))


def cropped(fill):
    pictures = [Split(torch.zeros(n, 1, 2, 4), torch.arange(n) % 3) for n in (150, 60)]
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 3))
    fed = federation(data=Dataset("pictures", *pictures, 3), net=net)
    return go(training=replace(TRAINING, augment=CropFlip(fill)), rounds=0, fed=fed)


USERS, X = [0, 0, 0, 1, 1, 1], np.zeros((6, 3))


def adapted(y=(0, 1, 0, 1, 0, 1), x=X, users=USERS, **more):
    return adaptation.adapt(x, list(y), users, **more)


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
        ("method is <class", lambda: go(FedAvg)),
        ("method is None", lambda: go(None)),
        ("training is None", lambda: go(training=None)),
        ("tracker is <class", lambda: go(tracker=Personal)),
        (r"snapshots \(2,\) are asked of 1 rounds", lambda: go(tracker=Global(snapshots=(2,)))),
        (r"\[7\] hits for 1 runs", lambda: go(tracker=hits(torch.zeros(7)))),
        (r"gives \[\] hits for 1 runs", lambda: go(tracker=hits(torch.tensor(1.0)))),
        ("gives {'hits': 3}; it has to", lambda: go(tracker=hits(3))),
        ("calls a number 'round'", lambda: go(tracker=hits(torch.zeros(1), "round"))),
        *[(f"Keeps cannot have a tensor '{name}'", lambda name=name: go(tracker=keeping(name)))
          for name in ("labels", "shared")],
        *[("validation rows of run 0 have labels below 0", lambda kind=kind: go(
            tracker=kind(), fed=federation(y=FED.data.train.y.index_fill(
                0, FED.partitions[0].validation.of(3), -1)))) for kind in (Personal, Global)],
        ("device 4 of run 0 has no validation rows", lambda: go(
            tracker=Global(), fed=holding(FED, validation=[
                FED.partitions[0].validation.of(k)[: 3 * (k != 4)] for k in range(10)]))),
        ("with_validation", lambda: go(tracker=Personal(), fed=holding(FED, validation=None))),
        ("different values of parameters that are shared", lambda: go(
            start=torch.arange(10.0).view(1, 10, 1).expand(1, 10, 75))),
        ("a folder; name a file", lambda: go(saved=".")),
        ("start holds a NaN or .* in above.bias of run 0; .*finite", lambda: go(
            start=begun(torch.nan))),
        ("start holds .* an infinite number in above.bias", lambda: go(
            LGFedAvg(layers=frozenset(["below.bias"])), start=begun(-torch.inf, True))),
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
        ("device 0 of run 0 has 2 rows: batched lanes pad its", lambda: go(
            training=LocalTraining(0.1, 12), lanes="batched", fed=federation(net=normed()))),
        ("a variance may fall below 0", lambda: on(normed(), FedAvg(
            batch_norm="averaged", upload=(Privacy(1.0, 2.0),)))),
        ("FedBN needs batch normalisation; Toy has none", lambda: go(FedBN())),
        # several methods,
        *[(f"runs 0 and 1 differ in .*{said}", lambda other=other: together(
            FADE(opt_out=1.0), other)) for said, other in (
                ("class, steps", FedAvg(batch_norm="frozen")),
                ("batch_norm", FADE(opt_out=1.0, batch_norm="averaged")),
                ("steps", FADE(opt_out=0.5)))],
        ("1 methods for 2 runs", lambda: together(FADE())),
        # who takes part,
        ("participation is 0.5; it must be made", lambda: federation(participation=0.5)),
        ("fraction is 'half'", lambda: Participation("half")),
        ("fraction", lambda: Participation(0.0)),
        ("farthest is 'far'", lambda: Participation(farthest="far")),
        ("availability", lambda: there(1.5, -0.5)),
        ("availability.*sum to 1|sum to 1.*availability", lambda: there(0.5, 0.4)),
        ("availability", lambda: there(float("nan"), 1.0)),
        *[("farthest", lambda limit=limit: Participation(farthest=limit))
          for limit in (0.0, -1.0, float("nan"))],
        ("shape", lambda: federation(participation=there(0.5, 0.5))),
        ("5 devices are drawn a round, but only 3", lambda: go(
            fed=federation(participation=there(*THIRDS)))),
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
        ("leave out keep_momentum", lambda: AdamTraining(0.1, 4, keep_momentum=True)),
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
        ("batch_norm 'frozn' is none of frozen, local", lambda: FedAvg(batch_norm="frozn")),
        # and arrays.
        ("batch_size is 0", lambda: adapted(batch_size=0)),
        ("seed is 1.5", lambda: adapted(seed=1.5)),
        ("made by DANN", lambda: adapted(method="SHOT")),
        ("there must be two", lambda: adapted(y=[7] * 6)),
        (r"x is \[6, 3\], y \[6\], user \[3\]", lambda: adapted(users=USERS[:3])),
        ("user 0 has 0 of 6 rows", lambda: adapted(users=[1] * 6)),
        (r"row 2, of user 0\.5, that is not finite", lambda: adapted(
            x=np.where(np.arange(18).reshape(6, 3) == 7, np.nan, 0), users=[0, 0, 0.5, 1, 1, 1])),
        *[(f"row 1 of user 0 has the label {label}", lambda label=label: adapted(
            y=[0, label, 1, 0, 1, 0])) for label in (-1, torch.nan, None)],
        ("a number in row 1 that is not finite", lambda: adapted(rounds=1).predict(
            [[0, 0, 0], [0, 1, torch.nan]], 1)),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_by_name(said, asked):
    with pytest.raises((SettingsError, DataError), match=said):
        asked()


def test_what_is_near_to_what_is_refused_is_taken():
    run(federation(participation=replace(there(*THIRDS), fraction=0.3)), FedAvg(), TRAINING, 1)
    blurred = FedAvg(batch_norm="local", upload=(Privacy(1.0, 2.0),))
    on(normed(), blurred, training=LocalTraining(0.1, 2, batches=1))
    on(normed(), MTL(scale=0.1), training=LocalTraining(0.1, 2, batches=1))
    places = nn.Unflatten(1, (2, 2, 2)), nn.BatchNorm2d(2), nn.Flatten()  # to normalise over
    on(nn.Sequential(*places, nn.Linear(8, 3)), training=LocalTraining(0.1, 1))
    frozen, wide = FedAvg(batch_norm="frozen"), LocalTraining(0.1, 12)
    go(frozen, wide, 0, fed=federation(net=normed()), lanes="batched")


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
