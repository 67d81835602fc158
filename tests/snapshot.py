"""What may not move when code is moved: every number, verdict and text, in one file of JSON.

    python -m tests.snapshot before.json
    python -m tests.snapshot after.json
    python -m tests.snapshot --compare before.json after.json

It takes digests of partitions, of three rounds of every method and of the stored rows, and the text
of what these rows become: claims, board, plan, reports, answers, pages, and whatever functions of
a page's modules make of its rows alone (`tables`). The last bits of parameters are the processor's,
and prices in the plan this machine's: compare two of one machine.
"""

import argparse
import difflib
import hashlib
import inspect
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # for cases; pytest has it
sys.path.insert(0, str(Path(__file__).parent / "engine"))

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from test_digests import CASES, SCHEMES as PARTITIONS, ends_of, rows_of

from lgfed_core import papers
from lgfed_core.evidence import report, scoreboard
from lgfed_core.fill import words, work
from lgfed_core.papers import answer_box, board, experiments, front, overview, printed
from lgfed_core.paths import RESULTS, ROOT
from toy import NOTEBOOKS, cells

PASSES = 3  # a table of a table of a table of rows
LONG = 4000  # characters; of longer texts the beginning is kept, with a digest
SKIPPED = {"renew"}  # writes pages
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in memory


def taken() -> dict[str, str]:
    """Everything by its name, as text."""
    found: dict[str, Any] = {f"partition {name}": rows_of(name) for name in PARTITIONS}
    found |= {f"method {name}": ends_of(name, "looped") for name in CASES}
    found |= {f"rows {path.name}": _digest(path.read_bytes()) for path in RESULTS.glob("*.csv")}
    found |= dict(_judged()) | dict(_pages())
    plan = work.planner("cpu")
    found |= {"plan": words.said(plan, 10**6)}
    for page, modules in _by_page().items():
        found |= {f"{page}: {name}": value for name, value in tables(modules).items()}
    return {name: text(value) for name, value in sorted(found.items())}


def _judged() -> Iterator[tuple[str, Any]]:
    """Claims, printed numbers, contrasts, counts, and where they come from."""
    told, whole = board.told(), board.board()
    for name, one in told.items():
        said = (one.words, one.tags, one.counts, one.stands(), one.claim.answer)
        yield f"claim {name}", "\n".join([*map(str, said), text(one.lines)])
    for page in board.STORED:
        yield f"strict {page.__name__.partition('papers.')[2]}", page.from_stored()
    from_where = board.of_claims()
    yield from {"board": board.markdown(whole, from_where), "front": front.table(told)}.items()
    yield "kinds", overview.claims(whole)
    yield "scoreboard", scoreboard.scoreboard(printed.TABLES.values())
    for name, spec in printed.TABLES.items():
        lines = report.table(spec)
        yield f"printed {name}", lines
        yield f"commands {name}", list(board.with_commands(lines, spec)["command"])
        if spec.contrasts:
            yield f"contrasts {name}", report.contrasts(spec)


def _pages() -> Iterator[tuple[str, Any]]:
    """The Markdown of each page, and its folds: facts, commands, verdicts."""
    for path in NOTEBOOKS:
        page = path.relative_to(ROOT / "book").with_suffix("").as_posix()
        yield f"page {page}", "\n\n".join(source for source, _ in cells(path, "markdown"))
    for name, experiment in ((name, experiments.find(name)) for name in experiments.PLACES):
        yield f"fold {name}", answer_box.Box("", experiments=[experiment]).html()
    for claims in board.STORED:
        for page in dict.fromkeys(claim.page for claim in claims.CLAIMS):
            yield f"fold {page}, claims", answer_box.Box(page, claims).html()


def _by_page() -> dict[str, list[ModuleType]]:
    """The modules of each folder of `papers`, by its dotted name."""
    found: dict[str, list[ModuleType]] = {}
    for info in walk_packages(papers.__path__, f"{papers.__name__}."):
        if not info.ispkg:
            module = import_module(info.name)
            folder = info.name.rpartition(".")[0].removeprefix(papers.__name__).strip(".")
            found.setdefault(folder or "papers", []).append(module)
    return found


