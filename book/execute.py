"""Execute notebooks through papermill, several at once, and only those that changed.

``book/build.py`` calls `execute`. Each notebook runs in a process of its own
(`warm`), with one PyTorch thread, in the folder of its source. An executed copy is kept with the
key of all that went into it; it gets its final name only when every cell of it has run.
"""

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import failure
import inputs
import places
from failure import BuildError, shown as shown
from warm import start

import tidy
from progress import Watch, expected, line, spoken

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    name: os.path.abspath(os.path.expanduser(os.environ[name]))  # a page runs in another folder
    for name in ("LGFED_CACHE", "LGFED_RUNS", "LGFED_HOME", "LGFED_MIRROR")
    if os.environ.get(name)
}
CACHE = Path(PLACES.get("LGFED_CACHE", ROOT / "data" / "cache"))


class Before:
    """What a page is made of as it starts: what comes while it runs is for the next time."""

    def __init__(self, notebook: Path):
        self.code, self.rows = inputs.code(notebook), inputs.rows()

    def key(self, scale: str, reads: list[str]) -> str:
        """Key of one execution: what the page is made of, the rows that it reads, and the scale."""
        text = f"{self.code} {inputs.results(reads, self.rows)} {scale}"
        return hashlib.sha256(text.encode()).hexdigest()


