"""The real data sets: fetched once, checked by sha256, handed over as tensors.

>>> from lgfed_core import data
>>> mnist = data.load("mnist")          # fetches what is missing, then about a second
>>> mnist.train.x.shape
torch.Size([60000, 784])

Where each file comes from, its licence and citation: ``data/sources.toml``; what is in it:
``data/README.md``.
"""

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgfed_core.errors import DataError, NotAvailable, SettingsError

from . import catalogue, sources

if TYPE_CHECKING:
    from . import adult as adult, cifar10 as cifar10, mnist as mnist, usps as usps
    from .dataset import Dataset as Dataset, Split as Split, subset as subset

__all__ = ["Dataset", "Split", "get", "load", "main", "subset"]

_MODULES = frozenset(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
_SHAPES = ("Dataset", "Split", "subset")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_SHAPES})


def __getattr__(name: str):
    """Import a shape or a module as it is first asked for: PyTorch takes seconds, names none."""
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _SHAPES:
        return getattr(import_module(".dataset", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _of(name: str, attribute: str) -> Any:
    """What the module called as a set has under this name; None where either is missing."""
    module = import_module(f".{name}", __name__) if name in _MODULES else None
    return getattr(module, attribute, None)


def get(name: str) -> Path:
    """Fetch a set if it is not here, check it, and return its folder. Raises DataError."""
    return sources.fetch(name, _of(name, "rebuild"))


def load(name: str, **options) -> "Dataset":
    """A data set as float32 tensors, preprocessed as in the papers; fetched first if missing.

    name: of ``data/sources.toml``, with a module of that name here that has a ``read(folder)``:
    "mnist", "cifar10", "adult", "usps". options: those of that ``read``, e.g.
    ``load("adult", rows=30_000)``. Raises DataError for an unknown name, where no mirror works, and
    for a file that is not what it should be; SettingsError for an option that the set lacks.
    """
    if (read := _of(catalogue.source(name).name, "read")) is None:
        raise DataError(
            f"{name}: lgfed_core/data/{name}.py has no read(folder) that makes a Dataset of it; "
            f"data.get({name!r}) gives the folder of its files"
        )
    known = list(signature(read).parameters)[1:]
    if unknown := options.keys() - known:
        said = f"it has {', '.join(known)}" if known else "it takes none"
        raise SettingsError(f"{name} has no option {', '.join(sorted(unknown))}; {said}")
    return read(get(name), **options)


def main(names: list[str], stand_ins: bool = False) -> int:
    """``python -m lgfed_core data [NAME ...]``: list the sets, or get the named ones.

    stand_ins: a set that cannot be had is no error if others stand in for it on its pages. Returns
    the exit status: 0, or 1 when a set is unknown or could not be fetched.
    """
    try:
        for name in names:
            catalogue.source(name)  # all names are checked before the first long download
        if not names:
            print(catalogue.listing())
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    return int(sum(not _got(name, stand_ins) for name in names) > 0)


def _got(name: str, stand_ins: bool) -> bool:
    """Get a set aloud; whether it is here, or others stand in for it."""
    wanted = catalogue.source(name)
    replaced = stand_ins and wanted.stand_in
    waiting = sum(file.size for file in wanted.faulty())
    if waiting and not replaced:
        print(f"{name}: fetching {waiting / 1e6:,.1f} MB", flush=True)
    try:
        print(f"{name}: ready in {get(name)}", flush=True)
    except DataError as error:
        if replaced and isinstance(error, NotAvailable):
            why = f"`python -m lgfed_core data {name}` says why"
            print(f"{name}: cannot be had here, {replaced} stand in for it ({why})", flush=True)
            return True
        print(error, file=sys.stderr)
        return False
    return True
