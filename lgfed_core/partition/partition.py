"""Which rows each device holds: padded row numbers, and three sets of them as a `Partition`.

`partition` has the schemes that draw one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lgfed_core.errors import PartitionError
from lgfed_core.seeds import Purpose, stream


@dataclass(frozen=True, eq=False)
class ClientIndices:
    """Row numbers of K devices: ``index`` int64 [K, n_max], padded with 0; ``size`` int64 [K].

    Raises PartitionError for tensors of another type or shape, a size that ``index`` does not have,
    and a row below 0. `from_lists` makes them of lists.
    """

    index: Tensor
    size: Tensor

    def __post_init__(self):
        index, size = self.index, self.size
        whole = all(isinstance(t, Tensor) and t.dtype == torch.int64 for t in (index, size))
        if not whole or index.dim() != 2 or size.shape != index.shape[:1] or not len(size):
            raise PartitionError(
                f"index is {_said(index)}, size {_said(size)}; they must be torch.int64 of shapes "
                "[devices, rows] and [devices]: ClientIndices.from_lists(...) makes them"
            )
        if not 0 <= size.min() <= size.max() <= index.shape[1]:
            raise PartitionError(
                f"sizes go from {size.min()} to {size.max()}, but index has room for 0 to "
                f"{index.shape[1]} rows a device"
            )
        if index.numel() and index.min() < 0 and (below := (index < 0) & self.mask).any():
            k = int(below.any(1).nonzero()[0])
            raise PartitionError(
                f"device {k} holds row {index[k][below[k]][0]}; rows are numbered from 0"
            )

    @classmethod
    def from_lists(cls, lists: Sequence[ArrayLike]) -> ClientIndices:
        """One array of row numbers [n_k] per device.

        Raises PartitionError for no device, and for what is no row number: a fraction, a mask, a
        number below 0.
        """
        if len(lists) == 0:
            raise PartitionError("rows for 0 devices; at least one device is needed")
        arrays = [_numbers(k, rows) for k, rows in enumerate(lists)]
        size = [len(rows) for rows in arrays]
        index = np.zeros((len(arrays), max(size)), dtype=np.int64)  # [K, n_max]
        for k, rows in enumerate(arrays):
            index[k, : len(rows)] = rows
        return cls(torch.from_numpy(index), torch.tensor(size, dtype=torch.int64))

    def __len__(self) -> int:
        """K, the number of devices."""
        return len(self.size)

    @property
    def mask(self) -> Tensor:
        """True where ``index`` holds a row, False on padding: bool [K, n_max]."""
        return torch.arange(self.index.shape[1], device=self.size.device) < self.size[:, None]

    @property
    def all(self) -> Tensor:
        """Row numbers of all devices, one device's after another's: int64 [n]."""
        return self.index[self.mask]

    def of(self, k: int) -> Tensor:
        """Row numbers of device ``k``: int64 [n_k]."""
        return self.index[k, : int(self.size[k])]


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows of each device: ``train`` and ``validation`` in the training set, ``test`` in the test
    set. ``validation`` is None until `with_validation` has taken some of the training rows.

    Several devices may hold the same row. Raises PartitionError where one device has a row twice,
    or trains on a validation row, and for different numbers of devices.
    """

    name: str
    train: ClientIndices
    validation: ClientIndices | None
    test: ClientIndices

    def __post_init__(self):
        held = {"train": self.train, "test": self.test}
        if self.validation is not None:
            held["validation"] = self.validation
        for kind, rows in held.items():
            if not isinstance(rows, ClientIndices):
                raise PartitionError(
                    f"{kind} rows of '{self.name}' are {_said(rows)}; make them by "
                    "ClientIndices.from_lists(...), of a list of row numbers for each device"
                )
        sizes = {kind: len(rows) for kind, rows in held.items()}
        if len({*sizes.values()}) > 1:
            raise PartitionError(f"'{self.name}' is for different numbers of devices: {sizes}")
        for kind, rows in held.items():
            _refuse_twice(self.name, f"has {kind} row {{}} twice; give each once", rows)
        both = "trains on row {}, which it has for validation too; leave it out of one of them"
        _refuse_twice(self.name, both, *self._seen)

    def __len__(self) -> int:
        """K, the number of devices."""
        return len(self.train)

    def __str__(self) -> str:
        return f"{self.name}: {self._rows()}"

    def describe(self, dataset) -> pd.DataFrame:
        """One line per device: numbers of rows, and the classes it trains on and is tested on.

        ``dataset`` is the `data.Dataset` whose labels the partition was drawn from. Columns:
        train, validation, test (rows), classes, test_classes (tuples of labels); the index is
        the device. Raises PartitionError when a row number lies outside the data set.
        """
        classes = [_classes(k, self._seen, dataset.train.y, "training") for k in range(len(self))]
        tested = [_classes(k, [self.test], dataset.test.y, "test") for k in range(len(self))]
        held = 0 if self.validation is None else self.validation.size.tolist()
        return pd.DataFrame(
            {
                "train": self.train.size.tolist(),
                "validation": held,
                "test": self.test.size.tolist(),
                "classes": classes,
                "test_classes": tested,
            },
            index=pd.RangeIndex(len(self), name="device"),
        )

    def summary(self, dataset) -> str:
        """One line, such as "100 devices, 542-676 train rows, ..., at most 2 classes each".

        It says so where a row of the training set is held by several devices, or devices are
        tested on classes that they never train on.
        """
        table = self.describe(dataset)
        text = f"{self._rows()}, at most {table.classes.map(len).max()} classes each"
        strange = sum(
            not set(b) <= set(a) for a, b in zip(table.classes, table.test_classes, strict=True)
        )
        rows = torch.cat([part.all for part in self._seen])
        if shared := int((rows.unique(return_counts=True)[1] > 1).sum()):
            text += f"; {shared} rows of the training set are held by several devices"
        if strange:
            many = "1 is" if strange == 1 else f"{strange} are"
            text += f"; {many} tested on classes they never train on"
        return text

    @property
    def _seen(self) -> list[ClientIndices]:
        """Rows of the training set."""
        return [self.train] if self.validation is None else [self.train, self.validation]

    def _rows(self) -> str:
        text = f"{len(self)} devices, {_span(self.train.size)} train rows"
        if self.validation is not None:
            text += f", {_span(self.validation.size)} validation rows"
        return text + f", {_span(self.test.size)} test rows"


