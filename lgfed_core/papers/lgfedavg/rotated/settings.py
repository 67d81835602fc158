"""What can be set: the text's values for Table 3, and what it leaves open."""

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import nn

from lgfed_core import models
from lgfed_core.engine import Participation
from lgfed_core.methods import FedAvg, FedProx, LGFedAvg, Method
from lgfed_core.papers.settings import FROM_0, Checked, Range

from ..settings import enough
from .newcomer import WithNewcomers

SPLITS = {10: "iid", 2: "noniid"}  # classes per device -> as the table calls it
LINES = ("fedavg_0", "lg_fedavg_0", "fedavg_0.1", "fedprox_0.1", "lg_fedavg_0.1")
VARIED = {  # setting -> other values, tried one at a time
    "angle": (-90, 45, 180),
    "overlap": (False,),
    "weighted": (False,),
    "always": (False,),
    "shared_layers": (2, 4),
    "shared_side": ("first",),
    "own_first": (50,),
    "mu": (0.001, 0.1, 1.0),
    "newcomers": (3,),
    "upright": (1.0,),
    "frozen": (3,),
    "lr": (0.005,),
}
SCALES = {
    "smoke": dict(devices=10, rows_per_class=(40, 20), train_rows=30, test_rows=20, cohort=0.2)
    | dict(goal=0.15, before=3, every=1, rounds=2, looks=2),
    "quick": dict(devices=20, rows_per_class=(300, 50), train_rows=400, test_rows=200)
    | dict(cohort=0.25, goal=0.85, before=60, rounds=20, looks=10),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values, and what it leaves open; the last three are remedies of ours."""

    classes: int = 10  # per old device; 10 is i.i.d.
    lines: tuple[str, ...] = LINES  # method and C
    vary: tuple[str, ...] = ()  # settings of `VARIED` of which other values are run, too
    usual: bool = True  # whether the lines are run as assumed; False: other values alone
    devices: int = 100  # old ones
    batch_size: int = 10
    cohort: float = 0.1  # C before the newcomer comes
    goal: float = 0.98  # mean accuracy of the old devices on validation rows, of FedAvg
    before: int = 1500  # rounds to get there, at most
    every: int = 5  # rounds between two looks at the goal
    validation: float = 0.1  # share of each old device's training rows
    rounds: int = 500  # from then on
    looks: int = 20  # at both sides on the way
    train_rows: int = 3000  # of a newcomer
    test_rows: int = 500
    rows_per_class: tuple[int, int] | None = None  # (train, test) of MNIST; None: all
    angle: int = 90  # degrees, counter-clockwise
    overlap: bool = True  # whether old devices hold the newcomers' pictures, too, upright
    weighted: bool = True  # average by n_k/n, a newcomer counts for five; False: 1/m
    always: bool = True  # newcomers take part in every round; False: drawn as all others
    shared_layers: int = 3  # by LG-FedAvg,
    shared_side: str = "last"  # next to the output; "first": next to the input
    own_first: int = 0  # rounds in which newcomers train what stays with them, before all others
    mu: float = 0.01  # of FedProx
    newcomers: int = 1
    upright: float = 0.0  # upright pictures that a newcomer has beside each turned one
    frozen: int = 0  # layers next to the output that nobody moves any more
    lr: float = 0.05

    RANGES: ClassVar = dict(
        angle=Range(-360, 360), frozen=Range(0, 5), own_first=FROM_0, shared_layers=Range(0, 5)
    )
    CHOICES: ClassVar = dict(
        scale=SCALES, classes=SPLITS, shared_side=("first", "last"), lines=LINES, vary=VARIED
    )
    EMPTY = frozenset({"vary", "lines"})
    UNRELEASED = "Table 3 has no released protocol: no code turns a picture"

    def fits(self) -> None:
        super().fits()
        enough("mnist", self.devices, self.classes, self.rows_per_class)

    @property
    def first(self) -> "Settings":
        """What the old devices' model depends on: no choice that only matters after it."""
        later = set(VARIED) - ({"overlap"} if self.overlap else {"overlap", "newcomers"})
        return replace(self, **{name: getattr(Settings, name) for name in later})

    @property
    def cells(self) -> dict[str, tuple[str, "Settings"]]:
        """The parts, in order: name -> (line, or "before"; settings)."""
        found = dict.fromkeys(["before"], ("before", self))
        found |= {line: (line, self) for line in self.lines if self.usual}
        for name in self.vary:
            for value in VARIED[name]:
                other, said = replace(self, **{name: value}), f"{name}={value}"
                if name == "overlap":
                    found[f"before:{said}"] = "before", other
                for line in filter(lambda line: matters(name, line), self.lines):
                    found[f"{line}:{said}"] = line, other
        return found

    def method(self, line: str, net: nn.Module) -> Method:
        """The method of a line, with the setting it depends on."""
        name, _ = named(line)
        if name == "fedprox":
            return FedProx(mu=self.mu, weighted=self.weighted)
        if name == "fedavg":
            return FedAvg(weighted=self.weighted)
        side = models.last_layers if self.shared_side == "last" else models.first_layers
        return LGFedAvg(layers=side(net, self.shared_layers), weighted=self.weighted)

    def participation(self, line: str) -> Participation:
        """Who takes part in a round of ``line``; where C is 0 the newcomers, whatever is set."""
        _, fraction = named(line)
        if self.always or not fraction:
            return WithNewcomers(fraction, newcomers=self.newcomers)
        return Participation(fraction)


def named(line: str) -> tuple[str, float]:
    """Method and C of a line: "lg_fedavg_0.1" -> ("lg_fedavg", 0.1)."""
    method, _, fraction = line.rpartition("_")
    return method, float(fraction)


def matters(setting: str, line: str) -> bool:
    """Whether a line depends on a setting at all."""
    method, fraction = named(line)
    if setting in ("weighted", "always"):
        return fraction > 0
    if setting in ("shared_layers", "shared_side", "own_first"):
        return method == "lg_fedavg"
    return method == "fedprox" if setting == "mu" else True
