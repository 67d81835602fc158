"""How a round grows: with the devices in it, with the devices in all, with the seeds at once.

A small network (64 -> 128 -> 10) on rows of random numbers: what a round takes beside the steps
themselves is what shows here. Each point is a process of its own, so that its memory is its own.
"""

import json
import resource
import statistics
import subprocess
import sys
from contextlib import closing

import torch
from torch import nn
from tqdm.auto import tqdm

from lgfed_core.data import Dataset, Split
from lgfed_core.engine import Federation, LocalTraining, Participation
from lgfed_core.errors import LgfedError
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


class Small(nn.Module):
    """64 -> 128 -> 10: the first layer, 8,320 parameters, is each device's own."""

    layers = ("own", "common")

    def __init__(self):
        super().__init__()
        self.own, self.common = nn.Linear(64, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.common(self.own(x).relu())


def federation(devices: int, cohort: int, seeds: int) -> Federation:
    """Devices with `ROWS` random rows each; a test row each."""
    x = torch.randn(devices * ROWS, 64, generator=torch.Generator().manual_seed(0))
    train, test = (
        Split(x, torch.arange(len(x)) % 10),
        Split(x[:devices], torch.arange(devices) % 10),
    )
    rows, one = (
        ClientIndices(torch.arange(devices * n).reshape(devices, n), torch.full((devices,), n))
        for n in (ROWS, 1)
    )
    parts = [Partition("even", train=rows, validation=None, test=one)] * seeds
    who = Participation(cohort / devices)
    data, net = Dataset("random", train, test, 10), make(Small, 0)
    return Federation(data, parts, net, [*range(seeds)], participation=who)


def point(devices: int, cohort: int, seeds: int, rounds: int = 5) -> dict:
    """Seconds a round of LG-FedAvg (median, least, most), and the most memory that this process or
    one of its workers has held, in bytes."""
    net = Small()
    layers = frozenset(f"common.{name}" for name, _ in net.common.named_parameters())
    task = Task("scaling", "", Small, LocalTraining(0.01, BATCH), 0, devices)
    times: Times = {}
    with closing(Ours(federation(devices, cohort, seeds), task, LGFedAvg(layers=layers))) as ours:
        for number in range(rounds + 1):
            timed(times, ("", seeds), ours.round, number)
    seconds = next(iter(times.values()))[1:]
    used = [
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return {
        **dict(devices=devices, cohort=cohort, seeds=seeds, steps=cohort * seeds * ROWS // BATCH),
        **dict(median_s=statistics.median(seconds), min_s=min(seconds), max_s=max(seconds)),
        "memory": 1024 * max(used),
    }


def curves() -> list[dict]:
    """`point` of every point of `AXES`, each in its own process, with ``axis``."""
    found = []
    points = [(axis, *at) for axis, some in AXES.items() for at in some]
    for axis, *at in tqdm(points, "scaling"):
        asked = [sys.executable, "-m", __name__, *map(str, at)]
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        if said.returncode:
            raise LgfedError(f"{axis}, {at}: the process ended\n{said.stderr}")
        found.append({"axis": axis, **json.loads(said.stdout)})
    return found


if __name__ == "__main__":
    print(json.dumps(point(*map(int, sys.argv[1:]))))
