"""Worker processes: how many, one thread each, and jobs that are spread over them."""

import ctypes
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from functools import cache

import numpy as np
import torch
from torch import Tensor

from lgfed_core.errors import LgfedError, SettingsError

MOST = 1000  # workers that anybody can mean


def checked_workers(asked: int | None, jobs: int | None = None) -> int:
    """Processes for looped lanes: as asked, or ``LGFED_WORKERS``, or one a core; never more than
    there are cores or ``jobs``, and a line says so where more were asked for.

    Forked workers need Linux; elsewhere there is one process. Raises SettingsError for a number
    below one or above `MOST`.
    """
    name, text = "workers", str(asked)
    if asked is None:
        name, text = "LGFED_WORKERS", os.environ.get("LGFED_WORKERS", "")
    if text and not (text.isdecimal() and int(text[:9]) > 0):
        said = repr(text) if asked is None else repr(asked)
        raise SettingsError(f"{name} is {said}; it must be a whole number from 1")
    if text and int(text[:9]) > MOST:
        raise SettingsError(
            f"{name} is {text:.20}; it must be at most {MOST:,}, and more than one a core bring "
            "nothing: leave it out, and there is one for each"
        )
    if sys.platform != "linux":
        return 1
    cores = len(os.sched_getaffinity(0))
    found = min(int(text or cores), cores, jobs or cores)
    if text and int(text) > found:
        _tell(name, int(text), cores, jobs if found < cores else None)
    return found


@cache
def _tell(name: str, asked: int, cores: int, jobs: int | None) -> None:
    """Say once that fewer processes do it."""
    many, one, more = (cores, "core", "cores") if jobs is None else (jobs, "model", "models")
    there = f"there is 1 {one}" if many == 1 else f"there are {many} {more}"
    print(f"{name} is {asked}, and {there}: no more processes are started", file=sys.stderr)


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on a single thread inside: the same bits whatever the machine's setting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


UNFORKED = "fork-based multiprocessing"  # of what PyTorch says; see `Spread`


class Spread:
    """Calls methods of its own for each of many jobs: in this process, or in forked ``workers``.

    Workers inherit all that it holds as the first jobs are spread, and find a method by its name.
    Tensors that change later, on either side, lie in shared memory. Beside a GPU, a process that
    has taken a gradient itself, on whatever device, has threads which a fork leaves behind: its
    workers can take none, and the jobs are done here.
    """

    def __init__(self, workers: int):
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _map(self, function: Callable, jobs: list, chunk: int) -> list:
        if self.workers > 1:
            try:
                return self._spread(function, jobs, chunk)
            except BrokenProcessPool as error:
                raise LgfedError(
                    "a worker process died (out of memory?); run the same command again to "
                    "continue, with LGFED_WORKERS=1 to need less memory"
                ) from error
            except RuntimeError as error:
                if UNFORKED not in str(error):
                    raise
            warnings.warn(
                "PyTorch has taken a gradient in this process, beside a GPU, and its workers can "
                "take none: one process does it all. Run it in a process of its own, as `python "
                "-m lgfed_core run` does, to use every core",
                RuntimeWarning,
                stacklevel=2,
            )
            self.close()
            self.workers = 1
        with one_thread(), torch.random.fork_rng(devices=[]):
            return [function(*job) for job in jobs]

    def _spread(self, function: Callable, jobs: list, chunk: int) -> list:
        if self._pool is None:
            context = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(self.workers, context, _start, (self, os.getpid()))
        calls = [(function.__name__, job) for job in jobs]
        with warnings.catch_warnings():  # Python 3.12 warns of fork beside threads; see _start
            warnings.simplefilter("ignore", DeprecationWarning)
            found = list(self._pool.map(_call, calls, chunksize=chunk))
        return [torch.from_numpy(f) if isinstance(f, np.ndarray) else f for f in found]


class Apart(Spread):
    """A call beside a GPU: made in a forked process, as a gradient that is taken in this one leaves
    no worker able to take any. What fails there is called here, and raises what it raises.
    """

    def __init__(self, function: Callable[[], None]):
        super().__init__(workers=1)
        self.function = function

    def call(self) -> None:
        """The call; without a GPU it is simply made."""
        if torch.accelerator.is_available():
            with closing(self), suppress(Exception):
                self._spread(self._call, [()], 1)
                return
        self.function()

    def _call(self) -> None:
        self.function()


# In a worker: what it inherited. The parent forks as PyTorch's DataLoader does, and for the
# same reason: the data and every tensor below are simply there. One thread per worker keeps
# OpenMP from looking for threads that fork did not copy.
_inherited: Spread


def _start(inherited: Spread, parent: int) -> None:
    global _inherited
    _inherited = inherited
    _inherited.workers = 1
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: never outlive the parent
    if os.getppid() != parent:
        os._exit(1)


def _call(call: tuple) -> object:
    """A job's result; tensors as arrays, as each tensor would hold a file of the parent's open."""
    name, job = call
    found = getattr(_inherited, name)(*job)
    return found.numpy() if isinstance(found, Tensor) else found
