"""Files that are written whole or not at all."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import SettingsError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


def version(path: Path) -> tuple[Path, int, int, int]:
    """What changes with a file: when it was written, its size, its inode."""
    found = path.stat()
    return path, found.st_mtime_ns, found.st_size, found.st_ino


def named(part: Path, path: Path) -> None:
    """Give ``part`` the name ``path``, on the same disk, once its bytes are there; or OSError."""
    _synced(part)
    os.replace(part, path)
    if os.name == "posix":  # elsewhere a folder cannot be opened
        with suppress(OSError):  # nor synced on some file systems
            _synced(path.parent)


def _synced(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path, locked: bool = False) -> Iterator[Path]:
    """A place to write to; what was written takes the name ``path`` on leaving the block.

    It is in a folder of its own beside ``path``, where a library may write under other names first.
    After an error or a kill ``path`` is as it was. locked: the caller alone writes ``path``, so
    what a killed process left there is cleared away. Raises OSError as writing does.
    """
    folder = path.with_name(f".{path.name}.{'' if locked else f'{os.getpid()}.'}writing")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder / "whole"
        named(folder / "whole", path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def writable(name: str, path: str | None) -> None:
    """Raise SettingsError, before what takes minutes, where setting ``name`` cannot be written."""
    try:
        with open(path or os.devnull, "a"):
            pass
    except OSError as error:
        raise SettingsError(f"{name}: cannot write {path}: {error.strerror}") from error


_held: set[int] = set()  # handles of locks


def _let_go() -> None:
    """In a forked process: a lock is its parent's alone, and ends with it."""
    for handle in _held:
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def locked(path: Path, wait: bool | str = True) -> Iterator[None]:
    """Hold the lock on a file or folder; it ends with the process, and leaves nothing behind.

    wait: until another process lets it go; a text is said then. Raises BlockingIOError where one
    does not wait.
    """
    if fcntl is None:  # Windows, where one process at a time must write
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            if isinstance(wait, str):
                print(wait, file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        _held.add(handle)
        yield
    finally:
        _held.discard(handle)
        os.close(handle)
