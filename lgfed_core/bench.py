"""How fast a federated round is, measured beside a plain PyTorch loop in one process group.

Both sides do the same work from the same start: 100 devices, 10 a round, one epoch each, the
paper's networks on real images held in memory. The plain loop is what one would write first: for
each device a copy of the model, `torch.optim.SGD`, and batches cut from tensors. The contenders
take turns, so that a busy machine troubles all alike. After the first round they must have the same
parameters up to rounding (a test follows them for longer, in float64). Beside the times stands the
arithmetic that any implementation has to do.
"""

import copy
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm

from . import data, models as nets, partition
from .engine import CPU, Federation, LocalTraining, Participation
from .engine.accuracy import accuracies
from .engine.batched import Batched
from .engine.federation import prepare, round_of
from .engine.looped import Looped
from .engine.processes import checked_workers
from .engine.provenance import provenance
from .engine.trackers import Personal, Tracker
from .errors import LgfedError, SettingsError, at_least
from .methods import FedAvg, LGFedAvg
from .models.layout import joined
from .seeds import Purpose, stream, visits

Times = dict[tuple[str, int], list[float]]  # (who, seeds trained at once) -> seconds a round


@dataclass(frozen=True)
class Task:
    """One of the two settings of the papers."""

    name: str
    dataset: str
    net: Callable
    training: LocalTraining
    flops_per_row: int  # multiply-adds count as two; forward and backward

    def federation(self, seeds: list[int], device: torch.device = CPU) -> Federation:
        images = data.load(self.dataset)
        labels = images.train.y, images.test.y
        splits = [partition.classes_per_device(*labels, 100, 2, seed) for seed in seeds]
        net = nets.make(self.net, 0)
        return Federation(images, splits, net, seeds, device, Participation(0.1))


# Forward 2 operations a weight and row, backward twice that, less the gradient of the input.
MNIST = Task(
    "MNIST MLP, B=10", "mnist", nets.mlp_mnist, LocalTraining(0.05, 10), 2 * (3 * 632_064 - 401_408)
)
# conv1 28x28 places x 450 weights, conv2 10x10 x 2,400, then the three linear layers.
CIFAR = Task(
    "CIFAR-10 CNN, B=50",
    "cifar10",
    nets.cnn_cifar,
    LocalTraining(0.1, 50),
    2 * (3 * (352_800 + 240_000 + 61_000) - 352_800),
)


class Ours:
    """The engine, timed per round; workers stay alive between rounds as they do in a run."""

    def __init__(self, federation: Federation, task: Task, method=None, tracker=None, workers=None):
        workers = workers or checked_workers(None)
        self.federation, self.tracker = federation, tracker or Tracker()
        start = joined(federation.net).expand(len(federation.seeds), -1)
        method = method or FedAvg()
        self.phase = prepare(federation, method, task.training, start, self.tracker, workers > 1)
        looped = federation.device.type == "cpu"
        self.engine = Looped(self.phase, workers) if looped else Batched(self.phase)

    def round(self, number: int) -> None:
        lr = self.phase.training.lr
        stopped = self.tracker.stopped(self.phase)
        round_of(self.federation, stopped, self.phase, self.engine, number, lr)


class Plain:
    """A loop over devices as one writes it first: deep copies, torch.optim.SGD, averaging."""

    def __init__(self, federation: Federation, task: Task):
        self.federation, self.task = federation, task
        self.model = copy.deepcopy(federation.net)
        self.rows = federation.partitions[0].train

    def round(self, number: int) -> None:
        cfg, split, seed = self.task.training, self.federation.data.train, self.federation.seeds[0]
        chosen = self.federation.participation.chosen(stream(seed, Purpose.SELECT, number), 100)
        models, sizes = [], []
        for k in chosen.tolist():
            model = copy.deepcopy(self.model)
            optimiser = torch.optim.SGD(model.parameters(), cfg.lr, cfg.momentum)
            mine = self.rows.of(k)
            order = torch.from_numpy(visits(seed, number, k, len(mine), 1)[0])
            for at in mine[order].split(cfg.batch_size):
                loss = F.cross_entropy(model(split.x[at]), split.y[at])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            models.append(dict(model.named_parameters()))
            sizes.append(len(mine))
        weights = torch.tensor(sizes) / sum(sizes)
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(sum(w * m[name] for w, m in zip(weights, models, strict=True)))


def compare(task: Task, rounds: int) -> list[dict]:
    """Seconds a round of both sides in turn; -> one line per contender."""
    threads = torch.get_num_threads()
    one, two = task.federation([0]), task.federation([0, 1])
    plain = {t: Plain(one, task) for t in sorted({1, threads})}
    ours, pair = Ours(one, task), Ours(two, task)
    times: Times = {}
    try:
        for number in tqdm(range(rounds + 1), task.name, leave=False):  # the first warms up
            for t, loop in plain.items():
                torch.set_num_threads(t)
                who = f"plain loop, {t} thread{'s' * (t > 1)}"
                _timed(times, (who, 1), loop.round, number)
            torch.set_num_threads(threads)
            who = f"lgfed, {ours.engine.workers} workers"
            _timed(times, (who, 1), ours.round, number)
            _timed(times, (f"{who}, two seeds", 2), pair.round, number)
            if number == 0:
                for loop in plain.values():
                    _same(joined(loop.model), ours, task)
                    _same(joined(loop.model), pair, task)
    finally:
        torch.set_num_threads(threads)
        ours.engine.close()
        pair.engine.close()
    evaluation = _evaluation(task, one, rounds)
    lines = _lines(task, times | evaluation)
    best = min(x["median_s"] for x in lines if x["who"].startswith("plain"))
    return [x | {"plain_over_this": best / x["median_s"]} for x in lines]


