"""Where things live: below one root, a checkout or ``LGFED_HOME``; or in what a wheel carries.

A wheel (setup.py) carries the list of sources, the papers' numbers and the stored rows, which are
never written; downloads and checkpoints then go to the user's cache folder. ``LGFED_HOME`` gives
rows a place of their own, and the lists are the wheel's or the checkout's until there are some.
"""

import os
from pathlib import Path

from platformdirs import user_cache_path

_PACKAGE = Path(__file__).resolve().parent
_NAMED = os.path.expanduser(os.environ.get("LGFED_HOME", ""))  # "~" comes from files of settings
CARRIED = _PACKAGE / "_data"  # of a wheel; a checkout has none
INSTALLED = CARRIED.is_dir() and not _NAMED  # nothing here is ours to write
ROOT = Path(_NAMED or (_PACKAGE if INSTALLED else _PACKAGE.parent)).absolute()


def _list(name: str) -> Path:
    """Of the root, or, where that has none, what came with the package."""
    came = CARRIED if CARRIED.is_dir() else _PACKAGE.parent / "data"
    own = ROOT / "data" / name
    return own if _NAMED and own.exists() else came / name


def _place(variable: str, name: str) -> Path:
    usual = user_cache_path("lgfed", appauthor=False) if INSTALLED else ROOT / "data"
    return Path(os.path.expanduser(os.environ.get(variable) or usual / name)).absolute()


SOURCES = _list("sources.toml")  # mirrors, checksums, licences
PAPER = _list("paper")  # the papers' numbers, read only
RESULTS = CARRIED / "results" if INSTALLED else ROOT / "data" / "results"  # appended by `run`
CACHE = _place("LGFED_CACHE", "cache")  # downloads, not in git
RUNS = _place("LGFED_RUNS", "runs")  # checkpoints, not in git
