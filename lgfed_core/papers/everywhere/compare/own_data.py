"""Data of yours as a task: its rows, and who holds them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from lgfed_core.data import Dataset
from lgfed_core.engine.checkpoint import digest
from lgfed_core.errors import SettingsError, in_a_line
from lgfed_core.partition import ClientIndices, Partition, with_validation

from .. import claims
from ..tasks import VALIDATION, Task
from . import source

OWN = "own"  # the name of the task
WORDS = claims.WORDS | {OWN: "your data"}
GIVE = "give a function () -> (Dataset, deal), where deal(seed) is a Partition"
LEAST = {"train": 2, "test": 1}  # rows of each device


@dataclass(frozen=True, eq=False)
class OwnTask(Task):
    """Rows of yours, each a vector; validation rows of your own are kept."""

    mixed: bool  # whether some device trains on rows of both groups
    fingerprint: str  # of your code, of the rows, and of who holds them
    files: tuple[Path, ...]  # of yours, behind it

    def partition(self, seed: int) -> Partition:
        held = self.deal(self.data.train, self.data.test, seed)
        return held if held.validation else with_validation(held, VALIDATION, seed)

    @property
    def grouped(self) -> bool:
        """Whether each row is of one of two groups."""
        return self.data.train.groups is not None


def read(given: object, seeds: Sequence[int] = (0,)) -> OwnTask:
    """The task that a function of yours makes, or one that "FILE.py:FUNCTION" names.

    Raises SettingsError for what is no such function, for groups that are not one column of 0 and
    1, and for a device that has too few rows with one of ``seeds``; DataError for rows that are not
    finite.
    """
    make: Any = source.load(given)
    if not callable(make):
        raise SettingsError(f"data is {make!r:.80}; {GIVE}")
    try:
        found = make()
    except Exception as error:  # whatever the user's code may raise
        raise SettingsError(f"the data cannot be made: {in_a_line(error)}") from error
    pair = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    data, deal = pair
    if not isinstance(data, Dataset) or not callable(deal):
        kinds = ", ".join(type(one).__name__ for one in pair)
        raise SettingsError(f"{getattr(make, '__name__', 'the function')} gives {kinds}; {GIVE}")
    data.train.refuse_broken(f"training rows of {data.name}")
    data.test.refuse_broken(f"test rows of {data.name}")
    dealt = [_dealt(data, deal, seed) for seed in seeds]
    _refuse_groups(data, [held.test for held in dealt])
    flat = (replace(part, x=part.x.flatten(1)) for part in (data.train, data.test))
    data = Dataset(data.name, *flat, data.classes)
    return OwnTask(
        data,
        lambda train, test, seed: deal(seed),
        mixed=any(_mixed(data, held.train) for held in dealt),
        fingerprint=source.fingerprint("", _contents(data, dealt[0]), [make]),
        files=tuple(source.files([make])),
    )


def _dealt(data: Dataset, deal: Callable[[int], Partition], seed: int) -> Partition:
    """Who holds which rows, with enough of them."""
    try:
        held = deal(seed)
        if not isinstance(held, Partition):
            raise SettingsError(f"it gives a {type(held).__name__}, and no Partition")
        table = held.describe(data)
    except Exception as error:  # whatever the user's code may raise
        raise SettingsError(f"deal({seed}): {in_a_line(error)}") from error
    for kind, least in LEAST.items():
        if (few := table[kind] < least).any():
            raise SettingsError(
                f"deal({seed}): device {few.idxmax()} has {table[kind][few.idxmax()]} {kind} rows "
                f"and needs {least}; leave it out"
            )
    return held


def _refuse_groups(data: Dataset, tests: Sequence[ClientIndices]) -> None:
    """What adversaries and the measures of fairness cannot read."""
    parts = {"train": data.train.groups, "test": data.test.groups}
    if all(groups is None for groups in parts.values()):
        return
    for part, groups in parts.items():
        if groups is None or groups.shape[1] != 1 or set(groups.unique().tolist()) != {0, 1}:
            kind = "none" if groups is None else f"{list(groups.shape)}, {groups.unique().tolist()}"
            raise SettingsError(
                f"groups of {part} rows are {kind}; give both parts one column of 0 and 1, or none"
            )
    for held in tests if data.classes == 2 else ():
        rows = torch.cat([held.of(k) for k in range(len(held))])
        for y, g in product((0, 1), (0, 1)):
            if not ((data.test.y[rows] == y) & (data.test.groups[rows, 0] == g)).any():
                raise SettingsError(
                    f"no test row of class {y} is of group {g}, so false alarms and misses cannot "
                    "be compared; test some, or leave out the groups"
                )


def _mixed(data: Dataset, held: ClientIndices) -> bool:
    groups = data.train.groups
    return groups is not None and any(
        len(groups[held.of(k)].unique()) > 1 for k in range(len(held))
    )


def _contents(data: Dataset, held: Partition) -> dict[str, list[str]]:
    """What a folder of runs goes by, beside the code: a file of yours may have other rows now."""
    rows = [t for part in (data.train, data.test) for t in (part.x, part.y, part.groups)]
    rows += [
        t for one in (held.train, held.validation, held.test) if one for t in (one.index, one.size)
    ]
    return {"rows": [digest(tensor) for tensor in rows if tensor is not None]}
