"""Many machines: runs go to the workers of a Dask cluster, their rows come back to this one.

    with Cluster("tcp://10.0.0.5:8786") as cluster:
        for errand, found in cluster.rows(next_one):
            ...

Any scheduler of Dask will do: on one's laptop, over SSH, of Slurm, of Kubernetes. A worker that
dies gives its run back to another, which goes on from the checkpoint where both see one folder
(LGFED_RUNS), and begins again where not. Rows are recorded here alone, once a run is complete.

Processes of one Dask cluster run any code for each other: give it a network of its own, or TLS,
whose certificates this side takes from Dask's own settings (`CERTIFICATES`).
"""

import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from lgfed_core.errors import LgfedError, NotAvailable, SettingsError, in_a_line
from lgfed_core.evidence import records

from .errand import Errand, rows

LOOK = 0.5  # seconds between two looks at who is there and what is done
CONNECT = 10.0  # seconds in which a scheduler must answer
CERTIFICATES = [  # environment variables of Dask, each with the path of a file
    f"DASK_DISTRIBUTED__COMM__TLS__{name}" for name in ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY")
]


class Cluster:
    """The workers behind a scheduler: its address, or the path of a scheduler file.

    Raises NotAvailable without Dask, and SettingsError where no scheduler answers, or one that
    wants TLS is asked without certificates.
    """

    def __init__(self, address: str):
        try:
            import distributed
        except ImportError:
            raise NotAvailable(
                "a cluster needs Dask's scheduler: pip install 'distributed>=2026.1'"
            ) from None
        at, file = address, Path(address)
        try:
            scheme, _, place = address.rpartition("://")
            if file.is_file():
                at = json.loads(file.read_text("utf-8"))["address"]
            elif scheme != "inproc" and not place.rpartition(":")[2].isdecimal():
                raise ValueError("it is no file, and has no port")  # Dask would try for long
            tls = distributed.Security().get_connection_args("client")["ssl_context"]
            if at.startswith("tls://") and tls is None:  # of no authority, certificate and key
                raise ValueError(f"TLS needs the files that {', '.join(CERTIFICATES)} name")
            self.client = distributed.Client(at, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise SettingsError(
                f"cluster {address!r}: no scheduler of Dask answers there ({error}); `dask "
                "scheduler` starts one and says its address"
            ) from error
        self._name = f"lgfed-{uuid.uuid4().hex[:12]}"
        self._stop = distributed.Event(self._name, client=self.client)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_) -> None:
        """What still runs is stopped; it can go on from its checkpoint."""
        with suppress(Exception):  # a scheduler that is gone has stopped all by itself
            self._stop.set()
        self.client.close(timeout=CONNECT)

    @property
    def slots(self) -> int:
        """How many runs can go on at once, now. Raises LgfedError where the scheduler is gone."""
        try:
            return sum(self.client.nthreads().values())
        except OSError as error:
            raise LgfedError(
                f"the scheduler does not answer any more ({error}); start it and say the same "
                "command again: runs go on from their checkpoints"
            ) from error

    def rows(
        self, next_one: Callable[[], Errand | None]
    ) -> Iterator[tuple[Errand, pd.DataFrame | LgfedError | None]]:
        """Each errand twice: with None as it is sent, with its rows or its error as it ends.

        next_one: asked for another when a worker is free, so that a plan can be made anew in
        between; None says that there is none as things stand. Without a worker this waits for one.
        """
        running: dict[Any, Errand] = {}
        more = True
        while running or more:
            while more and len(running) < self.slots:
                if more := (errand := next_one()) is not None:
                    name = f"{self._name}-{uuid.uuid4().hex[:8]}"
                    what = work, errand.asked(), self._name
                    running[self.client.submit(*what, key=name, pure=False)] = errand
                    yield errand, None
            time.sleep(LOOK)
            for future in [future for future in running if future.done()]:
                yield running.pop(future), self._answer(future)
                more = True

    def recorded(
        self,
        next_one: Callable[[], Errand | None],
        say: Callable[[str], None] = print,
        record: bool = True,
    ) -> Iterator[int | str]:
        """`rows`, said, and recorded here; how many there were of each errand, or why none."""
        for errand, found in self.rows(next_one):
            if record and isinstance(found, pd.DataFrame):
                try:
                    records.record(errand.experiment, found)
                except LgfedError as error:  # the others' rows may be sound
                    found = error
            if found is None:
                say(f"  {errand}: sent to one of {self.slots} workers")
            elif isinstance(found, LgfedError):
                say(f"  {errand}: left out, {found}")
                yield str(found)
            else:
                where = f" in data/results/{errand.experiment}.csv" if record else ""
                say(f"  {errand}: {len(found)} rows{where}")
                yield len(found)

    def _answer(self, future) -> pd.DataFrame | LgfedError:
        try:
            return rows(future.result(timeout=CONNECT))
        except LgfedError as error:
            return error
        except Exception as error:  # of Dask's: all workers that took it died, one lacks lgfed_core
            return LgfedError(in_a_line(error))


def work(asked: str, stop: str) -> str:
    """On a worker: run an errand in a process of its own, until it ends or ``stop`` is set."""
    import distributed

    over = distributed.Event(stop)
    command = [sys.executable, "-m", "lgfed_core.fill.errand"]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, text=True) as child,
    ):
        assert child.stdin is not None
        child.stdin.write(asked + "\n")
        child.stdin.flush()
        while child.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                child.wait(LOOK)
            if over.is_set():
                child.kill()  # a checkpoint is whole at any instant
        if child.wait():
            raise RuntimeError(f"the run ended with exit status {child.returncode}")
        out.seek(0)
        return out.read()
