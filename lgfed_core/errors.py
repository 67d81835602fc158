"""Errors that say what was wrong, where, and what to do next."""

import re
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

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
