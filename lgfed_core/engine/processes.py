"""What worker processes need from the machine: how many, and one thread each."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from lgfed_core.errors import SettingsError


def checked_workers(asked: int | None) -> int:
    """Processes for looped lanes: as asked, or ``LGFED_WORKERS``, or one a core.

    Forked workers need Linux; elsewhere there is one process. Raises SettingsError for a number
    below one.
    """
    text = asked if asked is not None else os.environ.get("LGFED_WORKERS", "")
    if sys.platform != "linux":
        return 1
    if text == "":
        return len(os.sched_getaffinity(0))
    if not str(text).isdecimal() or int(text) < 1:
        raise SettingsError(f"workers is {text!r}; it must be a whole number from 1")
    return int(text)


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on a single thread inside: the same bits whatever the machine's setting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
