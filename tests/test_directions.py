"""Imports run one way between rooms, papers do not know each other, no module is in a circle.

Whatever a module imports counts, as soon as it is loaded, inside a function, or for its types
alone; so does what the table of experiments imports by name.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

import lgfed_core
from lgfed_core.papers import experiments

ROOT = Path(lgfed_core.__file__).parent
GROUND = {"paths", "errors", "require", "files", "seeds"}
ROLES = {"data", "partition", "models", "metrics", "evidence"}  # do not know each other
SEES = {"paths": {"errors"}, "errors": {"paths"}, "require": {"errors"}}
SEES |= {"files": {"paths", "errors", "require"}}
SEES |= {"seeds": SEES["files"], "colours": set(), "arguments": set()}
SEES |= {"plotting": GROUND | {"evidence", "colours"}}
SEES |= dict.fromkeys(ROLES, GROUND) | {"methods": GROUND | ROLES}
SEES |= {"engine": GROUND | ROLES | {"methods"}}
SEES |= {"flower": SEES["engine"] | {"engine"}}
SEES |= {"testing": SEES["flower"], "adaptation": SEES["flower"]}
SEES |= {"papers": SEES["engine"] | {"engine", "testing", "plotting", "colours"}}
SEES |= {"fill": SEES["papers"] | {"papers"}}
ANY = {"lgfed_core", "__main__", "bench", "gpu_check"}  # the face, what measures and checks


def modules() -> dict[str, str]:
    """Dotted name below lgfed_core -> source; a package is its folder's name."""
    paths = {path.relative_to(ROOT).with_suffix(""): path for path in ROOT.rglob("*.py")}
    names = {".".join(p.parts).removesuffix("__init__").rstrip("."): f for p, f in paths.items()}
    return {name or "lgfed_core": path.read_text("utf-8") for name, path in names.items()}


def imports(name: str, source: str, known: set[str]) -> set[str]:
    """Modules of ours that one imports, wherever in its source that stands."""
    found, here = set[str](), ROOT.name if name == ROOT.name else f"{ROOT.name}.{name}"
    if name != ROOT.name and not any(other.startswith(f"{name}.") for other in known):
        here = here.rpartition(".")[0]  # the package of a module
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), here)
            if base.partition(".")[0] == ROOT.name:
                base = base.removeprefix(ROOT.name).removeprefix(".")
                both = [(f"{base}.{alias.name}".lstrip("."), base) for alias in node.names]
                found |= {inside if inside in known else of or ROOT.name for inside, of in both}
    if name == "papers.experiments":
        found |= {f"papers.{place.module}" for place in experiments.PLACES.values()}
    return found - {name}


def broken(sources: dict[str, str]) -> list[str]:
    """What breaks the rules, in words; nothing where all is well."""
    wrong, graph = [], {}
    for name, source in sources.items():
        found, (room, *inside) = imports(name, source, set(sources)), name.split(".")
        graph[name] = found
        for other in found:
            to, *beyond = other.split(".")
            one = inside[:1] and inside[0] in PAPERS and beyond[:1] and beyond[0] in PAPERS
            if to != room and room not in ANY and to not in SEES[room]:
                wrong.append(f"{name} imports {other}")
            elif room == to == "papers" and one and inside[0] != beyond[0]:
                wrong.append(f"{name} imports {other}, of another paper")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        wrong.append("a circle: " + " -> ".join(error.args[1]))
    return wrong


PAPERS = {path.name for path in (ROOT / "papers").iterdir() if path.is_dir()}


def test_imports_run_one_way():
    assert broken(modules()) == []


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("evidence.report", "from lgfed_core.papers.lgfedavg import mood", "imports papers"),
        ("data.mnist", "from lgfed_core.partition import iid", "data.mnist imports partition"),
        ("engine.loop", "def f():\n    from ..papers import board", "engine.loop imports papers"),
        ("papers.fade.theory.claims", "from ...cgau import gains", "of another paper"),
        ("errors", "from .seeds import stream", "errors imports seeds"),
        ("engine.phase", "from .loop import run", "a circle: "),
        ("engine.phase", "def f():\n    from .loop import run", "a circle: "),
        ("papers.settings", "if TYPE_CHECKING:\n    from .experiment import Part", "a circle: "),
        ("papers.commands", "from . import experiments", "a circle: "),
    ],
)
def test_an_import_that_breaks_a_rule_is_named(name, line, said):
    sources = modules()
    assert any(said in words for words in broken(sources | {name: f"{sources[name]}\n{line}\n"}))
