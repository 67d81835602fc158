"""How a round grows: with the devices in it, with the devices in all, with the seeds at once.

A small network (64 -> 128 -> 10) on rows of random numbers: what a round takes beside the steps
themselves is what shows here. Each point is a process of its own, so that its memory is its own.
"""

import resource
import statistics
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context

import torch
from torch import nn
from tqdm.auto import tqdm

from lgfed_core.data import Dataset, Split
from lgfed_core.engine import Federation, LocalTraining, Participation
from lgfed_core.methods import LGFedAvg
from lgfed_core.models import make
from lgfed_core.partition import ClientIndices, Partition

from .ours import Ours
from .task import Task
from .times import Times, timed

ROWS, BATCH = 10, 5  # of a device
AXES = {  # what grows -> points (devices, devices in a round, seeds at once)
    "devices in a round": [(1000, m, 1) for m in (1, 10, 100, 1000)],
    "devices in all": [(k, 10, 1) for k in (100, 1000, 10_000, 100_000)],
    "seeds at once": [(100, 10, n) for n in (1, 3, 10, 30)],
}


def small() -> nn.Module:
    """64 -> 128 -> 10: the first layer, 8,320 parameters, is each device's own."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def federation(devices: int, cohort: int, seeds: int) -> Federation:
    """Devices with `ROWS` random rows each; a test row each."""
    x = torch.randn(devices * ROWS, 64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(len(x)) % 10
    data = Dataset("random", Split(x, y), Split(x[:devices], y[:devices]), 10)
    train, test = (
        ClientIndices(torch.arange(devices * n).view(devices, n), torch.full((devices,), n))
        for n in (ROWS, 1)
    )
    parts, who = [Partition("even", train, None, test)] * seeds, Participation(cohort / devices)
    return Federation(data, parts, make(small, 0), [*range(seeds)], participation=who)


def point(devices: int, cohort: int, seeds: int, rounds: int = 5) -> dict:
    """Seconds a round of LG-FedAvg (median, least, most), and the most memory that this process or
    one of its workers has held, in bytes."""
    task, times = Task("scaling", "", small, LocalTraining(0.01, BATCH), devices), Times()
    method = LGFedAvg(layers=frozenset({"2.weight", "2.bias"}))
    with closing(Ours(federation(devices, cohort, seeds), task, method)) as ours:
        for number in range(rounds + 1):
            timed(times, ("", seeds), ours.round, number)
    seconds = next(iter(times.values()))[1:]
    everybody = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    used = [resource.getrusage(who).ru_maxrss for who in everybody]
    return {
        **dict(devices=devices, cohort=cohort, seeds=seeds, steps=cohort * seeds * ROWS // BATCH),
        **dict(median_s=statistics.median(seconds), min_s=min(seconds), max_s=max(seconds)),
        "memory": 1024 * max(used),
    }


def curves() -> list[dict]:
    """`point` of every point of `AXES`, each in its own process, with ``axis``."""
    points = [(axis, *at) for axis, some in AXES.items() for at in some]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return [
            {"axis": axis, **pool.submit(point, *at).result()}
            for axis, *at in tqdm(points, "scaling")
        ]
