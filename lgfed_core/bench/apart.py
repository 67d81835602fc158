"""A framework as a contender: in processes of its own, told by a pipe when a round begins.

So none meets the threads, the start methods or the global settings of another. What it is `Given`
lies in a file. A framework's module has one function, ``play(path, workers, orders)``: it trains a
round for each number that ``orders(parameters)`` yields, and is through with it when it asks for
the next.
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lgfed_core.engine import Federation, LocalTraining, Participation
from lgfed_core.errors import LgfedError
from lgfed_core.flower.loopback import QUIET, free_port
from lgfed_core.partition import ClientIndices

from .plain import Given
from .task import Task

PATIENCE = 600.0  # seconds for one round, the first with all that has to start
GIVEN = "given.safetensors"
ALONE = QUIET | {"CUDA_VISIBLE_DEVICES": "", "RAY_USAGE_STATS_ENABLED": "0"}


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
        many, port, spawn = workers if ranks else 1, free_port(), get_context("spawn")
        env = ALONE | {"FLWR_HOME": str(self.folder)}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        self.seats = []
        for rank in range(many):
            pipe, there = spawn.Pipe()
            process = spawn.Process(target=play, args=(there, module, self.folder, workers))
            with patch.dict(os.environ, env | (_rank(rank, many, port) if many > 1 else {})):
                process.start()
            there.close()
            self.seats.append((process, pipe))

    def round(self, number: int) -> None:
        self._ask(number, self.seats)

    def parameters(self) -> Tensor:
        """What the server has now: [P]."""
        return torch.from_numpy(self._ask("parameters", self.seats[:1])[0])

    def close(self) -> None:
        """End all of it."""
        for _, pipe in self.seats:
            with suppress(OSError):
                pipe.send("end")
        for process, pipe in self.seats:
            process.join(30)
            if process.is_alive():
                os.killpg(process.pid, signal.SIGKILL)
                process.join()
            pipe.close()
        self._scratch.cleanup()

    def _ask(self, order: int | str, seats: list) -> list:
        """What each of ``seats`` answers to an order."""
        for _, pipe in seats:
            with suppress(OSError):  # it has ended; the answer says so
                pipe.send(order)
        found, what = [], f"has not answered in {PATIENCE:g} s"
        for _, pipe in seats:
            try:
                if pipe.poll(PATIENCE):
                    found.append(pipe.recv())
                    continue
            except (EOFError, OSError):
                what = "has ended"
            text = (self.folder / "log").read_text(errors="replace").splitlines()[-30:]
            raise Failed("\n".join([f"{self.module} {what}; it said:", *text]))
        return found


def play(pipe: Connection, module: str, folder: Path, workers: int) -> None:
    """In the process of a contender: follow what comes through the pipe until it is closed."""
    os.setsid()  # so that what it starts ends with it
    with (folder / "log").open("ab") as log:
        for out in (1, 2):
            os.dup2(log.fileno(), out)
    torch.set_num_threads(1)

    def orders(parameters: Callable[[], Tensor]) -> Iterator[int]:
        while (order := pipe.recv()) != "end":
            if order == "parameters":
                pipe.send(parameters().detach().numpy())
            else:
                yield order
                pipe.send("done")

    with suppress(EOFError):  # who gave the orders is gone
        import_module(module).play(str(folder / GIVEN), workers, orders)


def _rank(rank: int, many: int, port: int) -> dict[str, str]:
    """What torchrun would say to process ``rank`` of ``many`` on this machine."""
    here = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": many, "LOCAL_WORLD_SIZE": many}
    return {n: str(v) for n, v in (here | ranks | {"TORCHELASTIC_RUN_ID": "bench"}).items()}