def execute(
    source: Path, names: list[str], scale: str, out: Path, jobs: int, warm: bool | None = None
) -> int:
    """Execute the notebooks ``names`` of the folder ``source`` into ``out``; return how many ran.

    One of which nothing has changed since its copy was made is left alone: neither itself, nor a
    module that it imports, nor a row that it reads. The others start in the order of their length,
    the longest first. One that fails does not stop the others: `BuildError` names all that failed
    at the end, each with cell, line and error.

    warm: start them as `warm` does; by default where several are to be executed.
    """
    seconds = {name: expected(name, scale, stamp(out / name)) for name in names}
    waiting = [name for name in names if not unchanged(source / name, out / name, scale)]
    waiting.sort(key=seconds.get, reverse=True)
    if len(waiting) < len(names):
        line(f"  unchanged: {len(names) - len(waiting)} of {len(names)} notebooks")
    jobs = max(1, min(jobs, len(waiting)))
    watch = Watch({name: seconds[name] for name in waiting}, jobs)
    if waiting:
        line(f"  to execute: {len(waiting)}, {jobs} at once; about {spoken(watch.left())}")
    environment = (
        os.environ
        | PLACES
        | {
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "JUPYTER_PREFER_ENV_PATH": "1",  # this venv's python3 kernel, not one of the user's
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        }
    )
    if jobs > 1:
        environment.setdefault("LGFED_WORKERS", str(max(1, cores() // jobs)))
    width = max(map(len, names), default=0)
    warm = len(waiting) > 1 if warm is None else warm
    failed: list[str] = []
    for name, took, said, before in run_all(source, waiting, scale, out, watch, environment, warm):
        if said.failed:
            failed.append(said.failure(name))
            line(f"  {name:<{width}}  failed   {watch.state()}")
            continue
        reads, others = said.results(), stand_ins(out / name)
        awaits = sorted({found["set"] for found in others if found["set"]})
        known = {
            "key": before.key(scale, reads),
            "reads": reads,
            "seconds": round(took, 1),
            "awaits": awaits,
        }
        stamp(out / name).write_text(json.dumps(known))
        on = "".join(f", on {found['stand_in']} for {found['papers']}" for found in others)
        line(f"  {name:<{width}}  {took:6.1f} s   {watch.state()}{on}")
    if failed:
        count = f"{len(failed)} of {len(waiting)} notebooks failed; what the others made is kept."
        raise BuildError("\n\n".join([count, *failed]))
    return len(waiting)


def run_all(
    source: Path,
    names: list[str],
    scale: str,
    out: Path,
    watch: Watch,
    environment: dict[str, str],
    warm: bool,
) -> Iterator[tuple[str, float, "Words", Before]]:
    """Yield (name, seconds, what it said, what it was made of) as notebooks finish or fail.

    An interrupt ends all of them.
    """
    waiting, running = list(names), {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            while waiting or running:
                while waiting and len(running) < watch.jobs:
                    name = waiting.pop(0)
                    words = Words(Path(folder) / f"{len(waiting)}")
                    own = environment | {"LGFED_READS": str(words.reads)}
                    before = Before(source / name)
                    process = words.start((source, name, scale, out / name), own, warm)
                    running[process] = name, words, before
                    watch.start(name)
                watch.tick()
                time.sleep(0.05)
                for process in [p for p in running if p.exitcode is not None]:
                    name, words, before = running.pop(process)
                    words.status = process.exitcode
                    yield name, watch.end(name), words, before
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.join(5)
                process.kill()  # its kernel follows by itself


class Words:
    """What a notebook's process leaves: its message, apart from what it and its kernel print."""

    def __init__(self, place: Path):
        self.message, self.reads = place.with_suffix(".message"), place.with_suffix(".reads")
        self.printed, self.noise = place.with_suffix(".printed"), place.with_suffix(".noise")
        self.status: int | None = None

    def start(self, arguments: tuple, environment: dict[str, str], warm: bool) -> BaseProcess:
        """Start the process of one notebook."""
        given, prints = (*arguments, self.message), (self.printed, self.noise)
        return start(run_told, given, environment, prints, warm)

    @property
    def failed(self) -> bool:
        """Whether the process has ended otherwise than well."""
        return bool(self.status)

    def results(self) -> list[str]:
        """The experiments whose stored rows it read, as `lgfed_core` has noted them."""
        return sorted(set(self.reads.read_text().split())) if self.reads.exists() else []

    def failure(self, name: str) -> str:
        """Why the process failed: its message, or its errors when it left none."""
        if self.message.exists():
            return self.message.read_text(encoding="utf-8").strip()
        noise = self.noise.read_text(errors="replace").strip()
        return f"{name} ended with status {self.status}:\n{noise}"


def run_told(source: Path, name: str, scale: str, target: Path, message: Path) -> None:
    """`run_one` in a process of its own, which writes what went wrong into the file ``message``."""
    try:
        run_one(source, name, scale, target)
    except BuildError as problem:
        message.write_text(str(problem), encoding="utf-8")
        sys.exit(1)


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
        raise BuildError(failure.of_cell(source, name, error, partial)) from error
    except DeadKernelError as error:
        cells = nbformat.read(partial, nbformat.NO_CONVERT).cells
        last = [c for c in cells if c.metadata.get("papermill", {}).get("start_time")][-1]
        raise BuildError(failure.of_kernel(source, name, last.source, partial)) from error
    own = (c for c in notebook.cells if c.cell_type == "code")
    own = (c for c in own if "injected-parameters" not in tidy.tags(c))
    for number, cell in enumerate(own, 1):
        if cell.source.strip() and cell.execution_count is None:
            raise BuildError(
                f"{name} ended before code cell {number}: did a cell call exit()?\n"
                f"{failure.kept(partial)}"
            )
    tidy.tidy(notebook)
    tidy.note(notebook)
    partial.write_text(nbformat.writes(places.without_places(notebook)), encoding="utf-8")
    partial.replace(target)


def stamp(target: Path) -> Path:
    """Where the key of an executed copy stands."""
    return target.with_suffix(".key.json")


def unchanged(notebook: Path, target: Path, scale: str) -> bool:
    """Whether there is a whole executed copy, on the best data, that would come out the same."""
    try:
        known = json.loads(stamp(target).read_text())
        if not target.exists() or any(map(arrived, known.get("awaits", []))):
            return False
        return known["key"] == Before(notebook).key(scale, known["reads"])
    except (OSError, ValueError, KeyError):
        return False


def arrived(name: str) -> bool:
    """Whether a data set is here now, for which another stood in."""
    return any(path.name[0] != "." for path in (CACHE / name).glob("*"))


def stand_ins(target: Path) -> list[dict[str, str]]:
    """What stood in for which data in an executed copy."""
    import nbformat

    return tidy.stand_ins(nbformat.read(target, nbformat.NO_CONVERT))


def cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1
