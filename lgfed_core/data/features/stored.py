"""Stored features: what a frozen network said about each row of a set, ready to be learnt from.

One tensor holds all rows, so that runs which draw different test rows share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from lgfed_core.errors import DataError
from lgfed_core.files import replacing
from lgfed_core.seeds import Purpose, stream

from ..dataset import Dataset, Split

TEST = 1 / 3  # share of test rows where there is no official partition


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of one set with their labels.

    x: float32 [n, d]; y: int64 [n]; stand_in: which data take the place of the paper's, or "".
    test: the official test rows, bool [n], or None; then `test_rows` draws some, class by class of
    ``stratum`` [n], and never parts a ``group`` [n] (clips of one recording, say).
    """

    name: str
    x: Tensor
    y: Tensor
    stratum: NDArray
    group: NDArray
    test: NDArray | None = None
    stand_in: str = ""

    def __len__(self) -> int:
        return len(self.y)

    def test_rows(self, seed: int) -> NDArray:
        """Which rows are for testing, bool [n]: the official ones, or a third drawn by ``seed``."""
        if self.test is not None:
            return self.test
        return stratified(self.stratum, self.group, TEST, seed)

    def dataset(self) -> Dataset:
        """All rows as training and as test rows: partitions say which is which."""
        split = Split(self.x, self.y)
        return Dataset(self.name, split, split, classes=int(self.y.max()) + 1)


def stratified(stratum: NDArray, group: NDArray, share: float, seed: int) -> NDArray:
    """Bool [n]: about ``share`` of the rows of each stratum [n], in whole groups [n]."""
    rng, out = stream(seed, Purpose.TEST_SPLIT), np.zeros(len(stratum), dtype=bool)
    for label in np.unique(stratum):
        rows = np.flatnonzero(stratum == label)
        wanted, taken = round(share * len(rows)), 0
        for name in rng.permutation(np.unique(group[rows])):
            mine = rows[group[rows] == name]
            if taken + len(mine) <= wanted:
                out[mine] = True
                taken += len(mine)
    return out


def features(name: str, x: NDArray, y: NDArray, stratum: NDArray, **more) -> Features:
    """`Features` from arrays: x [n, d], y [n] bool or integers; by default each row is a group."""
    more.setdefault("group", np.arange(len(y)))
    y = torch.from_numpy(np.asarray(y).astype(np.int64))
    return Features(name, torch.from_numpy(np.ascontiguousarray(x)).float(), y, stratum, **more)


def save_arrays(path: Path, **arrays: NDArray) -> None:
    """Write ``arrays`` to ``path`` (.npz) as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, open(part, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def block(
    path: Path, ground: str, shape: tuple[int, int], made: Iterable[Tensor], bar: tqdm
) -> NDArray:
    """A block of features, from ``path`` or else as it is ``made``, piece by piece, and kept there.

    ground: what it is made from. Raises DataError for a file that is damaged, or made from another.
    """
    if not path.is_file():
        found = []
        for x in made:
            found.append(x.numpy())
            bar.update(len(x))
        save_arrays(path, x=np.concatenate(found), ground=np.array(ground))
    x, told = load_arrays(path, "x", "ground")
    if str(told) != ground or x.shape != shape or not np.isfinite(x).all():
        raise DataError(
            f"{path} was made from other pictures or by other weights; delete it to make it again"
        )
    return x


def load_arrays(path: Path, *names: str) -> list[NDArray]:
    """The arrays ``names`` of a file of `save_arrays`; its own checksums tell damage.

    Raises FileNotFoundError where there is no file, DataError where it is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in names]
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a reader of broken bytes may think of
        raise DataError(
            f"{path} is damaged ({error}); delete it to have it made or fetched again"
        ) from error
