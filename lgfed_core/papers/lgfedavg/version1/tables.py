"""Version 1's stored numbers by seed, and test rows of classes that a device does not hold."""

import numpy as np
import pandas as pd

from lgfed_core import partition
from lgfed_core.data import Dataset
from lgfed_core.evidence.records import select


def strangers(images: Dataset, devices: int, seed: int) -> np.ndarray:
    """The share of each device's test rows, in percent, whose class it has no training row of: [K].

    Version 1 deals the shard numbers of the label-sorted training set to the test set as well.
    """
    split = partition.label_shards(images.train.y, images.test.y, devices, 2, seed)
    shares = []
    for k in range(devices):
        held, asked = images.train.y[split.train.of(k)], images.test.y[split.test.of(k)]  # [n], [t]
        shares.append(100 * (asked[:, None] != held.unique()).all(1).float().mean().item())
    return np.array(shares)


def values_of(stored, table, data, metric, method, selection="best_val") -> pd.Series:
    """One number of every seed at paper scale, index seed; empty while nothing has run."""
    where = dict(scale="paper", protocol="as_described", selection=selection)
    stored = select(stored, table=table, dataset=data, metric=metric, method=method, **where)
    return stored.set_index("seed")["value"].astype(float).sort_index()
