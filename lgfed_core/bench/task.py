"""What is timed: the two settings of the LG-FedAvg paper, and two in which simulators time
themselves. A round takes the same steps whatever they learn, so the networks are those of the paper
and rows are dealt evenly where the source does not say."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from lgfed_core import data, models as nets, partition
from lgfed_core.engine import CPU, Federation, LocalTraining, Participation
from lgfed_core.partition import Partition


@dataclass(frozen=True)
class Task:
    """Who trains what, and how: ``fraction`` of ``devices`` in a round.

    classes: of each device; None: all rows are dealt at random. Epochs count alike for all
    contenders where a batch divides a device's rows.
    """

    name: str
    dataset: str
    net: Callable
    training: LocalTraining
    devices: int = 100
    fraction: float = 0.1
    classes: int | None = 2

    def federation(self, seeds: list[int], device: torch.device = CPU) -> Federation:
        images = data.load(self.dataset)
        labels = images.train.y, images.test.y
        splits = [self._split(labels, seed) for seed in seeds]
        net = nets.make(self.net, 0)
        return Federation(images, splits, net, seeds, device, Participation(self.fraction))

    def _split(self, labels: tuple, seed: int) -> Partition:
        if self.classes is None:
            return partition.iid(*labels, self.devices, seed)
        return partition.classes_per_device(*labels, self.devices, self.classes, seed)

    @property
    def cohort(self) -> int:
        """Devices in a round."""
        return Participation(self.fraction).cohort(self.devices)


MNIST = Task("MNIST MLP, B=10", "mnist", nets.mlp_mnist, LocalTraining(0.05, 10))
CIFAR = Task("CIFAR-10 CNN, B=50", "cifar10", nets.cnn_cifar, LocalTraining(0.1, 50))
# BlazeFL's own (its paper: 100 clients, all in a round, 5 epochs, 25,000 steps in five rounds).
BLAZEFL = replace(
    CIFAR,
    name="CIFAR-10 CNN, all of 100 devices, 5 epochs",
    training=LocalTraining(0.01, 50, epochs=5),
    fraction=1.0,
    classes=None,
)
# pfl-research's (its benchmark on CIFAR-10: 1,000 users of 50 pictures, 50 in a round).
PFL = replace(
    CIFAR,
    name="CIFAR-10 CNN, 50 of 1,000 devices, B=10",
    training=LocalTraining(0.01, 10),
    devices=1000,
    fraction=0.05,
    classes=None,
)
TASKS = {"mnist": MNIST, "cifar10": CIFAR, "blazefl": BLAZEFL, "pfl": PFL}
