"""The two shapes every data set is handed over in, a small copy for smoke scale, raw files."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from lgfed_core.errors import DataError


@dataclass(frozen=True)
class Split:
    """Rows of one part (train or test) of a data set.

    x: float32 ``[n, ...]``, preprocessed as the papers do it, on the CPU; float64 for a network in
    that precision. y: int64 ``[n]``, class labels ``0 .. classes-1``, or -1 where there is none.
    groups: int64 ``[n, g]``, one column per protected attribute, or None.

    Raises DataError for labels or inputs of another type, as numpy's arrays, or not one row each.
    """

    x: Tensor
    y: Tensor
    groups: Tensor | None = None

    def __post_init__(self):
        for name, kind in (("x", "float32"), ("y", "int64"), ("groups", "int64")):
            value = getattr(self, name)
            if not isinstance(value, Tensor) and (name != "groups" or value is not None):
                raise DataError(
                    f"{name} is a {type(value).__name__}; make it a tensor by "
                    f"torch.as_tensor({name}, dtype=torch.{kind})"
                )
        labels = self.y.shape
        if self.y.dtype != torch.int64 or len(labels) != 1:
            raise DataError(f"y is {_said(self.y)}; labels must be torch.int64 of shape [n]")
        if not self.x.is_floating_point() or self.x.shape[:1] != labels:
            raise DataError(f"x is {_said(self.x)}; {len(self)} labels need floats [n, ...]")
        if (groups := self.groups) is not None:
            shaped = groups.shape[:1] == labels and groups.dim() == 2
            if not shaped or groups.dtype != torch.int64:
                said = f"groups are {_said(groups)}; {len(self)} labels need [n, g]"
                raise DataError(f"{said}, and they must be torch.int64")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Split({len(self)} rows of shape {list(self.x.shape[1:])})"

    def refuse_broken(self, what: str) -> None:
        """Raise DataError for the first row of ``x`` with a NaN or an infinite number."""
        if self.x.sum().isfinite():  # a NaN or infinite number anywhere would show
            return
        broken = (~self.x.isfinite()).reshape(len(self), -1).any(1).nonzero()
        if len(broken):
            row = int(broken[0])
            values = self.x[row].flatten()
            raise DataError(
                f"{what}: row {row} holds {float(values[~values.isfinite()][0])}, and "
                f"{len(broken)} of {len(self)} rows are like that; fill in or leave out what is "
                "missing"
            )

    def take(self, index: Tensor) -> Split:
        """The rows ``index`` (int64 ``[m]``), in that order."""
        groups = None if self.groups is None else self.groups[index]
        return Split(self.x[index], self.y[index], groups)


@dataclass(frozen=True)
class Dataset:
    """A data set as one tensor per part; partitions point into it by row number.

    Training rows without a label have -1. Raises DataError for labels that are no class.
    """

    name: str
    train: Split
    test: Split
    classes: int

    def __post_init__(self):
        for part in ("train", "test"):
            if not isinstance(given := getattr(self, part), Split):
                raise DataError(
                    f"{self.name}: {part} is a {type(given).__name__}; make it by Split(x, y)"
                )
        whole = isinstance(self.classes, Integral) and not isinstance(self.classes, bool)
        if not whole or self.classes < 1:
            raise DataError(f"{self.name}: classes is {self.classes!r}; it is a number from 1")
        object.__setattr__(self, "classes", int(self.classes))
        if self.train.x.shape[1:] != self.test.x.shape[1:]:
            raise DataError(
                f"{self.name}: a training row is {list(self.train.x.shape[1:])}, a test row "
                f"{list(self.test.x.shape[1:])}; they must be alike"
            )
        for part, least in (("train", -1), ("test", 0)):
            y = getattr(self, part).y
            if len(y) and not least <= y.min() <= y.max() < self.classes:
                raise DataError(
                    f"{self.name}: {part} labels go from {y.min()} to {y.max()}, but the "
                    f"{self.classes} classes are 0 to {self.classes - 1}"
                )


def subset(dataset: Dataset, train_per_class: int, test_per_class: int | None = None) -> Dataset:
    """The first rows of every class, in data-set order: the same rows each time, for smoke scale.

    test_per_class: as many as of ``dataset.train`` where it is None. Raises DataError where fewer
    than one row was asked for, or a class has fewer rows than that.
    """
    tests = train_per_class if test_per_class is None else test_per_class
    train, test = _first(dataset, "train", train_per_class), _first(dataset, "test", tests)
    return replace(dataset, train=train, test=test)


def _said(tensor: Tensor) -> str:
    return f"{tensor.dtype} of shape {list(tensor.shape)}"


def _first(dataset: Dataset, part: str, per_class: int) -> Split:
    if not isinstance(per_class, Integral) or per_class < 1:
        raise DataError(
            f"{dataset.name}: asked for {per_class!r} {part} rows per class; it must be a whole "
            "number from 1"
        )
    split: Split = getattr(dataset, part)
    kept = []
    for label in range(dataset.classes):
        rows = torch.nonzero(split.y == label).flatten()
        if len(rows) < per_class:
            raise DataError(
                f"{dataset.name}: asked for {per_class} {part} rows per class, "
                f"but class {label} has {len(rows)}"
            )
        kept.append(rows[:per_class])
    return split.take(torch.cat(kept).sort().values)


def raw_bytes(path: Path) -> bytes:
    """What a file holds. Raises DataError, with its path, where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def raw_records(path: Path, dtype: DTypeLike, columns: int) -> NDArray:
    """A file of numbers, so many a record -> [n, columns]. Raises DataError where it is none."""
    raw, size = raw_bytes(path), columns * np.dtype(dtype).itemsize
    if not raw or len(raw) % size:
        raise DataError(f"{path}: {len(raw):,} bytes are no whole number of {size} B records")
    return np.frombuffer(bytearray(raw), dtype).reshape(-1, columns)


class Archive(zipfile.ZipFile):
    """A zip file. Raises DataError where it, or an entry, cannot be read."""

    def __init__(self, place: Path):
        try:
            super().__init__(place)
        except Exception as error:  # damaged bytes make readers raise anything
            raise DataError(f"{place} cannot be read ({error!r}); fetch it again") from error

    def content(self, name: str) -> bytes:
        """The bytes of an entry."""
        try:
            return self.read(name)
        except Exception as error:
            where = f"{self.filename}: {name}"
            raise DataError(f"{where} cannot be read ({error!r}); fetch it again") from error


def shrunk(content: bytes, side: int, where: str, formats: tuple[str, ...] | None = None) -> Tensor:
    """A picture from its file, of some ``formats`` or any: uint8 [3, side, side]. Raises DataError,
    with ``where``, if it is damaged or something else."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=formats) as picture:
            small = picture.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    except Exception as error:
        known = not isinstance(error, UnidentifiedImageError)  # which says an address in memory
        why = (str(error) if known else f"no {' or '.join(formats or ['picture'])}") or repr(error)
        raise DataError(f"{where} is no readable picture ({why}); fetch it again") from error
    return torch.from_numpy(np.asarray(small).copy()).permute(2, 0, 1)
