"""Two domains as two devices: digits of MNIST and of USPS, one labelled, the other not; settings,
and the pieces that can be run alone.

A device's domain is its group: 0 the source, 1 the target.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from lgfed_core import data, require
from lgfed_core.data import Dataset, Split, mnist, usps
from lgfed_core.errors import NotAvailable, SettingsError
from lgfed_core.methods.interface import BATCH_NORM as KINDS
from lgfed_core.papers.parts import Piece
from lgfed_core.papers.settings import INSIDE, PART, Checked, Range
from lgfed_core.partition import ClientIndices, Partition

DIRECTIONS = ("mnist-usps", "usps-mnist")  # source-target
UNLABELLED = -1
SOURCE, TARGET = 0, 1  # groups, and devices


NAME = "fade.digits"
TABLE = "fade_figure2"
CURVES = "fade_figure2_curves"  # the same, by round
OPT_OUT = "fade_digits_opt_out"  # tables of ours
STATISTICS = "fade_digits_statistics"
CENTRAL = "central"  # a part, and what rows of it call their loss
POWERS = {"vanilla": 1.0, "squared": 2.0}
ENDS = (0.05, 0.5, 0.95)  # the probabilities that claims are about
SHORT = 500  # rounds of recorded runs from which the time of longer ones is told
NOTHING: dict[str, Any] = dict(losses=(), opt_outs=(), statistics=(), central=False)
SCALES = {
    "smoke": dict(
        pretraining=2,
        rounds=4,
        steps=2,
        per_class=10,
        tested=100,
        looks=2,
        probabilities=(0.1, 0.9),
        directions=("mnist-usps",),
        opt_outs=(1.0,),
        statistics=("local",),
    ),
    "quick": dict(
        pretraining=30,
        rounds=30,
        steps=5,
        tested=300,
        looks=4,
        probabilities=(0.05, 0.5),
        directions=("mnist-usps",),
        opt_outs=(1.0,),
        statistics=(),
        central=False,
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values; where it gives none, those of the released code's other experiments."""

    directions: tuple[str, ...] = DIRECTIONS
    probabilities: tuple[float, ...] = (0.05, 0.2, 0.5, 0.8, 0.95)  # of the target
    losses: tuple[str, ...] = ("vanilla", "squared")
    opt_outs: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # vanilla loss, probability 1/2
    statistics: tuple[str, ...] = ("local", "averaged")  # beside "frozen"; vanilla loss
    central: bool = True
    central_statistics: tuple[str, ...] = ()  # of `central`, beside "frozen"
    pretraining: int = 400  # rounds on the source, without the game
    rounds: int = 8600
    steps: int = 10  # of a device in a round
    batch_size: int = 32
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.001
    beta: float = 0.5
    looks: int = 20  # measurements on the way
    per_class: int | None = None  # training rows of each class; None: all
    tested: int | None = None  # test rows of each domain

    RANGES: ClassVar = dict(probabilities=INSIDE, opt_outs=PART)
    RANGES |= dict(per_class=Range(1, 542))  # USPS has no more of its rarest digit
    CHOICES: ClassVar = dict(scale=SCALES, losses=POWERS, directions=DIRECTIONS)
    CHOICES |= dict(statistics=KINDS, central_statistics=KINDS)
    EMPTY = frozenset({"probabilities", "losses", "opt_outs", "statistics", "central_statistics"})
    SHORTER = ("rounds",)
    UNRELEASED = "the digits have no released protocol: the code holds no settings for them"

    def fits(self) -> None:
        super().fits()
        if not self.probabilities and (self.losses or self.statistics):
            raise SettingsError("probabilities is empty; losses and statistics need some")

    def lanes(self, kind: str) -> list[dict]:
        """What tells a seed's runs of a part apart, in the order in which they lie."""
        if kind == "losses":
            return [dict(loss=x, probability=p) for x in self.losses for p in self.probabilities]
        if kind == "statistics":
            return [dict(probability=p) for p in self.probabilities]
        return [{}] if kind == "opt_out" else [dict(loss=kind, probability=None)]

    def names(self) -> dict[str, int]:
        """The parts of a direction, in order, and how many rounds each trains."""
        names = [f"opt_out:{rate:g}" for rate in self.opt_outs]
        names += [f"statistics:{kind}" for kind in self.statistics]
        central = [CENTRAL] * self.central
        central += [f"{CENTRAL}:{kind}" for kind in self.central_statistics]
        games = ["losses"] if self.losses and self.probabilities else []
        found = {"pretraining": self.pretraining} | dict.fromkeys(games, self.rounds)
        found |= dict.fromkeys(central, self.rounds * self.steps // 2)
        return found | dict.fromkeys(names, self.rounds)


def pieces(protocol: str) -> list[Piece]:
    """By direction: Figure 2's middle and ends, and every rate of opting out. Aside stand other
    running statistics and the central game, which no claim is about."""
    games = dict(losses=Settings.losses, probabilities=ENDS)  # both losses train together
    some: dict[str, tuple[dict, dict]] = {"losses": (games, dict(loss=Settings.losses[-1]))}
    for rate in Settings.opt_outs:
        ids = dict(table=OPT_OUT, opt_out=rate)
        some[f"opt_out:{rate:g}"] = games | dict(opt_outs=(rate,)), ids
    for kind in Settings.statistics:
        lanes = dict(probabilities=ENDS, statistics=(kind,))
        some[f"statistics:{kind}"] = lanes, dict(table=STATISTICS, statistics=kind)
    some[CENTRAL] = dict(central=True), dict(loss=CENTRAL, statistics="")
    found = []
    for direction in Settings.directions:
        for name, (changes, more) in some.items():
            ids = dict(table=TABLE, direction=direction) | more
            games = (f"{direction}:losses",) if name.startswith("opt_out") else ()
            one = Piece(
                *(NAME, protocol, f"{direction}:{name}"),
                changes=tuple((dict(directions=(direction,)) | NOTHING | changes).items()),
                cell=tuple((ids | dict(rounds=Settings.rounds)).items()),
                after=(f"{direction}:pretraining", *games),
                like=tuple((ids | dict(rounds=SHORT, scale="short")).items()),
                share=Settings.rounds / SHORT,
                aside=not name.startswith(("losses", "opt_out")),
            )
            found.append(one)
    return found


@dataclass(frozen=True)
class Domains:
    """A data set whose rows belong to two domains, and who holds them: device 0 the source."""

    data: Dataset
    partition: Partition
    stand_in: str = ""  # which data take the place of the paper's


@lru_cache(maxsize=2)
def digits(direction: str, per_class: int | None = None, tested: int | None = None) -> Domains:
    """MNIST and USPS at 28 x 28, values from -1 to 1; the target's training labels are -1.

    per_class, tested: training rows of each class, and test rows of each domain, for a quick look.

    USPS's training pictures are turned by up to 10 degrees, once, as in the released code, which
    also cuts them at random (`random_crop_rot`); that is left out here.

    Where USPS cannot be had, the 1,797 UCI digits of scikit-learn take its place.
    """
    require.one_of("direction", direction, DIRECTIONS)
    other, stand_in = _second()
    sets = [_mnist(), other] if direction == "mnist-usps" else [other, _mnist()]
    if per_class:
        sets = [replace(d, train=data.subset(d, per_class, 1).train) for d in sets]
    if tested:
        sets = [replace(d, test=d.test.take(torch.arange(len(d.test))[:tested])) for d in sets]
    sets[SOURCE] = replace(sets[SOURCE], name=direction)
    return joined(*sets, stand_in)


def joined(source: Dataset, target: Dataset, stand_in: str = "") -> Domains:
    """Both sets as one, the target's training labels taken away."""
    hidden = replace(target.train, y=torch.full_like(target.train.y, UNLABELLED))
    train, held = _joined(source.train, hidden)
    test, tested = _joined(source.test, target.test)
    partition = Partition("a domain each", train=held, validation=None, test=tested)
    return Domains(Dataset(source.name, train, test, source.classes), partition, stand_in)


def _joined(source: Split, target: Split) -> tuple[Split, ClientIndices]:
    x = torch.cat([source.x, target.x])  # [n, 1, 28, 28]
    # convolves faster on a CPU; `Tensor.to` would leave the strides of a single channel as they are
    x = x.clone(memory_format=torch.channels_last)
    sizes = [len(source), len(target)]
    group = torch.arange(2).repeat_interleave(torch.tensor(sizes))[:, None]  # [n, 1]
    held = ClientIndices.from_lists(list(torch.arange(sum(sizes)).split(sizes)))
    return Split(x, torch.cat([source.y, target.y]), group), held


def _mnist() -> Dataset:
    found = data.load("mnist")
    train, test = (Split(_grey(s.x), s.y) for s in (found.train, found.test))
    return replace(found, train=train, test=test)


def _grey(x: Tensor) -> Tensor:
    """MNIST as LG-FedAvg has it, [n, 784], with values from -1 to 1 and as [n, 1, 28, 28]."""
    return ((x * mnist.STD + mnist.MEAN) * 2 - 1).view(-1, 1, 28, 28)


def _second() -> tuple[Dataset, str]:
    """USPS; or the 8 x 8 digits of scikit-learn, the last third for testing (other writers), and
    their name."""
    try:
        return data.load("usps", turned=10.0), ""
    except NotAvailable:
        from sklearn.datasets import load_digits
    x, y = load_digits(return_X_y=True)
    small = torch.from_numpy(x).float().view(-1, 1, 8, 8) / 8 - 1
    split, at = Split(usps.enlarged(small), torch.from_numpy(y).long()), 2 * len(y) // 3
    train, test = split.take(torch.arange(at)), split.take(torch.arange(at, len(y)))
    return Dataset("digits", train, test, classes=10), "UCI digits"
