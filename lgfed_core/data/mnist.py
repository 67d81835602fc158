"""MNIST (LeCun et al. 1998) from its idx files.

An idx file is a header in big-endian 32-bit words (magic number, then one length per dimension)
followed by unsigned bytes; magic 2051 means images, 2049 labels.
"""

import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lgfed_core.errors import DataError

from .dataset import Dataset, Split, raw_bytes
from .usps import rotated

MEAN, STD = 0.1307, 0.3081  # of the training pixels in [0, 1]; LG-FedAvg's released code
ROWS = (  # of each digit, to train with and to test on
    (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
)
MAGIC = {3: 2051, 1: 2049}  # number of dimensions -> magic number


def read(folder: Path) -> Dataset:
    """MNIST as LG-FedAvg feeds it to its MLP.

    60,000 train and 10,000 test rows; x float32 ``[n, 784]`` = (pixel/255 - 0.1307)/0.3081, rows of
    the image one after the other; y int64 ``[n]``, the digit. Raises DataError for a file that is
    missing, is not idx, or is truncated, and where images and labels disagree.
    """
    return Dataset("mnist", _split(folder, "train"), _split(folder, "t10k"), classes=10)


def turned(x: Tensor, degrees: float) -> Tensor:
    """Pictures [n, 784], as `read` gives them, turned counter-clockwise -> [n, 784].

    Quarter turns only move pixels; others interpolate between them, with black beyond the border.
    """
    square = x.view(-1, 1, 28, 28)
    quarters, rest = divmod(degrees, 90)
    if rest:
        black = -MEAN / STD
        angles = torch.full((len(x),), float(degrees))
        square = rotated(square - black - 1, angles) + black + 1
    else:
        square = square.rot90(int(quarters), (2, 3))
    return square.reshape(x.shape)


def _split(folder: Path, prefix: str) -> Split:
    images = read_idx(folder / f"{prefix}-images-idx3-ubyte", dimensions=3)
    labels = read_idx(folder / f"{prefix}-labels-idx1-ubyte", dimensions=1)
    if len(images) != len(labels):
        raise DataError(f"{folder}: {len(images)} {prefix} images but {len(labels)} labels")
    if list(images.shape[1:]) != [28, 28]:
        raise DataError(
            f"{folder}: {prefix} images have shape {list(images.shape[1:])}, not 28, 28"
        )
    if len(labels) and int(labels.max()) > 9:
        raise DataError(f"{folder}: {prefix} has label {int(labels.max())}; digits end at 9")
    x = images.flatten(1).float().div_(255).sub_(MEAN).div_(STD)  # [n, 784]
    return Split(x, labels.long())


def read_idx(path: Path, dimensions: int) -> Tensor:
    """The bytes of an idx file as a uint8 tensor with the shape its header gives.

    dimensions: 3 for images ``[n, rows, columns]``, 1 for labels ``[n]``. Raises DataError for no
    such file, another magic number, or a length that the header does not say.
    """
    raw = np.frombuffer(bytearray(raw_bytes(path)), np.uint8)
    start = 4 * (1 + dimensions)
    if len(raw) < start:
        raise DataError(f"{path}: {len(raw)} bytes, too short for the {start} of an idx header")
    magic, *shape = raw[:start].view(">u4").tolist()
    if magic != MAGIC[dimensions]:
        raise DataError(f"{path}: magic number {magic} instead of {MAGIC[dimensions]}; not idx?")
    expected = start + math.prod(shape)
    if len(raw) != expected:
        raise DataError(
            f"{path}: {len(raw):,} bytes, but its header (shape {shape}) says {expected:,}"
        )
    return torch.from_numpy(raw[start:]).view(*shape)


def rebuild(parts: list[bytes], mirror: dict) -> bytes:
    """An idx file out of a mirror that carries MNIST as csv (label, then 784 pixels per line).

    parts: the csv. mirror: its ``dimensions`` says which file is wanted: 3 the images, 1 the
    labels. Raises ValueError where the csv is not of that form.
    """
    table = pd.read_csv(io.BytesIO(parts[0]), header=None, dtype=np.uint8).to_numpy()
    n, columns = table.shape
    if columns != 785:
        raise ValueError(f"{columns} columns instead of 785")
    dimensions = mirror["dimensions"]
    header = [MAGIC[dimensions], n, 28, 28][: 1 + dimensions]
    body = table[:, 1:] if dimensions == 3 else table[:, 0]
    return np.array(header, ">u4").tobytes() + body.tobytes()
