"""Artefacts: results that come from released code or from the measuring, and not from a method.

They are those errata of data/paper/errata.toml that say so; one may name the printed numbers that
it is behind, wherever the protocol as released makes them again.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from lgfed_core.paths import PAPER


def named(paper: Path = PAPER) -> list[str]:
    """Each artefact in a line."""
    return [one["moves"] for one in _artefacts(paper)]


def behind(table: str, metric: str, paper: Path = PAPER) -> list[str]:
    """What is behind a metric's numbers in a printed table, each in a line."""
    asked = dict(table=table, metric=metric)
    return [one["moves"] for one in _artefacts(paper) if one.get("behind") == asked]


def _artefacts(paper: Path) -> Iterator[dict]:
    with open(paper / "errata.toml", "rb") as file:
        yield from (one for one in tomllib.load(file)["erratum"] if one.get("artefact"))
