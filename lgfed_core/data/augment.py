"""Random crops and flips of a batch of images, as one tensor operation.

An augmentation has two halves. ``draw`` makes the random numbers of a device's rows, in the order
in which it visits them; ``apply`` uses them. So a device sees the same pictures whether it trains
alone or among others, and nothing random happens where tensors are batched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import torch
from torch import Tensor

from lgfed_core import require
from lgfed_core.errors import SettingsError


@dataclass(frozen=True)
class CropFlip:
    """Pad by ``padding``, cut a window of the old size at random, mirror half of the pictures.

    fill: what the border holds, one value per channel, in the units of the normalised pictures
    (black is (0 - mean) / std). Liang et al. (2020) do this to CIFAR-10, with padding 4.
    """

    fill: tuple[float, ...]
    padding: int = 4

    def __post_init__(self):
        fill = self.fill if isinstance(self.fill, Sequence) else ()
        if not fill or not all(isinstance(value, Real) for value in fill):
            raise SettingsError(f"fill is {self.fill!r}; it must be a number for each channel")
        require.whole(padding=self.padding)

    def draw(self, rng: np.random.Generator, *shape: int) -> np.ndarray:
        """(down, right, mirrored) for each picture -> int64 [*shape, 3]."""
        window = 2 * self.padding + 1
        return rng.integers(0, (window, window, 2), size=(*shape, 3))

    def apply(self, x: Tensor, drawn: Tensor) -> Tensor:
        """x [n, ..., C, H, W], drawn [n, ..., 3] -> pictures of the same shape."""
        if x.dim() > 4:
            return self.apply(x.flatten(0, -4), drawn.flatten(0, -2)).unflatten(0, x.shape[:-3])
        n, channels, height, width = x.shape
        pad, wide = self.padding, width + 2 * self.padding
        padded = x.new_empty(n, channels, height + 2 * pad, wide)
        for channel, value in enumerate(self.fill):  # a tensor of them would have to be sent
            padded[:, channel] = value
        padded[..., pad : pad + height, pad : pad + width] = x
        down, right, mirrored = drawn[:, :, None].unbind(1)  # [n, 1] each
        column = torch.arange(width, device=x.device)
        column = torch.where(mirrored == 1, width - 1 - column, column) + right  # [n, W]
        row = torch.arange(height, device=x.device) + down  # [n, H]
        pixel = (row[:, :, None] * wide + column[:, None]).flatten(1)  # [n, H W]
        pixel = pixel[:, None].expand(-1, channels, -1)  # [n, C, H W]
        out = padded.flatten(2).gather(2, pixel).view(x.shape)
        return torch.empty_like(x).copy_(out)  # in the memory order of x
