"""What can be set, of all methods alike."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import nn

from lgfed_core import methods as m, models
from lgfed_core.engine import LocalTraining, Participation
from lgfed_core.errors import SettingsError
from lgfed_core.papers.settings import INSIDE, POSITIVE, Checked, Range

from .methods import ENTRIES, METHODS, missing
from .net import SmallNet
from .tasks import TASKS, Task

RATES = (0.002, 0.01, 0.05, 0.2, 0.5)
SCALES = {
    "smoke": dict(
        tasks=("mnist", "adult"),
        methods=(
            *("fedavg", "fine_tuned", "mtl", "lg_fedavg_adv", "lg_cgau", "fade"),
            *("fedrep", "fedbabu", "per_fedavg", "apfl", "pfedme"),
            *("fedadam", "scaffold", "fednova"),
        ),
        lrs=(0.05,),
        rows=40,
        rounds=2,
        probed=(60, 60),
        looks=2,
    ),
    "quick": dict(
        tasks=("mnist", "adult"),
        methods=("fedavg", "local_only", "lg_fedavg", "cgau", "lg_fedavg_adv", "fade"),
        lrs=(0.05,),
        rows=300,
        rounds=20,
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The same rows, rounds and local epochs for all methods; one learning rate each, chosen later.

    rows: training rows of each class, of digits in either set; of incomes ten times as many in all,
    whatever their class; of Office-31 all there are. mu, scale_mtl, strength: of FedProx's pull, of
    MTL's regulariser, of fair LG-FedAvg's adversary (both lambdas); head: the share of its batches
    that FedRep fits the head with; fixed, not searched, as are the settings of the methods that
    came after LG-FedAvg, which are their papers'.
    """

    tasks: tuple[str, ...] = tuple(TASKS)
    methods: tuple[str, ...] = tuple(METHODS)
    lrs: tuple[float, ...] = RATES  # each is run; `claims.chosen` takes the best on validation rows
    rows: int = 500
    rounds: int = 100
    first: float = 0.8  # share of the rounds that are FedAvg's, for methods that come `after` it
    fraction: float = 0.5  # C
    batch_size: int = 50
    momentum: float = 0.5
    mu: float = 0.1
    scale_mtl: float = 1e-3
    strength: float = 1.0
    head: float = 0.5
    probed: tuple[int, int] = (600, 1000)  # rows that a probe is fitted to, and judged on
    looks: int = 10  # at the local test on the way

    RANGES: ClassVar = dict(lrs=POSITIVE, first=INSIDE, head=INSIDE, rounds=Range(2, 10**6))
    CHOICES: ClassVar = dict(scale=SCALES, tasks=TASKS, methods=METHODS)
    SHORTER = ("rounds",)
    UNRELEASED = "a question of our own has no released protocol"

    def fits(self) -> None:
        super().fits()
        if not self.cells:
            why = {self.missing(task, method) for task in self.tasks for method in self.methods}
            raise SettingsError(f"no method of these has room in a task: {'; '.join(sorted(why))}")

    @property
    def cells(self) -> dict[str, tuple[str, str, float]]:
        """The parts, in order: name -> (task, method, learning rate)."""
        return {
            f"{task}:{method}:{lr:g}": (task, method, lr)
            for task in self.tasks
            for method in self.methods
            if not self.missing(task, method)
            for lr in self.lrs
        }

    def missing(self, task: str, method: str) -> str:
        """Why a method cannot be put to a task; "" where it can."""
        return missing(task, method)

    def training(self, lr: float) -> LocalTraining:
        """One epoch of SGD on a device's rows."""
        return LocalTraining(lr, self.batch_size, self.momentum)

    @property
    def participation(self) -> Participation:
        return Participation(self.fraction)

    def net(self, method: str, task: Task, seed: int) -> nn.Module:
        """A method's network, of random weights."""
        e = ENTRIES[method]
        net = models.make(partial(SmallNet, task.inputs, task.data.classes, **e.parts), seed)
        return e.wraps(net) if e.wraps else net

    def after(self, method: str) -> str:
        """The method whose model it goes on from; "" where it begins by itself."""
        return ENTRIES[method].after

    def lengths(self, method: str) -> tuple[str, int, int]:
        """The method that it comes `after`, with its rounds, and rounds of its own."""
        if not (sooner := self.after(method)):
            return "", 0, self.rounds
        before = min(max(1, round(self.first * self.rounds)), self.rounds - 1)
        return sooner, before, self.rounds - before

    def method(self, name: str, net: nn.Module) -> m.Method:
        """A method; of those that come `after` another, the second part alone."""
        return ENTRIES[name].make(self, net)
