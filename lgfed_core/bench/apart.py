"""A framework as a contender: in processes of its own, told by a pipe when a round begins.

So none meets the threads, the start methods or the global settings of another. What it is `Given`
lies in a file. A framework's module has one function, ``play(path, workers, orders)``: it trains a
round for each number that ``orders(parameters)`` yields, and is through with it when it asks for
the next.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lgfed_core.engine import Federation, LocalTraining, Participation
from lgfed_core.errors import LgfedError
from lgfed_core.flower.loopback import free_port
from lgfed_core.partition import ClientIndices

from .plain import Given
from .task import Task

PATIENCE = 600.0  # seconds for one round, the first with all that has to start
CHILD = "import sys; from lgfed_core.bench import apart; apart.play(*sys.argv[1:])"
GIVEN = "given.safetensors"
QUIET = {
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    **{"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"},
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(frozen=True)
class Rival:
    """A framework, what it needs and what installs that; with ``ranks``, started once a worker."""

    name: str
    packages: tuple[str, ...]
    install: str
    module: str
    ranks: bool = False

    def missing(self) -> str | None:
        """What is to be installed for it, in words."""
        absent = [package for package in self.packages if find_spec(package) is None]
        if not absent:
            return None
        what = f"{' and '.join(absent)} not installed; python -m pip install {self.install}"
        return f"{self.name} is left out: {what}"

    def seat(self, federation: Federation, task: Task, workers: int) -> "Apart":
        """The framework as a contender."""
        return Apart(self.module, federation, task, workers, self.ranks)


RIVALS = {
    "flower": Rival(
        "Flower",
        ("flwr", "ray"),
        "--constraint constraints.txt --editable '.[bench]'",
        "lgfed_core.bench.flower",
    ),
    "pfl": Rival("pfl-research", ("pfl",), "pfl", "lgfed_core.bench.pfl", ranks=True),
}


def write(path: Path, federation: Federation, task: Task) -> None:
    """Leave what is given of ``federation`` at ``path``."""
    mine = Given.of(federation, task)
    tensors = {f"net.{name}": value for name, value in mine.net.state_dict().items()}
    x = mine.x.movedim(1, -1).contiguous()  # as pictures lie in memory
    tensors |= {"x": x, "y": mine.y, "index": mine.rows.index, "size": mine.rows.size}
    words = {
        "net": [task.net.__module__, task.net.__qualname__],  # a class or a function
        "training": asdict(task.training),
        "fraction": mine.participation.fraction,
        "seed": mine.seed,
    }
    save_file(tensors, path, {"given": json.dumps(words)})


@cache
def read(path: str) -> Given:
    """What `write` left at ``path``, read once in a process; rows are mapped from the disk."""
    with safe_open(path, "pt") as file:
        words = json.loads(file.metadata()["given"])
    tensors, (module, name) = load_file(path), words["net"]
    net: nn.Module = getattr(import_module(module), name)()
    net.load_state_dict({n: tensors[f"net.{n}"] for n in net.state_dict()})
    rows = ClientIndices(tensors["index"], tensors["size"])
    training, who = LocalTraining(**words["training"]), Participation(words["fraction"])
    x, y = tensors["x"].movedim(-1, 1), tensors["y"]
    return Given(x, y, net, rows, training, who, words["seed"])


class Failed(LgfedError):
    """A framework has ended or hangs; with what it has said."""


class Apart:
    """``module`` (dotted) as a contender; with ``ranks``, in as many processes as workers.

    Raises `Failed` where it ends or hangs.
    """

    def __init__(self, module: str, federation: Federation, task: Task, workers: int, ranks: bool):
        self.module = module
        self._scratch = tempfile.TemporaryDirectory(prefix="lgfed-bench-")
        self.folder = Path(self._scratch.name)
        write(self.folder / GIVEN, federation, task)
        self.workers = workers
        self.log = (self.folder / "log").open("ab")
        many = workers if ranks else 1
        more = [_rank(r, many, port) for port in [free_port()] for r in range(many)]
        self.processes = [self._start(env if many > 1 else {}) for env in more]

    def round(self, number: int) -> None:
        self._tell(self.processes, str(number))

    def parameters(self) -> Tensor:
        """What the server has now: [P]."""
        self._tell(self.processes[:1], "parameters")
        return torch.from_numpy(np.load(self.folder / "parameters.npy", allow_pickle=False))

    def close(self) -> None:
        """End all of it."""
        for process in self.processes:
            with suppress(OSError):  # in words, as forked workers may hold the pipe as well
                print("end", file=process.stdin, flush=True)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()
        self.log.close()
        self._scratch.cleanup()

    def _start(self, env: dict[str, str]) -> subprocess.Popen:
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, self.module, str(self.folder), str(self.workers)],
            env=os.environ | QUIET | {"FLWR_HOME": str(self.folder)} | paths | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            start_new_session=True,
        )

    def _tell(self, processes: list[subprocess.Popen], order: str) -> None:
        for process in processes:
            with suppress(BrokenPipeError):  # it has ended; the answer says so
                print(order, file=process.stdin, flush=True)
        for process in processes:
            ready = wait([process.stdout], PATIENCE)
            if not ready or process.stdout.readline() != "done\n":
                text = (self.folder / "log").read_text(errors="replace").splitlines()[-30:]
                what = "has ended" if ready else f"has not answered in {PATIENCE:g} s"
                raise Failed("\n".join([f"{self.module} {what}; it said:", *text]))


def play(module: str, folder: str, workers: str) -> None:
    """In the process of a contender: follow what comes through the pipe until it is closed."""
    torch.set_num_threads(1)
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer

    def orders(parameters: Callable[[], Tensor]) -> Iterator[int]:
        for line in map(str.strip, sys.stdin):
            if line == "end":
                return
            if line == "parameters":
                np.save(Path(folder, "parameters.npy"), parameters().detach().numpy())
            else:
                yield int(line)
            print("done", file=said, flush=True)

    import_module(module).play(str(Path(folder, GIVEN)), int(workers), orders)


def _rank(rank: int, many: int, port: int) -> dict[str, str]:
    """What torchrun would say to process ``rank`` of ``many`` on this machine."""
    here = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": many, "LOCAL_WORLD_SIZE": many}
    return {n: str(v) for n, v in (here | ranks | {"TORCHELASTIC_RUN_ID": "bench"}).items()}
