"""Crops and flips against torchvision's, and lanes that augment."""

import numpy as np
import pytest
import torch

from lgfed_core.data._torchvision import torchvision
from lgfed_core.data.augment import CropFlip

tv = torchvision.transforms.functional

CHANGE = CropFlip(fill=(-2.0, 0.5, 3.0), padding=4)


def by_torchvision(picture, down, right, mirrored):
    """One picture [C, H, W], channel by channel, as each has a border of its own."""
    padded = [
        tv.pad(c[None], [CHANGE.padding], fill=f) for c, f in zip(picture, CHANGE.fill, strict=True)
    ]
    cut = tv.crop(torch.cat(padded), down, right, *picture.shape[-2:])
    return tv.hflip(cut) if mirrored else cut


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_each_picture_is_torchvisions(layout):
    x = torch.randn(40, 3, 32, 28).contiguous(memory_format=layout)
    drawn = torch.from_numpy(CHANGE.draw(np.random.default_rng(0), 40))
    out = CHANGE.apply(x, drawn)
    assert out.is_contiguous(memory_format=layout)
    for picture, how, found in zip(x, drawn.tolist(), out, strict=True):
        assert torch.equal(found, by_torchvision(picture, *how))


def test_lanes_are_a_leading_axis():
    x, rng = torch.randn(2, 5, 3, 8, 8), np.random.default_rng(0)
    drawn = torch.from_numpy(CHANGE.draw(rng, 2, 5))
    both = CHANGE.apply(x, drawn)
    assert torch.equal(both[1], CHANGE.apply(x[1], drawn[1]))


def test_every_window_and_half_of_the_mirrors():
    drawn = CHANGE.draw(np.random.default_rng(0), 20_000)
    assert drawn.shape == (20_000, 3)
    for column in (0, 1):
        assert sorted(set(drawn[:, column])) == list(range(9))
    assert abs(drawn[:, 2].mean() - 0.5) < 0.02
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.03
