"""What worker processes need from the machine: how many, one thread each, memory in common."""

import math
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

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


def common(*shape: int) -> Tensor:
    """A float32 tensor of zeros in anonymous memory that forked workers share, not copy."""
    count = math.prod(shape)
    if count == 0:
        return torch.zeros(*shape)
    memory = mmap.mmap(-1, 4 * count)  # backed by no file, so no limit of /dev/shm
    return torch.frombuffer(memory, dtype=torch.float32).view(shape)
