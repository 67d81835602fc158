"""USPS handwritten digits (Hull 1994), 16 x 16, as 28 x 28 pictures beside MNIST's.

Kept as one array per part: int16 [n, 257], little-endian, label 0 to 9 and 256 pixels times 1,000,
which is every digit that the published text has (LIBSVM's copy, values from -1 to 1).
"""

import io
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lgfed_core.seeds import Purpose, stream

from .dataset import Dataset, Split, raw_records

SIDE, COLUMNS = 16, 257


def read(folder: Path, turned: float = 0.0) -> Dataset:
    """USPS enlarged to 28 x 28, values from -1 to 1.

    turned: degrees; each *training* picture is turned once, by an angle drawn from -turned to
    turned, always the same for the same row (FADE, section 5.1: "resizing and random rotation",
    once, as in the released code, not once an epoch).

    7,291 train and 2,007 test rows; x float32 ``[n, 1, 28, 28]``; y int64 ``[n]``, the digit.
    Raises DataError for a file that is missing or not a whole number of records.
    """
    train, test = _split(folder / "usps-train.bin"), _split(folder / "usps-test.bin")
    if turned:
        angles = stream(0, Purpose.ROTATION).uniform(-turned, turned, len(train))
        train = Split(rotated(train.x, torch.from_numpy(angles).float()), train.y)
    return Dataset("usps", train, test, classes=10)


def _split(path: Path) -> Split:
    records = torch.from_numpy(raw_records(path, "<i2", COLUMNS).astype(np.float32))
    small = records[:, 1:].view(-1, 1, SIDE, SIDE) / 1000
    return Split(enlarged(small), records[:, 0].long())


def enlarged(x: Tensor) -> Tensor:
    """Pictures [n, c, h, w] at MNIST's size, [n, c, 28, 28], by bilinear interpolation."""
    return F.interpolate(x, size=(28, 28), mode="bilinear", align_corners=False)


def rotated(x: Tensor, degrees: Tensor) -> Tensor:
    """Pictures [n, c, h, w] turned by ``degrees`` [n] about their middle, -1 beyond the border."""
    angle = degrees * (math.pi / 180)  # [n]
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    turn = torch.stack([cos, -sin, zero, sin, cos, zero], -1).view(-1, 2, 3)  # [n, 2, 3]
    grid = F.affine_grid(turn, list(x.shape), align_corners=False)  # [n, h, w, 2]
    return F.grid_sample(x + 1, grid, align_corners=False) - 1


def rebuild(parts: list[bytes], mirror: dict) -> bytes:
    """The kept array out of LIBSVM's text: a line per picture, label 1 to 10, then index:value.

    Raises ValueError where the text is not of that form.
    """
    from sklearn.datasets import load_svmlight_file  # takes a second to import; only needed here

    x, y = load_svmlight_file(io.BytesIO(parts[0]), n_features=COLUMNS - 1)
    pixels = np.rint(1000 * x.toarray())
    if np.abs(1000 * x.toarray() - pixels).max() > 0.01 or not {*y} <= set(range(1, 11)):
        raise ValueError("these are not the digits of USPS")
    return np.column_stack([y - 1, pixels]).astype("<i2").tobytes()
