"""Data of yours as a task: its rows, and who holds them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lgfed_core.data import Dataset
from lgfed_core.errors import PartitionError, SettingsError, in_a_line
from lgfed_core.partition import Partition, with_validation

from .. import claims
from ..tasks import VALIDATION, Task
from . import source

OWN = "own"  # the name of the task
WORDS = claims.WORDS | {OWN: "your data"}
GIVE = "give a function () -> (Dataset, deal), where deal(seed) is a Partition"


@dataclass(frozen=True, eq=False)
class OwnTask(Task):
    """Rows of yours, each a vector; validation rows of your own are kept."""

    fingerprint: str = ""
    files: tuple[Path, ...] = ()  # of yours, behind it

    def partition(self, seed: int) -> Partition:
        held = self.deal(self.data.train, self.data.test, seed)
        return held if held.validation else with_validation(held, VALIDATION, seed)


def read(given: object) -> OwnTask:
    """The task that a function of yours makes, or one that "FILE.py:FUNCTION" names.

    Raises SettingsError for what is no such function, for rows that are not finite, and for a
    device without rows to train on or to be tested on.
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
        raise SettingsError(f"{make.__name__} gives {kinds}; {GIVE}")
    data.train.refuse_broken(f"training rows of {data.name}")
    data.test.refuse_broken(f"test rows of {data.name}")
    _refuse_unfit(data, deal)
    flat = (replace(part, x=part.x.flatten(1)) for part in (data.train, data.test))
    data = Dataset(data.name, *flat, data.classes)
    code = source.fingerprint("", {}, [make]), tuple(source.files([make]))
    return OwnTask(data, lambda train, test, seed: deal(seed), *code)


def _refuse_unfit(data: Dataset, deal: Callable[[int], Partition]) -> None:
    try:
        held = deal(0)
        if not isinstance(held, Partition):
            raise SettingsError(f"deal(0) gives a {type(held).__name__}, and no Partition")
        table = held.describe(data)
    except PartitionError as error:
        raise SettingsError(f"deal(0): {error}") from error
    for kind, least in (("train", 2), ("test", 1)):
        if (few := table[kind] < least).any():
            raise SettingsError(
                f"device {few.idxmax()} has {table[kind][few.idxmax()]} {kind} rows and needs "
                f"{least}; leave it out"
            )
