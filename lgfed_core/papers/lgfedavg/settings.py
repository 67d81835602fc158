"""What LG-FedAvg's experiments can be set to, for every data set.

Two protocols, for which the settings of a data set say what differs:

* ``as_described``: the paper's text, its gaps closed in the sound way: models are chosen on a tenth
  of each device's training rows, and new devices are served by averaged outputs.
* ``as_released``: what the authors' code does: every choice is made on test rows, and new devices
  are served by averaged weights.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from lgfed_core import data, models, partition
from lgfed_core.data import cifar10, mnist
from lgfed_core.data.augment import CropFlip
from lgfed_core.errors import SettingsError
from lgfed_core.papers.settings import FROM_0, POSITIVE, REST, Checked, Range

RELEASED = dict(  # what the released code changes on both data sets
    softmax=True,  # the network ends in one (CIFAR-10: its logarithm), the loss applies another
    weighted=False,
    validation=0.0,
    every=1,
    patience=None,
    local_stop=(0.99, 51),  # "epoch > 50", counted from 0: after 52 epochs at the earliest
)
ROWS = {"mnist": mnist.ROWS, "cifar10": cifar10.ROWS}  # of each class: to train with, to test on
SMOKE = dict(devices=10, fraction=0.2, rows_per_class=(40, 20), local_epochs=2, every=1)


@dataclass(frozen=True)
class Settings(Checked):
    """What both data sets have in common; a data set's own settings give the numbers.

    Round counts name the rows of the paper's table; ``shrink`` multiplies what is actually run,
    so that a quick look keeps the proportions.
    """

    classes: int = 2  # classes per device; 10 means i.i.d.
    devices: int = 100  # K
    fraction: float = 0.1  # C
    batch_size: int = 10  # B
    fedavg_lr: float = 0.05
    lr: float = 0.05  # of all other methods
    decay: float | None = None  # of the learning rate: lr / (1 + decay t) after t rounds
    softmax: bool = False  # True: the network ends in one (or its logarithm), as released
    weighted: bool = True  # average by n_k/n; False: 1/m
    shared_layers: int = 3  # how many layers LG-FedAvg shares,
    shared_side: str = "last"  # "last": next to the output, "first": next to the input
    validation: float = 0.1  # share of each device's training rows; as released 0
    every: int = 5  # rounds between two evaluations of FedAvg and LG-FedAvg
    fedavg: bool = True  # False: neither FedAvg nor what starts from it, the baselines only
    budgets: tuple[int, ...] = ()  # FedAvg rounds before LG-FedAvg
    extra_rounds: int = 0  # FedAvg's own row is the best of so many more
    starts: tuple[int, ...] = ()  # which budgets LG continues, in order
    lg_rounds: int = 100
    alone: tuple[str, ...] = ("local",)  # baselines that share nothing: "local", "mtl"
    local_epochs: int = 200
    patience: int | None = 20  # a device alone stops after so many epochs without gain
    local_stop: tuple[float, int] | None = None  # or at this accuracy after so many epochs
    mtl_scale: float = 0.0  # strength of MTL's regulariser
    mtl_rounds: int = 0
    rows_per_class: tuple[int, int] | None = None  # (train, test); None is the whole data set
    shrink: float = 1.0

    DATA: ClassVar[str]
    AUGMENT: ClassVar[CropFlip | None] = None
    SHARDS: ClassVar[int] = 0  # of a device, where label-sorted rows are cut

    RANGES: ClassVar = dict(extra_rounds=FROM_0, mtl_rounds=FROM_0, shared_layers=Range(0, 5))
    RANGES |= dict(shrink=Range(0, 100, above=True), fedavg_lr=POSITIVE, validation=REST)
    CHOICES: ClassVar = dict(shared_side=("first", "last"), alone=("local", "mtl"))
    EMPTY = frozenset({"budgets", "starts", "alone"})

    def fits(self) -> None:
        super().fits()
        if self.released == (self.validation > 0):
            why = "chooses on test rows: 0" if self.released else "chooses on these rows: above 0"
            raise SettingsError(f"validation is {self.validation}; {self.protocol} {why}")
        if not set(self.starts) <= set(self.budgets):
            raise SettingsError(f"starts {self.starts} must be among the budgets {self.budgets}")
        if self.fedavg and not self.budgets:
            raise SettingsError("budgets is empty; give at least one, or fedavg=False")
        enough(self.DATA, self.devices, self.classes, self.rows_per_class, self.SHARDS)

    def rounds(self, nominal: int) -> int:
        """Rounds to run for a number printed in the paper; at least one."""
        return max(1, round(nominal * self.shrink))

    def ran(self, nominal: int) -> int:
        """`rounds`; none of none."""
        return self.rounds(nominal) if nominal else 0

    @property
    def fedavg_rounds(self) -> int:
        """How long FedAvg trains: the largest budget and the extra rounds."""
        return self.rounds(max(self.budgets)) + round(self.extra_rounds * self.shrink)

    def split(self, images: data.Dataset, seed: int) -> partition.Partition:
        """Who holds what, before validation rows are set aside."""
        labels = images.train.y, images.test.y
        if self.classes == images.classes:
            return partition.iid(*labels, self.devices, seed)
        return partition.classes_per_device(*labels, self.devices, self.classes, seed)

    def net(self) -> nn.Module:
        """The network of this data set, of random weights."""
        raise NotImplementedError

    def shared(self, net: nn.Module) -> frozenset[str]:
        """The parameters that LG-FedAvg shares."""
        side = models.last_layers if self.shared_side == "last" else models.first_layers
        return side(net, self.shared_layers)


def enough(
    data: str, devices: int, classes: int, per_class: tuple[int, int] | None, shards: int = 0
) -> None:
    """Raise SettingsError where ``data`` cannot be dealt to so many devices.

    classes: of a device, dealt class by class; all of them: at random. per_class: rows kept of each
    class, (train, test). shards: of a device where label-sorted rows are cut, whatever ``classes``.
    """
    rows, labels = ROWS[data], len(ROWS[data][0])
    least = tuple(map(min, rows))
    if per_class and any(n > there for n, there in zip(per_class, least, strict=True)):
        raise SettingsError(
            f"rows_per_class is {per_class}; of its smallest class {data} has {least}"
        )
    said = f"devices is {devices}, classes is {classes}"
    mixed = bool(shards) or classes == labels
    if not mixed and classes * devices % labels:
        raise SettingsError(
            f"{said}: {classes * devices} shards cannot be shared equally by {labels} classes; "
            f"make the product a multiple of {labels}"
        )
    for what, n, there in zip(("training", "test"), per_class or least, rows, strict=True):
        has = (n * labels if per_class else sum(there)) if mixed else n
        wanted = devices * (shards or 1) if mixed else devices * classes // labels
        if wanted > has:
            where = "" if mixed else " of its smallest class"
            raise SettingsError(
                f"{said}, rows_per_class is {per_class}: {wanted} shares of the {has} {what} rows"
                f"{where} of {data}; use fewer devices"
            )
