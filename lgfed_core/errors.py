"""Errors that say what was wrong, where, and what to do next."""

import math
import re
import sysconfig
import traceback
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path

YEAR = 8760  # hours
_LIBRARIES = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
NOT_YOURS = Path(__file__).parent, *map(Path, _LIBRARIES)  # where code of others lies


class LgfedError(Exception):
    """Base of every error this package raises on purpose."""


class DataError(LgfedError):
    """A data set is missing, damaged, or cannot be fetched."""


class NotAvailable(DataError):
    """A data set cannot be had here, and nothing is wrong with it: another may stand in."""


class PartitionError(LgfedError, ValueError):
    """The requested split of rows over devices is impossible."""


class CheckpointError(LgfedError):
    """A stored state is damaged or belongs to another run."""


class Busy(CheckpointError):
    """Another process is doing the same; nothing is wrong."""


class ResultsError(LgfedError, ValueError):
    """A results file or a row for it is malformed."""


class SettingsError(LgfedError, ValueError):
    """A setting of a run is unknown or out of range."""


class ContractError(LgfedError, AssertionError):
    """A method breaks promises that every method makes; ``broken`` has a line for each."""

    def __init__(self, message: str, broken: Iterable[str] = ()):
        super().__init__(message)
        self.broken = list(broken)


def in_a_line(error: BaseException) -> str:
    """What an error says, its kind where it is none of ours, and the line of a user's file in which
    it was raised: "KeyError: 'b' (mine.py, line 7: return memory['b'])"."""
    text = " ".join(str(error).split())
    ours = isinstance(error, LgfedError) and text
    cause = error.__cause__ if ours and error.__cause__ else error
    return (text if ours else f"{type(error).__name__}: {text or 'no message'}") + _place(cause)


def _place(error: BaseException) -> str:
    """The innermost line outside this package, Python and other libraries; a worker's, too."""
    found = [(f.filename, f.lineno, f.line) for f in traceback.extract_tb(error.__traceback__)]
    found += _FRAME.findall(str(error.__cause__ or ""))  # the text that a worker sends
    for name, number, line in reversed(found):
        path = Path(name)
        if path.suffix == ".py" and not any(path.is_relative_to(place) for place in NOT_YOURS):
            return f" ({path.name}, line {number}: {line})"
    return ""


_FRAME = re.compile(r'File "(.+)", line (\d+), in .*\n +(.+)')


def one_of(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise a SettingsError that lists the ``choices`` unless ``value`` is one of them."""
    choices = tuple(choices)
    if value not in choices:
        raise SettingsError(f"{name} {value!r} is none of {', '.join(map(str, choices))}")


def at_least(least: float, /, **settings: float | None) -> None:
    """Raise a SettingsError for settings below ``least`` or without end; None is none of them."""
    wrong = [
        f"{name} is {value!r}"
        for name, value in settings.items()
        if value is not None and not (isinstance(value, Real) and least <= value < math.inf)
    ]
    if wrong:
        raise SettingsError(f"{', '.join(wrong)}; it must be at least {least}, and finite")


def share(**settings: object) -> None:
    """Raise a SettingsError for settings that are no share: above 0, and at most 1."""
    for name, value in settings.items():
        if not isinstance(value, Real) or not 0 < value <= 1:
            raise SettingsError(f"{name} is {value!r}; it must lie in (0, 1]")


def below_one(**settings: float) -> None:
    """Raise a SettingsError for settings that do not lie from 0 to below 1."""
    for name, value in settings.items():
        if not 0 <= value < 1:
            raise SettingsError(f"{name} is {value}; it must lie in [0, 1)")


def at_most(most: int, /, **settings: float | None) -> None:
    """Raise a SettingsError for settings above ``most``, before they fill the machine; None is none
    of them."""
    wrong = {name: value for name, value in settings.items() if value is not None and value > most}
    if said := ", ".join(f"{name} is {value:,}" for name, value in wrong.items()):
        raise SettingsError(f"{said}; it must be at most {most:,}")


def long_enough(hours: float) -> None:
    """Raise a SettingsError for what is no length of time."""
    if not 0 < hours <= YEAR:
        raise SettingsError(f"hours is {hours}; it says how long to work, e.g. 2.5, up to {YEAR:,}")


def numbers(**settings: object) -> None:
    """Raise a SettingsError for the settings that are no finite numbers."""
    for name, value in settings.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
            raise SettingsError(f"{name} is {value!r}; it must be a finite number")


def whole(**settings: object) -> None:
    """Raise a SettingsError for the settings that are no whole number from 0."""
    for name, value in settings.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise SettingsError(f"{name} is {value!r}; it must be a whole number from 0")


def instance(name: str, value: object, kind: type) -> None:
    """Raise a SettingsError unless ``value`` is a ``kind``, say a method and not its class."""
    if not isinstance(value, kind):
        raise SettingsError(f"{name} is {value!r}; it must be made by {kind.__name__}(...)")
