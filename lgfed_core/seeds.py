"""Random numbers as a function of (seed, purpose, place), never of the order of execution.

Device 7's batches in round 30 are the same whether it trains alone, among ten devices, in another
process, or after a restart. Trailing zeros do not count, so a purpose has places of one length; but
for DROPOUT, where a stack of lanes has no device: a run is of one kind of lanes, never of both.

Neither method nor phase is in the tuple: with one seed, all methods see the same devices and
batches in the same round, which pairs their comparisons.
"""

from enum import IntEnum, unique

import numpy as np


@unique
class Purpose(IntEnum):
    """What the numbers are for. Values are part of a run's identity: never renumber."""

    SELECT = 1  # which devices take part in a round
    BATCHES = 2  # the order in which a device visits its rows
    AUGMENT = 3  # crops and flips of the rows it visits
    DROPOUT = 4  # seed of the noise inside a network while a device trains
    CONSENT = 5  # whether a device plays the adversarial game in a round
    PRIVACY = 6  # noise on what a device sends
    LABEL_SHARDS = 101  # partitions: one stream for each scheme
    CLASSES_PER_DEVICE = 102
    IID = 103
    DIRICHLET = 104
    VALIDATION = 105
    PROBES = 106  # rows that a probe is fitted and judged on
    SHUFFLED_CLIENTS = 107
    TEST_SPLIT = 108  # test rows of a set without an official partition
    ROTATION = 109  # angles by which pictures are turned once and for all
    CLIENTS = 110  # k-means of simulated clients, classes dealt at random
    NEWCOMERS = 111  # rows of devices that come late
    LABELS = 115  # which rows of a device keep their label
    LINEAR_TRAINING = 201  # simulated linear models: what a draw trains on,
    LINEAR_TEST = 202  # and what it is tested on


def stream(seed: int, purpose: Purpose, *place: int) -> np.random.Generator:
    """The generator of ``purpose`` at ``place`` (round, device, ...) in the run of ``seed``."""
    return np.random.default_rng((seed, int(purpose), *place))


def visits(seed: int, round: int, device: int, rows: int, epochs: int) -> np.ndarray:
    """The order in which a device visits its rows in one round -> int64 [epochs, rows].

    Each epoch is a fresh shuffle; cutting it in batches leaves a smaller last one, as a
    `DataLoader(shuffle=True)` does.
    """
    rng = stream(seed, Purpose.BATCHES, round, device)
    return np.stack([rng.permutation(rows) for _ in range(epochs)])


def draw(seed: int, round: int, *place: int) -> int:
    """A seed for PyTorch's own generator, for the dropout of a device in a round."""
    return int(stream(seed, Purpose.DROPOUT, round, *place).integers(2**63))


def coin(seed: int, round: int, device: int) -> float:
    """A number from 0 to 1 for what a device decides by chance in a round."""
    return float(stream(seed, Purpose.CONSENT, round, device).random())


def pictures(augment, seed: int, round: int, device: int, rows: int, epochs: int) -> np.ndarray:
    """How ``augment`` changes each row, in the order of `visits` -> [epochs, rows, ...]."""
    return augment.draw(stream(seed, Purpose.AUGMENT, round, device), epochs, rows)
