"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: Path, locked: bool = False) -> Iterator[Path]:
    """A place beside ``path`` to write to; what was written takes its name on leaving the block.

    After an error or a kill ``path`` is as it was. locked: the caller alone writes ``path``, so
    what a killed process left there is overwritten. Raises OSError as writing does.
    """
    part = path.with_name(f".{path.name}.{'' if locked else f'{os.getpid()}.'}part")
    try:
        yield part
        with open(part, "rb") as written:
            os.fsync(written.fileno())  # on disk before the name changes
        os.replace(part, path)
    finally:
        with suppress(OSError):  # a folder that cannot be written has been named already
            part.unlink(missing_ok=True)


_held: set[int] = set()  # handles of locks


def _let_go() -> None:
    """In a forked process: a lock is its parent's alone, and ends with it."""
    for handle in _held:
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock on a file or folder; it ends with the process, and leaves nothing behind.

    Raises BlockingIOError where another process has it and one does not ``wait``.
    """
    if fcntl is None:  # Windows, where one process at a time must write
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        _held.add(handle)
        yield
    finally:
        _held.discard(handle)
        os.close(handle)
