"""Inception v3 (Szegedy et al., 2016): what its next-to-last layer says about a picture.

The weights are those of the network behind the Fréchet Inception Distance, from a TorchScript file
pinned by its checksum. The script computes in its own slow way (batch normalisation apart, one
memory layout); `Inception` says the same layers again with normalisation folded into the
convolutions, and a test compares the two. It differs from torchvision's Inception v3 in two
places: averages at a border leave the padding out, and the last block pools by the maximum.

A convolution takes in ``precision`` "float32" or "bfloat16": 8 bits of mantissa instead of 24, with
sums in float32. Processors with units for it (AMX, AVX512-BF16) are several times faster so;
on others nothing is gained.
"""

import warnings
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core import require
from lgfed_core.errors import DataError

WEIGHTS, SIDE, WIDTH = "default_1.pt", 299, 2048
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_EPS = 0.001  # of its batch normalisation


class Conv(nn.Module):
    """Convolution, batch normalisation at rest and ReLU, in one; a folded layer has a bias."""

    def __init__(self, weight: Tensor, bias: Tensor, stride: int = 1, pad: bool = True):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.stride = stride
        self.pad = tuple(k // 2 for k in weight.shape[2:]) if pad else 0

    def forward(self, x: Tensor) -> Tensor:
        """x [n, c, h, w] -> [n, units, h', w']."""
        return F.conv2d(x, self.weight, self.bias, self.stride, self.pad).relu_()


class Side(nn.Module):
    """What several branches say about the same input, one after the other along the channels."""

    def __init__(self, *branches: nn.Module):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class Inception(nn.Sequential):
    """The network up to the 2,048 numbers before its classes, from the checked file ``weights``.

    Raises DataError when the file holds another network, SettingsError for an unknown precision.
    """

    def __init__(self, weights: Path, precision: str = "float32"):
        require.one_of("precision", precision, PRECISIONS)
        layers = _folded(weights)

        def conv(stride: int = 1, pad: bool = True) -> Conv:
            weight, bias = next(layers)
            return Conv(weight, bias, stride, pad)

        tower, mean = nn.Sequential, nn.AvgPool2d(3, 1, 1, count_include_pad=False)

        def block(*depths: int) -> Side:
            towers = [tower(*(conv() for _ in range(depth))) for depth in depths]
            return Side(*towers, tower(mean, conv()))

        def large(pool: nn.Module) -> Side:  # 8 x 8, towers that end in two branches
            return Side(
                conv(),
                tower(conv(), Side(conv(), conv())),
                tower(conv(), conv(), Side(conv(), conv())),
                tower(pool, conv()),
            )

        half: dict[str, Any] = dict(stride=2, pad=False)
        try:
            layout = [conv(**half), conv(pad=False), conv(), nn.MaxPool2d(3, 2)]
            layout += [conv(), conv(pad=False), nn.MaxPool2d(3, 2)]
            layout += [block(1, 2, 3) for _ in range(3)]  # 35 x 35
            layout += [Side(conv(**half), tower(conv(), conv(), conv(**half)), nn.MaxPool2d(3, 2))]
            layout += [block(1, 3, 5) for _ in range(4)]  # 17 x 17, filters of 1 x 7 and 7 x 1
            short, deep = tower(conv(), conv(**half)), tower(conv(), conv(), conv(), conv(**half))
            layout += [Side(short, deep, nn.MaxPool2d(3, 2))]
            layout += [large(mean), large(nn.MaxPool2d(3, 1, 1))]
            super().__init__(*layout)
        except (StopIteration, RuntimeError, KeyError) as error:
            raise DataError(f"{weights} holds another network than Inception v3") from error
        if next(layers, None) is not None:
            raise DataError(f"{weights} holds another network than Inception v3")
        self.precision = PRECISIONS[precision]
        self.eval().requires_grad_(False)
        self.to(self.precision, memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.inference_mode()
    def features(self, images: Tensor) -> Tensor:
        """images uint8 [n, 3, h, w] -> float32 [n, 2048]; enlarged to 299 x 299, in [-1, 1]."""
        x = F.interpolate(images.float(), (SIDE, SIDE), mode="bilinear", align_corners=False)
        x = (x / 127.5 - 1).to(self.precision, memory_format=torch.channels_last)
        return self(x).float().mean((2, 3))  # the mean over 8 x 8 in float32


def script(weights: Path) -> torch.jit.ScriptModule:
    """The file itself as a network; only for a file whose checksum was looked at."""
    try:
        with warnings.catch_warnings():  # torch would rather have another format
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.load(str(weights), map_location="cpu").eval()
    except (RuntimeError, ValueError) as error:
        raise DataError(f"{weights} is no TorchScript file: {error}") from error


def _folded(weights: Path):
    """Weight and bias of each convolution, in the order of the file, normalisation folded in.

    relu((W x - mean) / sd + beta) = relu((W / sd) x + (beta - mean / sd)).
    """
    state = script(weights).state_dict()
    names = [n.removesuffix(".weight") for n in state if n.endswith(".weight")]
    for name in names:
        weight, beta, mean, var = (state[f"{name}.{k}"] for k in ("weight", "beta", "mean", "var"))
        scale = (var + _EPS).rsqrt()  # [units]
        yield weight * scale[:, None, None, None], beta - mean * scale
