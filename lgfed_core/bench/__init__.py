"""How fast a federated round is, measured beside plain PyTorch loops and other frameworks.

All do the same work from the same start: a `Task` of the paper's networks on real images held in
memory. The plain loop is what one would write first: for each device a copy of the model,
`torch.optim.SGD`, and batches cut from tensors; the same loop over as many processes as we have
workers shows what the processes alone are worth. The contenders take turns, so that a busy machine
troubles all alike. After the first round they must have the same parameters up to rounding (a test
follows them for longer, in float64). Beside the times stands the arithmetic that any implementation
has to do.
"""

import json
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import pandas as pd
import torch
from tqdm.auto import tqdm

from lgfed_core import models as nets, require
from lgfed_core.engine import CPU, Federation
from lgfed_core.engine.accuracy import accuracies
from lgfed_core.engine.processes import checked_workers
from lgfed_core.engine.provenance import provenance
from lgfed_core.engine.trackers import Personal
from lgfed_core.errors import SettingsError
from lgfed_core.files import writable
from lgfed_core.methods import LGFedAvg

from . import scaling
from .apart import RIVALS, Failed, Rival
from .ours import Ours
from .plain import Plain, Spread, tested
from .task import CIFAR as CIFAR, MNIST as MNIST, TASKS, Task
from .times import Times, limits, lines_of, same, timed

MOST = 10_000  # rounds that anybody waits for


def compare(task: Task, rounds: int, against: Sequence[Rival] = ()) -> list[dict]:
    """Seconds a round of all contenders in turn; -> one line each.

    One of ``against`` that cannot do the first round is named and left out.
    """
    threads, workers = torch.get_num_threads(), checked_workers(None)
    one, two = task.federation([0]), task.federation([0, 1])
    plain = {t: f"plain loop, {t} thread{'s' * (t > 1)}" for t in sorted({1, threads})}
    many = f"{workers} process{'es' * (workers > 1)}"
    ours = f"lgfed, {workers} workers"
    times: Times = {}
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        seats = [((who, 1), t, Plain(one, task)) for t, who in plain.items()]
        seats.append(((f"plain loop, {many}", 1), threads, Spread(one, task, workers)))
        seats += [
            ((f"{rival.name}, {many}", 1), threads, rival.seat(one, task, workers))
            for rival in against
        ]
        seats.append(((ours, 1), threads, Ours(one, task)))
        seats.append(((f"{ours}, two seeds", 2), threads, Ours(two, task)))
        for *_, contender in seats:
            stack.enter_context(closing(contender))
        for number in tqdm(range(rounds + 1), task.name, leave=False):  # the first warms up
            # In the first round last to first: beside a GPU workers cannot be made any more once a
            # plain loop has taken a gradient here.
            for seat in list(seats if number else reversed(seats)):
                who, t, contender = seat
                torch.set_num_threads(t)
                try:
                    timed(times, who, contender.round, number)
                except Failed as error:
                    if number:
                        raise
                    print(f"{who[0]}, is left out: it does not start here.\n{error}")
                    seats.remove(seat)
            if number == 0:
                for (who, _), _, contender in seats:
                    same(seats[0][2].parameters(), contender.parameters(), f"{task.name}, {who}")
    loops = [(who, 1) for who in plain.values()]
    return lines_of(task, times | _evaluation(task, one, rounds), loops)


def _compared(*what) -> list[dict]:
    """`compare`, beside a GPU in a process of its own, as this one could make no workers for the
    next task."""
    if not torch.cuda.is_available():
        return compare(*what)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(compare, *what).result()


