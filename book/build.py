"""Build the book: execute its notebooks at a scale, gather the pages, draw the HTML.

Nothing is left out silently: a notebook that is not in ``_toc.yml``, that fails, or that makes the
HTML builder warn, ends the build with an exit status other than 0.
"""

import argparse
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

import draw
from execute import BuildError, cores, execute, shown
from progress import spoken

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

BOOK = Path(__file__).resolve().parent
MOVED = "The runs have moved"  # how a page says that rows contradict a sentence of it
MOST = 1000  # jobs that anybody can mean
SCALES = {
    "smoke": "seconds per notebook, for tests; its live numbers mean nothing",
    "quick": "20 to 60 seconds of a core per notebook",
    "paper": "the full protocol of the papers; hours",
}


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Execute every notebook of the book and build its HTML pages.",
        epilog="Scales: " + "; ".join(f"{name} = {text}" for name, text in SCALES.items()) + ".",
    )
    parser.add_argument("--scale", choices=SCALES, default="quick", help="default: %(default)s")
    parser.add_argument(
        "--jobs", type=int, metavar="N", default=cores(), help="notebooks at once (default: cores)"
    )
    parser.add_argument("--no-html", action="store_true", help="execute only")
    parser.add_argument(
        "--only", nargs="+", metavar="PAGE", help="execute these alone, e.g. lgfedavg/mnist"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="store what executed pages judge live in data/results, for the scoreboard",
    )
    parser.add_argument(
        "--source", type=Path, metavar="DIR", default=BOOK, help="the book (default: this folder)"
    )
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.jobs <= MOST:
        parser.error(f"--jobs is {chosen.jobs}; it must be at least 1 and at most {MOST:,}")
    if chosen.jobs > cores():
        print(f"--jobs is {chosen.jobs}, and there are {cores()} cores: no more are run at once")
    if chosen.keep:
        os.environ["LGFED_KEEP"] = "1"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C
    try:
        html = not (chosen.no_html or chosen.only)
        build(chosen.source.resolve(), chosen.scale, min(chosen.jobs, cores()), html, chosen.only)
    except BuildError as error:
        print(f"\nThe book was not built.\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Notebooks that had finished are kept.", file=sys.stderr)
        return 130
    return 0


def build(
    source: Path, scale: str, jobs: int, html: bool = True, only: list[str] | None = None
) -> None:
    """Execute the notebooks of ``source`` at ``scale`` and, unless told not to, draw the pages.

    only: of these pages, as the table of contents names them; a suffix may be there.
    """
    with alone(source / "_build"):
        _build(source, scale, jobs, html, only)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder of what is built, until the process ends; `BuildError` where another does."""
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BuildError(
            f"Another process is building this book, in {shown(folder)}; wait for it."
        ) from None
    finally:
        os.close(handle)


def _build(source: Path, scale: str, jobs: int, html: bool, only: list[str] | None) -> None:
    start = time.monotonic()
    out = source / "_build" / "executed" / scale
    names = notebooks(source)
    check_contents(source, names)
    names = chosen_of(names, only) if only else names
    draw.published()  # a wrong address ends the build here, before notebooks are executed
    print(f"{len(names)} notebooks at scale {scale} ({SCALES[scale]}):", flush=True)
    count = execute(source, names, scale, out, jobs)
    if count:
        print(f"{count} executed in {spoken(time.monotonic() - start)}", flush=True)
    for name in names:
        if MOVED in (out / name).read_text(encoding="utf-8"):
            print(f"{name}: stored rows contradict a sentence; the page says which")
    if html:
        pages(source, names, out, scale)


def pages(source: Path, names: list[str], executed: Path, scale: str) -> None:
    """Draw the HTML where it is not up to date, and say where it is."""
    target = source / "_build" / "html"
    gathered = draw.gather(source, names, executed, scale)
    if draw.drawn(gathered, target):
        print("pages unchanged")
    else:
        print("drawing the pages (half a minute or so)", flush=True)
        draw.draw(gathered, target)
    print(f"The book: {(target / 'index.html').as_uri()}")
    python, folder = (shlex.quote(shown(path)) for path in (Path(sys.executable), target))
    print(f"To read it at http://localhost:8000: {python} -m http.server 8000 -d {folder}")


def notebooks(source: Path) -> list[str]:
    """Every notebook below ``source``, relative to it; none in folders with a leading _ or dot."""
    found = (path.relative_to(source) for path in source.rglob("*.ipynb"))
    return sorted(p.as_posix() for p in found if not any(part[0] in "._" for part in p.parts))


def chosen_of(names: list[str], only: list[str]) -> list[str]:
    """Those of ``names`` that are asked for; `BuildError` for a page that is not there."""
    wanted = [f"{page.removesuffix('.ipynb')}.ipynb" for page in only]
    if unknown := [page for page in wanted if page not in names]:
        raise BuildError(f"There is no page {', '.join(unknown)}; there are: {', '.join(names)}.")
    return [name for name in names if name in wanted]


def contents(source: Path) -> list[str]:
    """Page names of ``_toc.yml`` in reading order, without suffix."""

    def walk(entry: object) -> list[str]:
        if isinstance(entry, list):
            return [name for item in entry for name in walk(item)]
        if isinstance(entry, dict):
            own = [entry[k] for k in ("root", "file") if k in entry]
            return own + [name for value in entry.values() for name in walk(value)]
        return []

    return walk(yaml.safe_load((source / "_toc.yml").read_text(encoding="utf-8")))


def check_contents(source: Path, names: list[str]) -> None:
    """Raise `BuildError` unless table of contents and folder name the same notebooks and pages."""
    listed = [re.sub(r"\.(md|ipynb)$", "", name) for name in contents(source)]
    missing = [name for name in names if name.removesuffix(".ipynb") not in listed]
    if missing:
        raise BuildError(f"Not in {shown(source / '_toc.yml')}: {', '.join(missing)}. Add them.")
    absent = [
        name
        for name in listed
        if f"{name}.ipynb" not in names and not (source / f"{name}.md").exists()
    ]
    if absent:
        raise BuildError(f"{shown(source / '_toc.yml')} lists pages without a file: {absent}")


if __name__ == "__main__":
    sys.exit(main())