def tables(modules: list[ModuleType]) -> dict[str, Any]:
    """What a page's public functions make of nothing, or of one frame: of the stored rows, or of
    what an earlier one made of them. Each has the first frame that it takes without an error.

    A function that is never given what it takes is not here; nor is one that asks for more.
    """
    asked = {name: f for module in modules for name, f in _functions(module)}
    frames: dict[str, pd.DataFrame] = {}
    found: dict[str, Any] = {}
    for name in [name for name in asked if not _needed(asked[name])]:
        _keep(name, _tried(asked[name]), found, frames)
    for _ in range(PASSES):
        for name in [name for name in asked if name not in found]:
            for frame in list(frames.values()):
                if _keep(name, _tried(asked[name], frame), found, frames):
                    break
    return found


def _keep(name: str, made: Any, found: dict[str, Any], frames: dict[str, pd.DataFrame]) -> bool:
    if made is not None:
        found[name] = made
        if isinstance(made, pd.DataFrame) and len(made):
            frames[name] = made
    return made is not None


def _functions(module: ModuleType) -> Iterator[tuple[str, Callable]]:
    """Its own public functions that take one frame, or, if they read stored rows, nothing."""
    for name, f in vars(module).items():
        own = callable(f) and getattr(f, "__module__", "") == module.__name__
        if not own or inspect.isclass(f) or name.startswith("_") or name in SKIPPED:
            continue
        needed = _needed(f)
        kinds = [str(parameter.annotation) for parameter in needed]
        takes = len(needed) == 1 and "DataFrame" in kinds[0] and "[" not in kinds[0]
        if takes or (not needed and "DataFrame" in str(inspect.signature(f).return_annotation)):
            yield name, f


def _needed(f: Callable) -> list[inspect.Parameter]:
    some = inspect.signature(f).parameters.values()
    return [p for p in some if p.default is p.empty and p.kind.name[:3] != "VAR"]


def _tried(f: Callable, *frames: pd.DataFrame) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = f(*frames)
            return list(made) if isinstance(made, Iterator) else made
    except Exception:  # a frame of another kind, or data that are not here
        return None


def text(value: Any) -> str:
    """A value in full, numbers to the last bit; a figure by what is written and drawn in it."""
    if isinstance(value, pd.DataFrame | pd.Series):
        said = f"{value.to_csv()}{value.index.names}"
    elif isinstance(value, dict):
        said = "\n".join(f"{name}: {text(one)}" for name, one in value.items())
    elif isinstance(value, list | tuple | set):
        some = list(map(text, value))
        said = "\n".join(sorted(some) if isinstance(value, set) else some)
    elif isinstance(value, Figure):
        lines = [np.array(line.get_xydata()) for ax in value.axes for line in ax.get_lines()]
        texts = [one.get_text() for one in value.findobj(plt.Text)]
        said = "\n".join([*filter(None, texts), _digest(b"".join(xy.tobytes() for xy in lines))])
        plt.close(value)
    else:
        said = _ADDRESS.sub("", str(value))
    return said if len(said) <= LONG else f"{said[:LONG]}... {_digest(said.encode())}"


def _digest(some: bytes) -> str:
    return hashlib.sha256(some).hexdigest()[:16]


def compared(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What differs, in lines; nothing where all is as it was."""
    out = [f"gone: {name}" for name in before if name not in after]
    out += [f"new: {name}" for name in after if name not in before]
    for name in (n for n in before if n in after and before[n] != after[n]):
        texts = (some[name].splitlines() for some in (before, after))
        lines = list(difflib.unified_diff(*texts, n=0, lineterm=""))[2:]
        out += [f"moved: {name}", *(f"    {line[:160]}" for line in lines[:10])]
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    parser.add_argument("--compare", action="store_true", help="say how two of them differ")
    args = parser.parse_args()
    if args.compare:
        found = compared(*(json.loads(path.read_text(encoding="utf-8")) for path in args.files))
        print("\n".join(found) or "nothing has moved")
        sys.exit(bool(found))
    args.files[0].write_text(json.dumps(taken(), indent=1), encoding="utf-8")
