"""What help() and Shift-Tab show before a docstring: signatures that read as the source does."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import lgfed_core

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
        for parameter in signature.parameters.values():  # a class may have many fields
            assert len(str(parameter.replace(default=parameter.empty))) < 150, called
        if not inspect.isclass(thing):
            assert len(str(_plain(signature))) < 300, called


def _plain(signature: inspect.Signature) -> inspect.Signature:
    """Without defaults: these are the source's own words."""
    some = [p.replace(default=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=some)
