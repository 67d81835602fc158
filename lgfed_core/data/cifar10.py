"""CIFAR-10 (Krizhevsky 2009) from its six binary batches.

A batch is 10,000 records of 3,073 bytes: the label, then 1,024 red, green and blue pixels, each
plane row by row.
"""

import io
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lgfed_core.errors import DataError

from .dataset import Dataset, Split, raw_records

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, as LG-FedAvg uses them
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ROWS = (5000,) * 10, (1000,) * 10  # of each class, to train with and to test on
PIXELS = 3 * 32 * 32
MOST_ROWS = 10_000  # of one batch
TRAIN = [f"data_batch_{i}.bin" for i in range(1, 6)]
TEST = ["test_batch.bin"]


def read(folder: Path) -> Dataset:
    """CIFAR-10 as LG-FedAvg feeds it to its CNN, without the random crop and flip.

    50,000 train and 10,000 test rows; x float32 ``[n, 3, 32, 32]`` = (pixel/255 - mean)/std per
    channel; y int64 ``[n]``, numbered as in ``CLASSES``. Raises DataError for a batch that is
    missing, is not a whole number of records, or has a label above 9.
    """
    return Dataset("cifar10", _split(folder, TRAIN), _split(folder, TEST), classes=10)


def _split(folder: Path, names: list[str]) -> Split:
    batches = [read_batch(folder / name) for name in names]
    n = sum(len(labels) for _, labels in batches)
    x = torch.empty(n, 3, 32, 32, memory_format=torch.channels_last)  # convolves faster on a CPU
    start = 0
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    for images, labels in batches:
        rows = x[start : start + len(labels)]
        rows.copy_(images).div_(255).sub_(mean).div_(std)
        start += len(labels)
    return Split(x, torch.cat([labels for _, labels in batches]).long())


def read_batch(path: Path) -> tuple[Tensor, Tensor]:
    """The raw content of a binary batch: images uint8 ``[n, 3, 32, 32]``, labels uint8 ``[n]``.

    Raises DataError for no such file, no whole number of records, or a label above 9.
    """
    records = torch.from_numpy(raw_records(path, np.uint8, 1 + PIXELS))
    labels = records[:, 0]
    if int(labels.max()) > 9:
        row = int((labels > 9).nonzero()[0])
        raise DataError(f"{path}: record {row} has label {int(labels[row])}; CIFAR-10 ends at 9")
    return records[:, 1:].reshape(-1, 3, 32, 32), labels


def rebuild(parts: list[bytes], mirror: dict) -> bytes:
    """A binary batch out of a mirror that carries it as one picture and a list of labels.

    parts: a PNG whose row i holds the 1,024 RGB pixels of image i, and a JSON list of labels.
    mirror: its ``first`` says which label belongs to the first image. Raises ValueError where
    picture and labels are not of that form.
    """
    from PIL import Image  # comes with torchvision; only needed here

    picture, labels = parts
    try:
        opened = Image.open(io.BytesIO(picture))
        if opened.width != 1024 or opened.height > MOST_ROWS:  # before they are unpacked
            raise ValueError(f"it has {opened.width} x {opened.height} pixels")
        image = np.asarray(opened)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"the picture does not open ({error})") from error
    n = len(image)
    if image.shape != (n, 1024, 3) or image.dtype != np.uint8:
        raise ValueError(f"the picture has shape {image.shape}, not (n, 1024, 3)")
    y = np.array(json.loads(labels)[mirror["first"] : mirror["first"] + n], np.uint8)
    if len(y) != n:
        raise ValueError(f"{len(y)} labels for {n} images")
    records = np.empty((n, 1 + PIXELS), np.uint8)
    records[:, 0] = y
    records[:, 1:] = image.transpose(0, 2, 1).reshape(n, PIXELS)
    return records.tobytes()
