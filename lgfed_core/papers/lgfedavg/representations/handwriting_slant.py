"""The protected attribute of the adversarial panel, a stand-in: does the writing lean?

MNIST says nothing of its writers. How far a digit leans is a trait of the hand that wrote it, and
is in the pixels themselves. A picture's group is 1 where it leans to the right by more than the
median of its own digit: in every digit half of the pictures do, so that the label says nothing of
the group.
"""

import torch
from torch import Tensor

from lgfed_core.data import Dataset, Split
from lgfed_core.data.mnist import MEAN, STD


def leaning(x: Tensor) -> Tensor:
    """How far pictures x [n, 784] lean to the right: columns per row upwards, of the ink [n]."""
    ink = (x * STD + MEAN).clamp(min=0).view(-1, 28, 28)  # [n, 28, 28]
    total = ink.sum((1, 2)).clamp(min=1e-6)  # [n]
    place = torch.arange(28.0)
    row = (ink.sum(2) @ place / total)[:, None]  # [n, 1], centre of the ink
    column = (ink.sum(1) @ place / total)[:, None]
    down, right = place - row, place - column  # [n, 28] each
    across = torch.einsum("nij,ni,nj->n", ink, down, right)
    spread = torch.einsum("nij,ni->n", ink, down.square()).clamp(min=1e-6)
    return -across / spread


def with_slant(images: Dataset) -> Dataset:
    """``images`` with one group: whether a picture leans more than the median of its digit.

    Medians are those of the training rows.
    """
    train, test = leaning(images.train.x), leaning(images.test.x)
    medians = torch.stack([train[images.train.y == c].median() for c in range(images.classes)])

    def grouped(split: Split, lean: Tensor) -> Split:
        return Split(split.x, split.y, (lean > medians[split.y]).long()[:, None])

    return Dataset(
        images.name, grouped(images.train, train), grouped(images.test, test), images.classes
    )
