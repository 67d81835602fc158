"""A whole federation on this machine: one SuperLink and a SuperNode per folder, on free ports.

    with Loopback(folders) as machines:
        machines.run(DIGITS, {"method": "LG-FedAvg", "rounds": 3}, out)
        history = machines.wait(out, 3)

Real processes and real messages, over 127.0.0.1 alone. Nothing is sent home, nothing is written but
to the nodes' folders, ``out`` and a temporary folder, and no process outlives the block.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from lgfed_core.errors import LgfedError, SettingsError

from .plan import HISTORY, SHARED, TESTED, WIRE

DIGITS = Path(__file__).with_name("app")  # the app of this room
HOST = "127.0.0.1"
PATIENCE = 120.0  # seconds for a server to listen, and for `flwr run` to be accepted
WAIT = 300.0  # for a round
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",  # by a download
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.25",
    **{"NO_COLOR": "1", "FORCE_COLOR": "", "CLICOLOR_FORCE": "0"},  # which Jupyter asks for
    "PYTHONUNBUFFERED": "1",
    "OMP_NUM_THREADS": "1",
}


class Loopback:
    """SuperLink and SuperNodes, one for each of ``folders``.

    Raises LgfedError where Flower is not installed, or does not start.
    """

    def __init__(self, folders: Sequence[Path]):
        self.folders = [Path(folder).resolve() for folder in folders]
        self.processes: dict[str, subprocess.Popen] = {}
        self.ports: dict[int, int] = {}  # of the SuperNodes, by client

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> "Loopback":
        """Start all of them; for a notebook, where a block would be one cell."""
        self._scratch = tempfile.TemporaryDirectory(prefix="lgfed-flower-")
        self.home = Path(self._scratch.name)
        self.port, self._mark = free_port(), f"FLWR_HOME={self.home}"
        try:
            trust, safety = self._link()
            text = f'[superlink.here]\naddress = "{HOST}:{self.port}"\n{trust}\n'
            (self.home / "config.toml").write_text(text, encoding="utf-8")
            where = ["--host", HOST, "--port", str(self.port)]
            self._start("link", "flower-superlink", *safety, *where)
            self._listening("link", self.port)
            for k in range(len(self.folders)):
                self.start(k)
        except BaseException:
            self.close()
            raise
        return self

    __enter__ = open

    def close(self) -> None:
        """End every process."""
        for name in list(self.processes):
            self._end(name, signal.SIGTERM)
        for process in _marked(self._mark):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._scratch.cleanup()

    def start(self, k: int, superlink: str | None = None) -> None:
        """Start the SuperNode of client ``k``; ``superlink``: another address to reach it by."""
        self.ports[k] = free_port()
        self._start(
            f"node-{k}",
            "flower-supernode",
            *self._node(k),
            *("--superlink", superlink or f"{HOST}:{self.port}"),
            *("--host", HOST, "--port", str(self.ports[k])),
            *("--node-config", f"folder={toml('folder', str(self.folders[k]))}"),
        )

    def _link(self) -> tuple[str, list[str]]:
        """How others are to trust the SuperLink, a line of Flower's configuration; its options."""
        return "insecure = true", ["--insecure"]

    def _node(self, k: int) -> list[str]:
        """The options by which the SuperNode of client ``k`` and the SuperLink trust each other."""
        return ["--insecure"]

    def kill(self, k: int, word: bool = False) -> None:
        """End the SuperNode of client ``k``, as a power failure would, or with a last word.

        Without it the server waits for the run's timeout, or for Flower to give the node up, which
        takes a minute.
        """
        self._end(f"node-{k}", signal.SIGTERM if word else signal.SIGKILL)

    def run(self, app: Path, config: Mapping[str, object], out: Path) -> int:
        """`flwr run` with ``config`` in the place of the app's own; the number of the run.

        It returns when the run has been accepted; `wait` waits for what it leaves in ``out``, where
        nothing is left of an earlier run.
        """
        for name in (HISTORY, TESTED, SHARED, WIRE):
            (out / name).unlink(missing_ok=True)
        for name in self.processes.keys() - {"link"}:
            self._listening(name, self.ports[int(name.removeprefix("node-"))])
        settings = {"clients": len(self.folders)} | dict(config) | {"out": str(out.resolve())}
        said = " ".join(f"{name}={toml(name, value)}" for name, value in settings.items())
        return int(self._flwr("run", str(app), "here", "-c", said)["run-id"])

    def wait(self, out: Path, round: int) -> pd.DataFrame:
        """The history of a run once it has been through ``round``, from 1.

        Raises LgfedError, with what the server has said, after a long while.
        """
        end, path = time.monotonic() + WAIT, out / HISTORY
        while time.monotonic() < end:
            if path.exists():
                history = pd.read_csv(path)
                if history["round"].max() >= round:
                    return history
            time.sleep(0.2)
        raise LgfedError(f"{out} has no round {round} after {WAIT:g} s:\n{self.log()}")

    def log(self, name: str = "link", lines: int = 30) -> str:
        """The last lines that a process has said; its name is link or node-K."""
        text = (self.home / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _flwr(self, *command: str) -> dict:
        """What a command of `flwr` says. Raises LgfedError where it fails."""
        done = subprocess.run(
            [_tool("flwr"), *command, "--format", "json"],
            env=self._env(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        with suppress(ValueError):
            if isinstance(said := json.loads(done.stdout), dict) and said.get("success", True):
                return said
        words = " ".join(command[:2])
        raise LgfedError(f"flwr {words} failed:\n{done.stdout}{done.stderr}{self.log()}")

    def _env(self) -> dict[str, str]:
        bin = str(Path(sys.executable).parent)
        path = os.pathsep.join([bin, os.environ.get("PATH", "")])
        return os.environ | QUIET | {"FLWR_HOME": str(self.home), "PATH": path}

    def _start(self, name: str, tool: str, *arguments: str) -> None:
        with (self.home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [_tool(tool), *arguments],
                env=self._env(),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_with_parent,
            )

    def _listening(self, name: str, port: int) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.processes[name].poll() is None:
            with suppress(OSError), socket.create_connection((HOST, port), 1):
                return
            time.sleep(0.1)
        raise LgfedError(f"{name} does not listen:\n{self.log(name)}")

    def _end(self, name: str, how: signal.Signals) -> None:
        """End a process and its children: by itself, or else by force."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def toml(name: str, value: object) -> str:
    """``value`` as TOML in one line, as Flower's command line takes it: up to the next quotation
    mark. Raises SettingsError for a text that it cannot take."""
    if not isinstance(value, str):
        return json.dumps(value)
    if not value.isprintable() or ("'" in value and ('"' in value or "\\" in value)):
        raise SettingsError(
            f"{name} is {value!r}; Flower takes no text with both kinds of quotation marks, or "
            "with a line break: choose another name"
        )
    return f'"{value}"' if "'" in value else f"'{value}'"


def _tool(name: str) -> str:
    """A command of Flower, beside this Python. Raises SettingsError where it is not installed."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise SettingsError(
            f"there is no {path}; install Flower by python -m pip install "
            "--constraint constraints.txt --editable '.[flower]'"
        )
    return str(path)


def installed() -> bool:
    """Whether this Python has Flower."""
    return find_spec("flwr") is not None


def free_port() -> int:
    """A port of this machine that nobody listens at now."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        return found.getsockname()[1]


def _with_parent() -> None:
    """In a new process: never outlive the one that has started it (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _marked(mark: str) -> list[int]:
    """Processes with ``mark`` in their environment, whatever group they went to (Linux)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if os.fsencode(mark) in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
