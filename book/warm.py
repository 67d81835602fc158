"""Start notebooks from a process that has imported already what all of them import.

PyTorch, pandas, scikit-learn and Jupyter take six seconds of a slow core, more than many a page
does with them. Python's fork server imports them once; a notebook's process is forked from it, and
its kernel from that one, which then runs the page from its first line as any kernel does. Nothing
of this project is imported beforehand: a page gets it as it is when it asks.

Only Linux forks safely here; elsewhere, and for a single notebook, each starts from nothing.
"""

import atexit
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import EntryPoint
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

PRELOAD = ["papermill", "IPython", "ipykernel.kernelapp", "pandas", "scipy.stats", "torch"]
PRELOAD += ["sklearn.linear_model", "sklearn.decomposition"]
PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal that comes when the parent ends
POSSIBLE = sys.platform == "linux"


def start(
    run: Callable[..., None],
    arguments: tuple,
    environment: dict[str, str],
    out: tuple[Path, Path],
    warm: bool,
) -> BaseProcess:
    """Start ``run(*arguments)`` in a process with this environment.

    out: the files that take its stdout and stderr. The process has a session of its own: Ctrl-C
    comes to the parent alone, and SIGTERM ends it with 143. It ends with its parent, however that
    ends: it hears so from a pipe whose other side the parent alone holds.
    """
    warm = warm and POSSIBLE
    context = get_context("forkserver" if warm else "spawn")
    if warm:  # libraries read how many threads they may use as they are loaded
        os.environ.update({k: v for k, v in environment.items() if k.endswith("_NUM_THREADS")})
        # a kernel that is ended leaves the lock of its progress bars behind: nobody need know
        os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
        context.set_forkserver_preload(PRELOAD)
    parent, here = context.Pipe(duplex=False)
    given = (run, arguments, environment, out, warm, parent)
    process = context.Process(target=_enter, args=given)
    process.start()
    parent.close()
    process.held = here  # open for as long as both are there
    return process


def _enter(
    run, arguments: tuple, environment: dict[str, str], out, warm: bool, parent: Connection
) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for number, path in enumerate(out, 1):
        with path.open("w") as file:
            os.dup2(file.fileno(), number)
    _environment(environment)
    if warm:
        _offer(Kernel())
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    run(*arguments)


def _follow(parent: Connection) -> None:
    """End with the ``parent``; a kernel ends with us."""
    with suppress(EOFError, OSError):
        parent.recv()
    os._exit(143)


def _environment(wanted: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(wanted)


class Kernel:
    """A forked process that waits to become a kernel; to Jupyter it is as a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self) -> None:
        (there, self._here), self.returncode = get_context().Pipe(duplex=False), None
        self.pid = os.fork()
        if not self.pid:
            self._here.close()
            os._exit(_become(there))
        there.close()

    def launch(self, command: list[str], environment: dict[str, str], folder: str | None) -> None:
        self._here.send((command, environment, folder or os.getcwd()))

    def poll(self) -> int | None:
        return self.wait(os.WNOHANG)

    def wait(self, how: int = 0) -> int | None:
        if self.returncode is None and (ended := os.waitpid(self.pid, how))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _become(pipe: Connection) -> int:
    """Wait for a kernel's command line and be that kernel; returns its exit status."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        command, environment, folder = pipe.recv()
    except EOFError:  # the notebook's process has ended before
        return 0
    _environment(environment)
    os.chdir(folder)
    asked = environment.get("PYTHONPATH", "").split(os.pathsep)
    installed = (sys.prefix, sys.base_prefix)
    sys.path[:] = [*filter(None, asked), *(p for p in sys.path if p.startswith(installed))]
    from ipykernel.kernelapp import IPKernelApp

    status = 0
    try:
        IPKernelApp.launch_instance(argv=command[command.index("ipykernel_launcher") + 1 :])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    atexit._run_exitfuncs()  # what an interpreter does at its end, and a forked process does not
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _offer(kernel: Kernel) -> None:
    """Have Jupyter take this process when it is to start a kernel."""
    from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

    class Forked(LocalProvisioner):
        async def launch_kernel(self, cmd, **how):
            kernel.launch(cmd, dict(how["env"]), how.get("cwd"))
            self.process, self.pid, self.pgid = kernel, kernel.pid, kernel.pid
            return self.connection_info

    class Here(EntryPoint):
        def load(self):
            return Forked

    factory = KernelProvisionerFactory.instance()
    factory.default_provisioner_name = "forked"
    factory.provisioners["forked"] = Here("forked", "warm:Forked", factory.GROUP_NAME)
