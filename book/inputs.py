"""What a page is made of: the modules it imports, and the stored rows that it read last time.

A page is executed again when one of these changes, and no other page is. A module that imports by
name (`import_module`) counts as importing each module of its package that it names in a text, and
`lgfed_core.data` those that are called as a set. The package's own face imports each of its names
as it is asked for, and counts for no other.
"""

import ast
import hashlib
import json
import os
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = "lgfed_core"
COMMON = ("data/paper/*.csv", "data/sources.toml", "constraints.txt")
BUILD = ("inputs.py", "execute.py", "tidy.py", "places.py")
_NAME = re.compile(r"\w+(\.\w+)*")  # of a module, in its package
ALL = "*"  # what a page has read that asked for all results


def code(notebook: Path, root: Path = ROOT) -> str:
    """Digest of the notebook, of the core's modules that it imports, directly or not, and of what
    every page stands on: the papers' numbers, the sources of data, the pins, this build. Lists in
    ``data/`` that a page names are its own, too."""
    digest = hashlib.sha256(f"python {sys.version_info.major}.{sys.version_info.minor}".encode())
    common = [path for pattern in COMMON for path in sorted(root.glob(pattern))]
    named = sorted(
        set(re.findall(r"data/(?:\w+/)?\w+\.(?:toml|json)", notebook.read_text(encoding="utf-8")))
    )
    common += [root / name for name in named if (root / name).is_file() and name not in COMMON]
    own = [Path(__file__).with_name(name) for name in BUILD]
    for path in [notebook, *common, *own, *modules(notebook, root)]:
        digest.update(os.path.relpath(path, root).encode())
        digest.update(_digest(path, path.stat().st_mtime_ns))
    return digest.hexdigest()


def rows(root: Path = ROOT) -> dict[str, bytes]:
    """Digest of the stored rows of each experiment, as they are now."""
    files = sorted((root / "data" / "results").glob("*.csv"))
    return {path.stem: _digest(path, path.stat().st_mtime_ns) for path in files}


def results(names: list[str], stored: dict[str, bytes]) -> str:
    """Digest of what these experiments had stored, all of them where `ALL` is among them.

    stored: of `rows`, from before a page read any.
    """
    digest = hashlib.sha256()
    for name in stored if ALL in names else sorted(names):
        digest.update(name.encode() + stored.get(name, b""))
    return digest.hexdigest()


def modules(notebook: Path, root: Path = ROOT) -> list[Path]:
    """The files of the core that a notebook's code cells import, and those that these import."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    found: dict[Path, None] = {}
    waiting = [path for source in sources for path in _imported(source, "", root)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = None
            if path == root / CORE / "__init__.py":
                continue
            parts = path.relative_to(root).with_suffix("").parts
            package = ".".join(parts[:-1])
            waiting += _imported(path.read_text(encoding="utf-8"), package, root)
    return sorted(found)


@cache
def _imported(source: str, package: str, root: Path) -> tuple[Path, ...]:
    """Files of the core that a piece of Python imports, with the packages they lie in."""
    try:
        tree = ast.parse(_without_magic(source))
    except SyntaxError:
        return ()  # executing it will say so
    names, face = set(), _face(root)
    if package == f"{CORE}.data" and "import_module(" in source:
        sets = root / "data" / "sources.toml"
        known = tomllib.loads(sets.read_text(encoding="utf-8")) if sets.exists() else {}
        names |= {f"{package}.{name}" for name in known}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
            names |= {*face.values()} if CORE in names and not package else set()
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
            names |= {face.get(alias.name, CORE) for alias in node.names} if base == CORE else set()
        elif isinstance(node, ast.Constant) and "import_module(" in source and package:
            names |= {f"{package}.{node.value}"} if _NAME.fullmatch(str(node.value)) else set()
    return tuple(path for name in sorted(names) for path in _files(name, root))


@cache
def _face(root: Path) -> dict[str, str]:
    """What `lgfed_core` itself hands out, by name: the module that it comes from."""
    face = root / CORE / "__init__.py"
    tree = ast.parse(face.read_text(encoding="utf-8") if face.exists() else "")
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    return {a.asname or a.name: f"{CORE}.{node.module}" for node in nodes for a in node.names}


def _files(name: str, root: Path) -> list[Path]:
    """The files behind a dotted name: its own, if it is a module, and its packages'."""
    parts = name.split(".")
    if parts[0] != CORE:
        return []
    places = [root.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)]
    files = [file for place in places for file in (place / "__init__.py", place.with_suffix(".py"))]
    return [file for file in files if file.is_file()]


def _without_magic(source: str) -> str:
    return "\n".join(
        line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))
    )


@cache
def _digest(path: Path, changed: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
