"""What can be set: the ways to learn a representation, how many labels, and how long."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import nn

from lgfed_core import models
from lgfed_core.methods.auxiliary import Autoencoder, Auxiliary, Hiding, OwnHead
from lgfed_core.methods.pretext import ANSWERS, Pretext
from lgfed_core.models.auxiliary import AuxiliaryMLP, auxiliary, head
from lgfed_core.papers.settings import FROM_0, Checked

from ..settings import enough

WAYS = {  # way -> (its auxiliary loss, outputs of the auxiliary network)
    "plain": (Auxiliary, 1),
    "supervised": (OwnHead, 10),
    "autoencoder": (Autoencoder, 784),
    "jigsaw": (partial(Pretext, task="jigsaw"), ANSWERS["jigsaw"]),
    "rotation": (partial(Pretext, task="rotation"), ANSWERS["rotation"]),
    "adversarial": (Hiding, 1),
    "fedavg": (Auxiliary, 1),  # for comparison: f is shared as well
}
WITHOUT = ("plain", "fedavg")  # any auxiliary loss
WEIGHTS = (0.1, 1.0, 10.0)  # of the auxiliary loss, tried
LABELS = (10, 50, 0)  # rows of a device that have a label; 0: all of them
SCALES = {
    "smoke": dict(
        fraction=0.4, rows_per_class=(40, 20), labels=(10,), rounds=2, looks=2, probe_rows=(60, 40)
    ),
    "quick": dict(
        rows_per_class=(200, 50), labels=(10, 0), rounds=16, looks=8, probe_rows=(300, 300)
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """Ten devices as large as the paper's, two digits each; the paper has a hundred."""

    ways: tuple[str, ...] = tuple(WAYS)
    labels: tuple[int, ...] = LABELS  # per device; 0: all
    weights: tuple[float, ...] = (1.0,)  # of the auxiliary loss
    devices: int = 10
    classes: int = 2  # per device
    rows_per_class: tuple[int, int] = (600, 100)  # (train, test) of MNIST: 600 and 100 a device
    validation: float = 0.1  # share of each device's training rows; these keep their labels
    fraction: float = 0.5  # C
    rounds: int = 240
    looks: int = 12  # at both tests on the way
    lr: float = 0.05
    batch_size: int = 50
    probe_rows: tuple[int, int] = (600, 1000)  # that probes are fitted to, and judged on

    RANGES: ClassVar = dict(labels=FROM_0)
    CHOICES: ClassVar = dict(scale=SCALES, ways=WAYS)
    UNRELEASED = "no auxiliary network was released"

    def fits(self) -> None:
        super().fits()
        enough("mnist", self.devices, self.classes, self.rows_per_class)

    @property
    def cells(self) -> dict[str, tuple[str, int, float]]:
        """The parts, in order: name -> (way, labels, weight)."""
        return {
            named(way, n, weight): (way, n, weight)
            for n in self.labels
            for way in self.ways
            for weight in (self.weights if way not in WITHOUT else (1.0,))
        }

    def net(self, way: str, seed: int) -> nn.Module:
        """The network of a way; f and g begin alike with every way of a seed."""
        return models.make(partial(AuxiliaryMLP, WAYS[way][1]), seed)

    def method(self, way: str, weight: float, net: nn.Module) -> Auxiliary:
        """What a device minimises, and what is averaged."""
        everything = frozenset(name for name, _ in net.named_parameters())
        layers = everything - auxiliary(net) if way == "fedavg" else head(net)
        return WAYS[way][0](layers=layers, weight=weight)


def named(way: str, labels: int, weight: float) -> str:
    """The name of a part: "jigsaw_10", or "jigsaw_all:0.3" of another weight than one."""
    return f"{way}_{labels or 'all'}" + (f":{weight:g}" if weight != 1 else "")
