"""Artefacts: results that come from released code or from the measuring, and not from a method.

They are those errata of data/paper/errata.toml that say so. Any erratum may name the printed
numbers that it is behind: an artefact, wherever the protocol as released makes them again.
"""

import tomllib
from pathlib import Path

from lgfed_core.paths import PAPER


def named(paper: Path = PAPER) -> list[str]:
    """Each artefact in a line."""
    return [one["moves"] for one in _errata(paper) if one.get("artefact")]


def beside(
    table: str, metric: str, contrast: str, released: bool, paper: Path = PAPER
) -> list[str]:
    """What is to be said beside a ``contrast`` ("row - row") of a printed table, each in a line.

    released: whether it is one as released, which alone an artefact can be behind.
    """
    return [
        one.get("aside") or f"an artefact: {one['moves']}"
        for one in _errata(paper)
        if (released or not one.get("artefact"))
        and any(_bears_on(case, table, metric, contrast) for case in places(one))
    ]


def places(erratum: dict) -> list[dict]:
    """The printed numbers that an erratum is behind."""
    found = erratum.get("behind", [])
    return found if isinstance(found, list) else [found]


def _bears_on(case: dict, table: str, metric: str, contrast: str) -> bool:
    less = contrast.partition(" - ")[2]
    return (
        case["table"] == table
        and case.get("metric", metric) == metric
        and case.get("less", less) == less
    )


def _errata(paper: Path) -> list[dict]:
    with open(paper / "errata.toml", "rb") as file:
        return tomllib.load(file)["erratum"]
