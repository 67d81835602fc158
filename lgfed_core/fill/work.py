"""Work through a plan: at low priority, one task after the other, for as long as is given.

Two fills on one folder never take the same task, as a run holds the folder of its checkpoints while
it lasts. (One on a GPU trains seeds together, and may do what one on CPUs does seed by seed: give
each an experiment.) Stopped at any instant, a fill goes on where it was: the rows of each part are
recorded as it ends, and the part that was running continues from its checkpoint.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from lgfed_core import require
from lgfed_core.engine.processes import MOST
from lgfed_core.engine.provenance import provenance
from lgfed_core.errors import LgfedError, in_a_line
from lgfed_core.evidence import records
from lgfed_core.papers.experiment import place_of

from . import goals
from .cluster import Cluster
from .errand import Errand
from .ledger import Ledger
from .plan import Bundle, Planner, Task
from .words import length

LOWEST = 19  # of Unix priorities


class TimeUp(KeyboardInterrupt):
    """The hours that were given are over."""


def planner(device: str = "auto", only: str = "", elsewhere: bool = False) -> Planner:
    """A plan from the rows that are stored now, at the prices of ``device``.

    only: an experiment; nothing else is planned. elsewhere: for a cluster's workers, whose GPUs
    need not be here. Raises SettingsError for an experiment that is unknown.
    """
    if elsewhere and device == "cuda":
        name, gpu = device, True
    else:
        place = place_of(device)
        name, gpu = provenance(place)["device"], place.type != "cpu"
    ledger = Ledger(goals.pieces(only), name)
    return Planner(goals.every(ledger), ledger, lanes=gpu)


def fill(
    hours: float,
    plan: Callable[[], Planner],
    device: str = "auto",
    workers: int | None = None,
    say: Callable[[str], None] = print,
    cluster: Cluster | None = None,
) -> int:
    """Run what is worth most until the hours are over; returns how many tasks were done.

    plan: makes the plan, anew after every bundle, as rows have come. device, workers: of
    `Experiment.run`. A task that cannot run, as data are missing, memory is too small or somebody
    else runs it, is named and left out; raises LgfedError where all were, as on a full disk.

    cluster: whose workers run it, each in one process where nobody says; the plan is then made anew
    as one of them becomes free.
    """
    require.long_enough(hours)
    require.at_least(1, workers=workers)
    require.at_most(MOST, workers=workers)
    records.writable()
    end, out, found = time.monotonic() + 3600 * hours, set[str](), list[int | str]()

    def tasks() -> Iterator[Task]:
        while best := choose(plan(), _left(end), out):
            bundle, some = best
            say(f"to {bundle.step} seeds for {bundle.why[0]}:")
            for number, task in enumerate(some):
                if (left := _left(end)) < task.seconds and number:
                    break  # another bundle may have what fits
                say(f"  {task}: about {length(task.seconds)}, of {length(left)} left")
                out.add(str(task))
                yield task

    def errand() -> Errand | None:
        for task in tasks():
            what = task.experiment.name, "paper", task.protocol, task.changes, task.seeds
            return Errand(*what, device, workers or 1, kept=task.kept)
        return None

    how = dict(device=device, workers=workers)
    ran = cluster.recorded(errand, say) if cluster else _here(tasks(), say, **how)
    try:
        with _until(end):
            for one in ran:
                found.append(one)
            said = "nothing is left that could decide anything"
    except TimeUp:
        said = "time is up; what was running goes on from its checkpoint the next time"
    failed = [one for one in found if isinstance(one, str)]
    if failed:
        why = f"{len(failed)} left out, the last one as: {failed[-1]}"
        if len(failed) == len(out):
            raise LgfedError(f"nothing has run: {why}")
        said = f"{said}; {why}"
    say(said)
    return len(found) - len(failed)


def _here(tasks: Iterator[Task], say: Callable[[str], None], **how) -> Iterator[int | str]:
    """Run tasks on this machine; how many rows each has left, or why it could not run."""
    with suppress(OSError, AttributeError):  # Windows has no such priorities
        os.nice(LOWEST)
    for task in tasks:
        try:
            rows, _ = task.experiment.run(task.settings, task.seeds, kept=task.kept, **how)
        except Exception as error:  # whatever an experiment, PyTorch or the disk may raise
            why = in_a_line(error)
            say(f"  left out: {why}")
            yield why
        else:
            say(f"  {len(rows)} rows in data/results/{task.experiment.name}.csv")
            yield len(rows)


def choose(plan: Planner, left: float, out: Collection[str]) -> tuple[Bundle, list[Task]] | None:
    """The first bundle of which something can be done in ``left`` seconds, and its tasks that can,
    without those named in ``out``; where nothing fits, the first task of all, to be begun."""
    first = None
    for bundle in plan.bundles():
        if tasks := [task for task in bundle.tasks if str(task) not in out]:
            first = first or (bundle, tasks[:1])
            if fit := [task for task in tasks if task.seconds <= left]:
                return bundle, fit
    return first


def _left(end: float) -> float:
    """Seconds until ``end``. Raises TimeUp after it, as an alarm may be missing, or be lost."""
    if (left := end - time.monotonic()) <= 0:
        raise TimeUp
    return left


@contextmanager
def _until(end: float) -> Iterator[None]:
    """Raise TimeUp inside at that moment (`time.monotonic`), where the system has such alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_):
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, end - time.monotonic()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
