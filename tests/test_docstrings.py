"""Docstrings and signatures: every room has its page, and all is read as it is meant."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from sphinx.ext.napoleon import Config, GoogleDocstring
from test_directions import ROLES

import docstrings
import lgfed_core
from lgfed_core.paths import ROOT

PAGES = sorted((ROOT / "book" / "api").glob("*.md"))
IVAR = Config(napoleon_use_ivar=True)  # as in _config.yml
QUIET = {"report_level": 2, "warning_stream": False}
SAID = """The share `a_k` of |p - q|, as *released*.

rows: one line per seed
    and round, in `data`.
x, y: [n] each.

>>> 2 * 3
6

* `one`: of *two*
  lines

    folder/   what is
              in it

====  ====
`a`   b
====  ====
1     2
====  ====
"""


def test_every_room_has_a_page_that_lists_its_modules():
    toc = (ROOT / "book" / "_toc.yml").read_text()
    assert {page.stem for page in PAGES} >= ROLES | {"methods", "engine"}
    for page in PAGES:
        assert f"- file: api/{page.stem}\n" in toc
        assert f"](api/{page.stem}.md)" in (ROOT / "book" / "api.md").read_text()
        text = docstrings.filled(page.read_text())
        assert f"automodule:: lgfed_core.{page.stem}\n" in text and "<!--" not in text
    methods = docstrings.modules("methods")
    assert next(iter(methods)) == "lgfed_core.methods"
    assert "lgfed_core.methods.fedprox" in methods
    assert [*docstrings.modules("seeds")] == ["lgfed_core.seeds"]
    assert not [name for name in docstrings.modules("data") if "._" in name]


def test_a_page_changes_with_the_code(tmp_path, monkeypatch):
    folder = tmp_path / "lgfed_core" / "room"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('"""A room."""')
    monkeypatch.setattr(docstrings, "ROOT", tmp_path)
    before = docstrings.filled("<!-- lgfed_core.room -->")
    (folder / "__init__.py").write_text('"""Another."""')
    assert docstrings.filled("<!-- lgfed_core.room -->") != before


def read(lines: list[str]) -> nodes.document:
    """What Sphinx would make of a docstring."""
    return publish_doctree("\n".join(docstrings.plain(lines)), settings_overrides=QUIET)


def test_a_docstring_is_read_as_it_is_meant():
    found = read(SAID.splitlines())
    assert not list(found.findall(lambda node: node.tagname == "system_message"))
    assert found[0].astext() == "The share a_k of |p - q|, as *released*."
    items = [item.astext() for item in found[1]]
    assert items == ["rows: one line per seed\nand round, in data.", "x, y: [n] each."]
    tags = [node.tagname for node in found]
    assert tags[2:] == ["doctest_block", "bullet_list", "line_block", "table"]
    assert found[3].astext() == "one: of *two*\nlines"
    assert [line.astext() for line in found[4]] == ["folder/   what is", "in it"]


def test_docstrings_of_the_rooms_are_read_without_a_complaint():
    wrong = {}
    for room in (mark for page in PAGES for mark in docstrings.MARK.findall(page.read_text())):
        for name, path in docstrings.modules(room).items():
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    tree = read(GoogleDocstring(ast.get_docstring(node) or "", IVAR).lines())
                    told = [*tree.findall(nodes.system_message), *tree.transform_messages]
                    found = [message.astext() for message in told if message["level"] > 1]
                    wrong |= {f"{name}: {getattr(node, 'name', '')}": found} if found else {}
    assert wrong == {}


@pytest.mark.parametrize("line", [":param z: of `f(x)`|y|", "    :returns: *both*"])
def test_what_napoleon_has_made_stays_a_field(line):
    (said,) = docstrings.plain([line])
    assert said.startswith(line[: line.index(": ") + 2])
    found = publish_doctree(said)
    assert not list(found.findall(lambda node: node.tagname == "system_message"))
    assert next(iter(found.findall(lambda node: node.tagname == "field")))


APART = ("lgfed_core.__main__", "lgfed_core.bench.pfl", "lgfed_core.flower.app")  # run or absent
MODULES = [found.name for found in walk_packages(lgfed_core.__path__, "lgfed_core.")]
MODULES = [name for name in MODULES if not name.startswith(APART)]


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """The public functions and classes that a module defines, and the methods of these."""
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
            continue
        if inspect.isclass(thing) and not issubclass(thing, BaseException | str):
            yield name, thing
            methods = [n for n in vars(thing) if not n.startswith("_")]
            yield from ((f"{name}.{n}", getattr(thing, n)) for n in methods)
        elif inspect.isroutine(thing):
            yield name, thing


@pytest.mark.parametrize("name", MODULES)
def test_signatures_are_short_and_read_as_in_the_source(name):
    for called, thing in public(import_module(name)):
        if not callable(thing):
            continue
        signature = inspect.signature(thing)
        assert "_typing" not in str(signature), called
        # Without defaults: these are the source's own words.
        plain = [p.replace(default=p.empty) for p in signature.parameters.values()]
        assert all(len(str(parameter)) < 150 for parameter in plain), called
        if not inspect.isclass(thing):  # which may have many fields
            assert len(str(signature.replace(parameters=plain))) < 320, called