def on_gpu(task: Task, rounds: int) -> list[dict]:
    """Ten seeds in one stack beside the same ten one after the other."""
    times: Times = {}
    place = torch.device("cuda")
    together = Ours(task.federation(list(range(10)), place), task)
    singles = [Ours(task.federation([seed], place), task) for seed in range(10)]
    for number in tqdm(range(rounds + 1), f"{task.name}, GPU", leave=False):
        _timed(times, ("lgfed, GPU, ten seeds at once", 10), together.round, number)
        _timed(
            times,
            ("lgfed, GPU, ten seeds in turn", 10),
            lambda n=number: [one.round(n) for one in singles],
        )
        if number == 0:
            for seed, one in enumerate(singles):
                _same(one.phase.tensors["shared"][0], together, task, seed)
    lines = _lines(task, times)
    turn = lines[-1]["median_s"]
    return [x | {"plain_over_this": turn / x["median_s"]} for x in lines]


def _evaluation(task: Task, federation: Federation, rounds: int) -> Times:
    """Seconds to test 100 personal models on their own test rows."""
    layers = nets.last_layers(federation.net, 2)
    ours = Ours(federation, task, LGFedAvg(layers=layers), Personal("test"))
    times: Times = {}
    try:
        for _ in range(rounds + 1):
            _timed(
                times,
                ("lgfed, testing 100 personal models", 0),
                accuracies,
                ours.engine,
                "shared",
                "personal",
                "test",
            )
    finally:
        ours.engine.close()
    return times


def limits(task: Task, device: torch.device) -> dict:
    """Arithmetic and memory traffic of one round of 10 devices, and what this machine can do.

    Products are PyTorch's, which on some processors take a slow path; NumPy's stand beside them.

    Bytes: each step reads the weights forward and backward, writes the gradient, and SGD with
    momentum reads weight, gradient and momentum and writes two of them: 8 passes over P floats
    (where a device's parameters stay in cache, this is cache traffic).
    """
    rows, size = 600 if task.dataset == "mnist" else 500, joined(task.net()).numel()
    steps = 10 * -(-rows // task.training.batch_size)
    a = torch.randn(1024, 1024, device=device)
    gemm = _best(lambda: a @ a)
    there = np.ones((1024, 1024), np.float32)
    other = _best(lambda: there @ there) if device.type == "cpu" else math.nan
    big = torch.empty(64 * 1024 * 1024, device=device)
    copy_s = _best(lambda: big[: big.numel() // 2].copy_(big[big.numel() // 2 :]))
    flops, nbytes = 10 * rows * task.flops_per_row, steps * 8 * 4 * size
    peak, bandwidth = 2 * 1024**3 / gemm, 4 * big.numel() / copy_s
    return {
        "task": task.name,
        "device": device.type,
        "gflop": flops / 1e9,
        "gbyte": nbytes / 1e9,
        "gflop_per_s_of_this_machine": peak / 1e9,
        "gflop_per_s_of_numpy_here": 2 * 1024**3 / other / 1e9,
        "gbyte_per_s_of_this_machine": bandwidth / 1e9,
        "seconds_at_least_arithmetic": flops / peak,
        "seconds_memory": nbytes / bandwidth,
    }


def main(rounds: int, path: str | None) -> int:
    """Print the comparison of both tasks; write it to ``path`` as JSON if given."""
    at_least(1, rounds=rounds)
    try:
        with open(path or os.devnull, "a"):  # before the minutes that the timing takes
            pass
    except OSError as error:
        raise SettingsError(f"json: cannot write {path}: {error.strerror}") from error
    lines, bounds = [], []
    for task in (MNIST, CIFAR):
        sides = [(CPU, compare)]
        if torch.cuda.is_available():
            sides.append((torch.device("cuda"), on_gpu))
        for device, measure in sides:
            bounds.append(limits(task, device))
            least = bounds[-1]["seconds_at_least_arithmetic"]
            lines += [
                line | {"share_of_arithmetic": line["seeds"] * least / line["median_s"]}
                for line in measure(task, rounds)
            ]
    where = provenance(sides[-1][0])
    print(", ".join(f"{k} {v}" for k, v in where.items()))
    print(pd.DataFrame(lines).to_string(index=False, float_format="{:.3f}".format))
    print("\nWork of one round, and the least time it can take on this machine:")
    print(pd.DataFrame(bounds).T.to_string(header=False, float_format="{:.3f}".format))
    if path:
        with open(path, "w") as file:
            json.dump({"provenance": where, "times": lines, "limits": bounds}, file, indent=1)
    return 0


def _timed(times: Times, who: tuple[str, int], function: Callable, *args) -> None:
    began = time.perf_counter()
    function(*args)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    times.setdefault(who, []).append(time.perf_counter() - began)


def _lines(task: Task, times: Times) -> list[dict]:
    """One line per contender; its first time was the warm-up."""
    return [
        {
            "task": task.name,
            "who": who,
            "seeds": seeds,
            "median_s": statistics.median(s[1:]),
            "min_s": min(s[1:]),
            "max_s": max(s[1:]),
            "rounds_per_s": 1 / statistics.median(s[1:]),
        }
        for (who, seeds), s in times.items()
    ]


def _same(plain: Tensor, ours: Ours, task: Task, run: int = 0) -> None:
    """Raise unless both are equal up to rounding; later rounds amplify the rounding of float32."""
    gap = (plain.detach() - ours.phase.tensors["shared"][run]).abs().max().item()
    if not gap < 1e-3:
        raise LgfedError(f"{task.name}: the two loops differ by {gap:.1e}; they must agree")


def _best(function: Callable) -> float:
    times: Times = {}
    for _ in range(5):
        _timed(times, ("", 0), function)
    return min(times["", 0])
