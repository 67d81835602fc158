"""A toy federation that every engine test can afford: ten devices, three classes, 8 numbers."""

import pytest
import torch
from torch import nn

from lgfed_core.data import Dataset, Split
from lgfed_core.federation import Federation
from lgfed_core.rows import Partition, Rows

torch.set_num_threads(1)


class Toy(nn.Module):
    """8 -> 6 -> 3 with a ReLU: 54 + 21 = 75 parameters."""

    layers = ("below", "above")

    def __init__(self):
        super().__init__()
        self.below = nn.Linear(8, 6)
        self.above = nn.Linear(6, 3)

    def forward(self, x):
        return self.above(self.below(x).relu())


ABOVE = frozenset({"above.weight", "above.bias"})


def toy_split(rows: int, seed: int) -> Split:
    rng = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 3
    return Split(torch.randn(rows, 8, generator=rng) + 1.5 * torch.eye(8)[y], y)


def toy_partition(rows: int, tests: int, devices: int, seed: int) -> Partition:
    """Unequal devices: device k holds 5 + k training rows, 3 of them for validation."""
    rng = torch.Generator().manual_seed(seed)
    order = torch.randperm(rows, generator=rng)
    sizes = [5 + k for k in range(devices)]
    train = order[: sum(sizes)].split(sizes)
    return Partition(
        "toy",
        train=Rows.from_lists([mine[3:] for mine in train]),
        validation=Rows.from_lists([mine[:3] for mine in train]),
        test=Rows.from_lists(torch.randperm(tests, generator=rng).tensor_split(devices)),
    )


def toy_federation(seeds=(0,), devices: int = 10, net: nn.Module | None = None) -> Federation:
    if net is None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            net = Toy()
    data = Dataset("toy", toy_split(150, 1), toy_split(60, 2), 3)
    splits = [toy_partition(150, 60, devices, seed) for seed in seeds]
    return Federation(data, splits, net, list(seeds))


@pytest.fixture
def federation() -> Federation:
    return toy_federation()
