"""Who holds which rows where that is known: a person, a hospital, a phone of each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lgfed_core.errors import PartitionError

from .partition import ClientIndices, Partition


def by_device(train_ids: ArrayLike, test_ids: ArrayLike) -> Partition:
    """A device for each name in ``train_ids``, in sorted order, with all rows of that name.

    train_ids [n], test_ids [m]: the device of each training and of each test row, as numbers or
    texts. Nothing is drawn, so all seeds have the same partition.

    Raises PartitionError for ids that are not one for each row, and for a device with test rows
    and none to train on.
    """
    train, test = (np.asarray(ids) for ids in (train_ids, test_ids))
    if all(isinstance(one, str) for ids in (train, test) for one in ids.flat):
        train, test = train.astype(str), test.astype(str)  # pandas has objects
    for what, ids in (("training", train), ("test", test)):
        if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iuUS":
            raise PartitionError(
                f"ids of {what} rows are {ids.dtype} of shape {list(ids.shape)}; give one number "
                "or text for each row"
            )
    names = np.unique(train)
    if len(strange := np.setdiff1d(test, names)):
        raise PartitionError(
            f"device {strange[0]} has test rows and none to train on; leave these rows out, or "
            "move some to the training set"
        )
    held = [[np.flatnonzero(ids == name) for name in names] for ids in (train, test)]
    rows = [ClientIndices.from_lists(lists) for lists in held]
    return Partition("rows by device", rows[0], None, rows[1])
