"""Digits in three domains as features: the stand-in for objects where no pictures can be had.

=========  ====================================================================
domain     pictures
=========  ====================================================================
mnist      28 x 28, white on black
uci        scikit-learn's 8 x 8 digits, enlarged to 20 x 20, in the middle
blended    other pictures of MNIST, as ``|patch - digit|`` on patches of CIFAR-10,
..         after MNIST-M (Ganin & Lempitsky 2015)
=========  ====================================================================

All come from registries, 40 pictures of each digit. Features are histograms of oriented gradients
(Dalal & Triggs 2005): 8 orientations without sign in 7 x 7 cells, 392 numbers, computed at once.
"""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from lgfed_core import data, require
from lgfed_core.seeds import Purpose, stream

from .. import cifar10, mnist
from .stored import Features, features

DOMAINS = ("mnist", "uci", "blended")
PER_CLASS, CELLS, ORIENTATIONS = 40, 7, 8
STAND_IN = "digits in three domains"


@lru_cache(maxsize=3)
def load(domain: str) -> Features:
    """Features [400, 392] of one of `DOMAINS`. Raises DataError where its parts cannot be had."""
    require.one_of("domain", domain, DOMAINS)
    images, y = pictures(domain)
    x, label = gradients(images).numpy(), y.numpy()
    return features(f"digits-{domain}", x, label, label, stand_in=STAND_IN)


def pictures(domain: str) -> tuple[Tensor, Tensor]:
    """Pictures uint8 [400, 3, 28, 28] and digits int64 [400] of a domain, the same each time."""
    if domain == "uci":
        from sklearn.datasets import load_digits

        small, label = load_digits(return_X_y=True)
        grey = torch.from_numpy(small).float().view(-1, 1, 8, 8) * (255 / 16)
        grey = F.pad(F.interpolate(grey, (20, 20), mode="bilinear"), (4, 4, 4, 4))
        y = torch.from_numpy(label).long()
    else:
        split = getattr(data.load("mnist"), "train" if domain == "mnist" else "test")
        grey = ((split.x * mnist.STD + mnist.MEAN) * 255).round().clamp(0, 255).view(-1, 1, 28, 28)
        y = split.y
    rows = torch.cat([torch.nonzero(y == digit).flatten()[:PER_CLASS] for digit in range(10)])
    colour = grey[rows].expand(-1, 3, -1, -1)
    if domain == "blended":
        patches, _ = cifar10.read_batch(data.get("cifar10") / cifar10.TEST[0])
        which = stream(0, Purpose.AUGMENT).permutation(len(patches))[: len(rows)]
        colour = (patches[torch.from_numpy(which), :, 2:30, 2:30].float() - colour).abs()
    return colour.to(torch.uint8).contiguous(), y[rows]


def gradients(images: Tensor) -> Tensor:
    """Histograms of oriented gradients of pictures [n, 3, h, w] -> [n, 7 * 7 * 8], length 7."""
    grey = images.float().mean(1, keepdim=True) / 255
    grey = F.avg_pool2d(F.pad(grey, (1, 1, 1, 1), mode="replicate"), 3, 1)  # a little blurred
    dx = F.pad(grey[..., 2:] - grey[..., :-2], (1, 1))
    dy = F.pad(grey[..., 2:, :] - grey[..., :-2, :], (0, 0, 1, 1))
    middle = torch.arange(ORIENTATIONS).view(1, -1, 1, 1) * (math.pi / ORIENTATIONS)
    away = torch.atan2(dy, dx) - middle  # [n, 8, h, w], on a circle of pi
    away = ((away + math.pi / 2) % math.pi - math.pi / 2).abs() * (ORIENTATIONS / math.pi)
    votes = (1 - away).clamp(min=0) * torch.hypot(dx, dy)
    return CELLS * F.normalize(F.adaptive_avg_pool2d(votes, CELLS).flatten(1))
