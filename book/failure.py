"""What a build says of a page that failed: which cell, which line, and where what it made is."""

import json
import re
from pathlib import Path


class BuildError(Exception):
    """The book cannot be built; the message says which file, what was wrong and where to look."""


def shown(path: Path) -> str:
    """``path`` as a reader types it: relative to the current folder where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def of_cell(source: Path, name: str, error, partial: Path) -> str:
    """A cell that raised; error: papermill's, with the cell's source and IPython's traceback."""
    number, row = code_cell(source / name, error.source), line_of(error.traceback)
    place = f"{number}, line {row}" if row else number
    said = f"{error.ename}: {error.evalue}"
    return (
        f"{name} failed in code cell {place}:\n{indented(at(error.source, row))}\n"
        f"{said}\n{kept(partial)}"
    )


def of_kernel(source: Path, name: str, cell: str, partial: Path) -> str:
    """A kernel that died in ``cell``."""
    number = code_cell(source / name, cell)
    why = f"{name}: the kernel died in code cell {number} (out of memory?)"
    return f"{why}:\n{indented(cell)}\n{kept(partial)}"


def code_cell(notebook: Path, source: str) -> str:
    """Number of the code cell with this source, counted from 1 as a reader counts them."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return f"{sources.index(source) + 1} of {len(sources)}" if source in sources else "Parameters"


def line_of(traceback: list[str]) -> int | None:
    """Line of the cell at which a traceback of IPython begins; None where it does not say."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(traceback))
    found = re.search(r"Cell In\[\d+\], line (\d+)", plain)
    return int(found[1]) if found else None


def at(source: str, row: int | None) -> str:
    """That line of a cell, or the whole cell where none is known."""
    lines = source.splitlines()
    return lines[row - 1].strip() if row and row <= len(lines) else source


def kept(partial: Path) -> str:
    """Where a notebook is, as far as it came."""
    return f"It is kept as far as it came in {shown(partial)}"


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines())
