"""Two domains as two devices: digits of MNIST and of USPS, one labelled, the other not.

FADE, section 5.1 (Hong et al., KDD 2021): the source device has labels, the target device has none,
and a device's domain is its group: 0 the source, 1 the target.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from lgfed_core import data
from lgfed_core.data import Dataset, Split, mnist, usps
from lgfed_core.errors import NotAvailable, one_of
from lgfed_core.partition import ClientIndices, Partition

DIRECTIONS = ("mnist-usps", "usps-mnist")  # source-target
UNLABELLED = -1
SOURCE, TARGET = 0, 1  # groups, and devices


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
    one_of("direction", direction, DIRECTIONS)
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
    x = x.to(memory_format=torch.channels_last)  # convolves faster on a CPU
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
    """USPS, or the UCI digits and their name."""
    try:
        return data.load("usps", turned=10.0), ""
    except NotAvailable:
        return _uci(), "UCI digits"


def _uci() -> Dataset:
    """The 8 x 8 digits of scikit-learn, the last third for testing (other writers)."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    small = torch.from_numpy(x).float().view(-1, 1, 8, 8) / 8 - 1
    split = Split(usps.enlarged(small), torch.from_numpy(y).long())
    at = 2 * len(y) // 3
    train, test = split.take(torch.arange(at)), split.take(torch.arange(at, len(y)))
    return Dataset("digits", train, test, classes=10)
