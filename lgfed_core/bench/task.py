"""What is timed: the two settings of the LG-FedAvg paper, a seed's federation of each."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from lgfed_core import data, models as nets, partition
from lgfed_core.engine import CPU, Federation, LocalTraining, Participation


@dataclass(frozen=True)
class Task:
    """One of the two settings of the papers."""

    name: str
    dataset: str
    net: Callable
    training: LocalTraining
    flops_per_row: int  # multiply-adds count as two; forward and backward

    def federation(self, seeds: list[int], device: torch.device = CPU) -> Federation:
        images = data.load(self.dataset)
        labels = images.train.y, images.test.y
        splits = [partition.classes_per_device(*labels, 100, 2, seed) for seed in seeds]
        net = nets.make(self.net, 0)
        return Federation(images, splits, net, seeds, device, Participation(0.1))


# Forward 2 operations a weight and row, backward twice that, less the gradient of the input.
MNIST = Task(
    "MNIST MLP, B=10", "mnist", nets.mlp_mnist, LocalTraining(0.05, 10), 2 * (3 * 632_064 - 401_408)
)
# conv1 28x28 places x 450 weights, conv2 10x10 x 2,400, then the three linear layers.
CIFAR = Task(
    "CIFAR-10 CNN, B=50",
    "cifar10",
    nets.cnn_cifar,
    LocalTraining(0.1, 50),
    2 * (3 * (352_800 + 240_000 + 61_000) - 352_800),
)