def _refuse_twice(name: str, said: str, *parts: ClientIndices) -> None:
    """Raise PartitionError, as is ``said``, for a row that a device has again in ``parts``."""
    rows = torch.cat([part.index.where(part.mask, -1) for part in parts], 1).sort(1).values
    again = (rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] >= 0)
    if again.any():
        device, at = again.nonzero()[0].tolist()
        raise PartitionError(f"device {device} of '{name}' {said.format(int(rows[device, at]))}")


def _said(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {list(value.shape)}"
    return f"a {type(value).__name__}"


def _numbers(k: int, rows: ArrayLike) -> np.ndarray:
    """The row numbers of device ``k`` as int64 [n_k]."""
    found = np.asarray(rows)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        hint = "; of a mask, take numpy.flatnonzero(mask)" if found.dtype.kind == "b" else ""
        raise PartitionError(
            f"rows of device {k} are {found.dtype} of shape {list(found.shape)}; they must be "
            f"whole row numbers, one after another{hint}"
        )
    return found.astype(np.int64)


def _classes(k: int, parts: list[ClientIndices], y: Tensor, what: str) -> tuple[int, ...]:
    rows = torch.cat([rows.of(k) for rows in parts])
    if len(rows) and int(rows.max()) >= len(y):
        raise PartitionError(
            f"device {k} holds row {int(rows.max())} of a {what} set with {len(y)} rows; "
            "the partition was drawn from other data"
        )
    return tuple(y[rows].unique().tolist())


def _span(size: Tensor) -> str:
    low, high = int(size.min()), int(size.max())
    return f"{low}" if low == high else f"{low}-{high}"


def positive(**numbers: int) -> None:
    """Raise PartitionError for what is no whole number from 1."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise PartitionError(f"{name} is {value!r}; it must be a whole number of at least 1")


def checked_stream(seed: int, purpose: Purpose) -> np.random.Generator:
    """`seeds.stream`. Raises PartitionError for a seed that is no whole number from 0."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise PartitionError(f"seed is {seed!r}; it must be a whole number of at least 0")
    return stream(seed, purpose)