def on_gpu(task: Task, rounds: int, place: torch.device) -> list[dict]:
    """Ten seeds in one stack beside the same ten one after the other, by ours and by a plain loop.

    All of them read one copy of the rows.
    """
    times: Times = {}
    fed = task.federation(list(range(10)), place)
    rows = fed.rows()
    fed = replace(fed, data=replace(fed.data, train=rows["train"][0], test=rows["test"][0]))
    each = [replace(fed, partitions=[fed.partitions[s]], seeds=[s]) for s in fed.seeds]
    ours, loop = ((f"{who}, GPU, ten seeds in turn", 10) for who in ("lgfed", "plain loop"))
    together = Ours(fed, task)
    singles, plain = ([kind(one, task) for one in each] for kind in (Ours, Plain))
    for number in tqdm(range(rounds + 1), f"{task.name}, GPU", leave=False):
        timed(times, ("lgfed, GPU, ten seeds at once", 10), together.round, number)
        for who, some in ((ours, singles), (loop, plain)):
            timed(times, who, lambda n=number, some=some: [one.round(n) for one in some])
        if number == 0:
            for seed in fed.seeds:
                for one in (singles[seed], plain[seed]):
                    same(one.parameters(), together.parameters(seed), task.name)
    return lines_of(task, times, [loop])


def _evaluation(task: Task, federation: Federation, rounds: int) -> Times:
    """Seconds to test each device's own model on its test rows, by a loop and by ours, in turn.

    Raises LgfedError where the two find other accuracies.
    """
    layers = nets.last_layers(federation.net, 2)
    times: Times = {}
    what = f"testing {federation.clients} personal models"
    with closing(Ours(federation, task, LGFedAvg(layers=layers), Personal("test"))) as ours:
        models = ours.models()
        for _ in range(rounds + 1):
            plain = timed(times, (f"plain loop, {what}", 0), tested, federation, models)
            found = timed(
                times, (f"lgfed, {what}", 0), accuracies, ours.engine, "shared", "personal", "test"
            )
    same(plain, found[0], f"{task.name}, {what}")
    return times


def main(
    rounds: int,
    path: str | None,
    against: Sequence[str] = (),
    tasks: Sequence[str] = ("mnist", "cifar10"),
) -> int:
    """Print the comparison of ``tasks``, keys of `TASKS`; write it to ``path`` as JSON if given.

    ``against``: keys of `RIVALS`; those that are not installed are named and left out.
    """
    require.at_least(1, rounds=rounds)
    require.at_most(MOST, rounds=rounds)
    if not tasks:
        raise SettingsError(f"tasks names nothing to measure; choose from {', '.join(TASKS)}")
    for name in against:
        require.one_of("against", name, RIVALS)
    for name in tasks:
        require.one_of("tasks", name, TASKS)
    writable("json", path)
    absent = {name: words for name in dict.fromkeys(against) if (words := RIVALS[name].missing())}
    for words in absent.values():
        print(words)
    rivals = [RIVALS[name] for name in dict.fromkeys(against) if name not in absent]
    gpu, lines, bounds = torch.cuda.is_available(), [], []
    place = torch.device("cuda") if gpu else CPU
    where = provenance(place)
    for name, device in [(n, CPU) for n in tasks] + [(n, place) for n in tasks if gpu]:
        if device.type == "cuda":
            found = on_gpu(TASKS[name], rounds, device)
        else:
            found = _compared(TASKS[name], rounds, rivals)
        bounds.append(limits(TASKS[name], device))
        lines += found
        _write(path, {"provenance": where, "times": lines, "limits": bounds})  # as it goes
    print(", ".join(f"{k} {v}" for k, v in where.items()))
    print(pd.DataFrame(lines).to_string(index=False, float_format="{:.3f}".format))
    print("\nWork of one round, and the least time it can take on this machine:")
    print(pd.DataFrame(bounds).T.to_string(header=False, float_format="{:.3f}".format))
    return 0


def scale_up(path: str | None) -> int:
    """Print how a round grows (`scaling.curves`); write it to ``path`` as JSON if given."""
    writable("json", path)
    found, where = scaling.curves(), provenance(CPU)
    print(", ".join(f"{k} {v}" for k, v in where.items()))
    print(pd.DataFrame(found).to_string(index=False, float_format="{:.4f}".format))
    _write(path, {"provenance": where, "points": found})
    return 0


def _write(path: str | None, found: dict) -> None:
    if path:
        with open(path, "w") as file:
            json.dump(found, file, indent=1)
