"""Execute notebooks through papermill, several at once, and only those that changed.

``book/build.py`` calls `execute`. Each notebook runs in a process of its own (this file as a
program), with one PyTorch thread, in the folder of its source. An executed copy is kept with the
key of all that went into it; it gets its final name only when every cell of it has run.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INPUTS = ("lgfed_core/**/*.py", "data/paper/*.csv", "data/results/*.csv", "data/sources.toml")
PROGRESS_BAR = re.compile(r"\d+%\|.*\|.*\[.*\]|\d+(it|\w+)? \[\d\d:\d\d")  # as tqdm draws it


class BuildError(Exception):
    """The book cannot be built; the message says which file, what was wrong and where to look."""


def shown(path: Path) -> str:
    """``path`` as a reader types it: relative to the current folder where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def core_digest(root: Path = ROOT) -> str:
    """Digest of everything but the notebook that decides what a notebook shows."""
    digest = hashlib.sha256(f"python {sys.version_info.major}.{sys.version_info.minor}".encode())
    inputs = {path for pattern in INPUTS for path in root.glob(pattern)}
    for path in [*sorted(inputs), root / "constraints.txt", Path(__file__)]:
        digest.update(os.path.relpath(path, root).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def key(notebook: Path, scale: str, core: str) -> str:
    """Key of one execution: notebook source, scale and `core_digest`."""
    return hashlib.sha256(notebook.read_bytes() + f"{scale} {core}".encode()).hexdigest()


def execute(source: Path, names: list[str], scale: str, out: Path, jobs: int, core: str) -> int:
    """Execute the notebooks ``names`` of the folder ``source`` into ``out``; return how many ran.

    A notebook whose key matches the one stored beside its copy is left alone. The first failure
    ends the others and raises `BuildError` with notebook, cell and error.
    """
    keys = {name: key(source / name, scale, core) for name in names}
    waiting = [name for name in names if stored_key(out / name) != keys[name]]
    width = max(map(len, names), default=0)
    for name in names:
        if name not in waiting:
            print(f"  {name:<{width}}  unchanged", flush=True)
    jobs = max(1, min(jobs, len(waiting)))
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",  # this venv's python3 kernel, not one of the user's
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    if jobs > 1:
        environment.setdefault("LGFED_WORKERS", str(max(1, cores() // jobs)))
    for name, seconds in run_all(source, waiting, scale, out, jobs, environment):
        stamp(out / name).write_text(json.dumps({"key": keys[name], "seconds": round(seconds, 1)}))
        print(f"  {name:<{width}}  {seconds:6.1f} s", flush=True)
    return len(waiting)


def run_all(
    source: Path, names: list[str], scale: str, out: Path, jobs: int, environment: dict[str, str]
) -> Iterator[tuple[str, float]]:
    """Yield (name, seconds) as notebooks finish; end all of them on a failure or an interrupt."""
    waiting, running = list(names), {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    name = waiting.pop(0)
                    words = Words(Path(folder) / f"{len(waiting)}")
                    command = [sys.executable, __file__, str(source), name, scale, str(out / name)]
                    running[words.start(command, environment)] = (name, words, time.monotonic())
                time.sleep(0.05)
                for process in [p for p in running if p.poll() is not None]:
                    name, words, start = running.pop(process)
                    if process.returncode:
                        raise BuildError(words.failure(name, process.returncode))
                    yield name, time.monotonic() - start
        finally:
            for process in running:
                process.terminate()
            for process in running:
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    process.kill()  # its kernel follows by itself


class Words:
    """What a notebook's process says: its message (stdout) apart from the noise (stderr)."""

    def __init__(self, place: Path):
        self.message, self.noise = place.with_suffix(".message"), place.with_suffix(".noise")

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen:
        """Start the process, in a session of its own: Ctrl-C comes to the parent alone."""
        with self.message.open("w") as stdout, self.noise.open("w") as stderr:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    def failure(self, name: str, status: int) -> str:
        """Why the process failed: its own message, or all that was said when it left none."""
        said = self.message.read_text(errors="replace").strip()
        noise = self.noise.read_text(errors="replace").strip()
        return said or f"{name} ended with status {status}:\n{noise}"


def run_one(source: Path, name: str, scale: str, target: Path) -> None:
    """Execute one notebook and put a tidy copy at ``target``; `BuildError` when a cell fails."""
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError
    from traitlets.config import Config

    target.parent.mkdir(parents=True, exist_ok=True)
    stamp(target).unlink(missing_ok=True)
    partial = target.with_suffix(".partial.ipynb")
    try:
        notebook = papermill.execute_notebook(
            source / name,
            partial,
            parameters={"scale": scale},
            kernel_name="python3",
            language="python",
            progress_bar=False,
            cwd=(source / name).parent,
            # Newer kernels warn when they talk over unencrypted TCP.
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
    except papermill.PapermillExecutionError as error:
        raise BuildError(
            f"{name} failed in code cell {code_cell(source / name, error.source)}:\n"
            f"{indented(error.source)}\n{error.ename}: {error.evalue}\n"
            f"It is kept up to the error in {shown(partial)}"
        ) from error
    except DeadKernelError as error:
        cells = nbformat.read(partial, nbformat.NO_CONVERT).cells
        last = [c for c in cells if c.metadata.get("papermill", {}).get("start_time")][-1]
        raise BuildError(
            f"{name}: the kernel died in code cell {code_cell(source / name, last.source)} "
            f"(out of memory?):\n{indented(last.source)}"
        ) from error
    own = (c for c in notebook.cells if c.cell_type == "code")
    own = (c for c in own if "injected-parameters" not in tags(c))
    for number, cell in enumerate(own, 1):
        if cell.source.strip() and cell.execution_count is None:
            raise BuildError(f"{name} ended before code cell {number}: did a cell call exit()?")
    tidy(notebook)
    partial.write_text(without_places(nbformat.writes(notebook)), encoding="utf-8")
    partial.replace(target)


def code_cell(notebook: Path, source: str) -> str:
    """Number of the code cell with this source, counted from 1 as a reader counts them."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return f"{sources.index(source) + 1} of {len(sources)}" if source in sources else "Parameters"


def tidy(notebook) -> None:
    """Drop what a page should not carry: run metadata, widget views, progress bars; in place."""
    notebook.metadata.pop("papermill", None)
    notebook.metadata.pop("widgets", None)
    settings = "\n".join(c.source for c in notebook.cells if "parameters" in tags(c))
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if "parameters" in tags(cell):
            cell.metadata["mystnb"] = {"code_prompt_show": "Settings"}
        if "injected-parameters" in tags(cell):
            changed = [x for x in cell.source.splitlines()[1:] if x not in settings.splitlines()]
            tags(cell).append("hide-input" if changed else "remove-cell")
            cell.metadata["mystnb"] = {"code_prompt_show": "Settings changed for this build"}
        kept = []
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                lines = [line.rsplit("\r", 1)[-1] for line in output.text.split("\n")]
                lines = [line for line in lines if line.strip() and not PROGRESS_BAR.search(line)]
                output.text = "".join(f"{line}\n" for line in lines)
            widget = any("widget" in kind for kind in output.get("data", {}))
            if not widget and output.get("text") != "":
                kept.append(output)
        if cell.cell_type == "code":
            cell.outputs = kept


def without_places(text: str) -> str:
    """The text without this machine's folders: pages read the same wherever they are built."""
    text = re.sub(r"(?<![^\s\"])[^\s\"]*/ipykernel_\d+/\d+\.py", "<cell>", text)
    for place, name in ((ROOT, "."), (Path(sys.prefix), ".venv"), (Path.home(), "~")):
        if place != Path(place.anchor):
            text = re.sub(re.escape(json.dumps(str(place))[1:-1]) + r"(?![\w.-])", name, text)
    return text


def tags(cell) -> list[str]:
    """The tags of a cell, to read or append to."""
    return cell.metadata.setdefault("tags", [])


def stamp(target: Path) -> Path:
    """Where the key of an executed copy stands."""
    return target.with_suffix(".key.json")


def stored_key(target: Path) -> str | None:
    """The key an executed copy was made with, or None when there is no whole copy."""
    try:
        return json.loads(stamp(target).read_text())["key"] if target.exists() else None
    except (OSError, ValueError, KeyError):
        return None


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines())


def cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder, notebook_name, scale_name, copy = sys.argv[1:]
    try:
        run_one(Path(folder), notebook_name, scale_name, Path(copy))
    except BuildError as problem:
        print(problem)
        sys.exit(1)
