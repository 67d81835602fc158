"""What ``data/sources.toml`` says about each set, and what of it is on this disk."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from lgfed_core import paths
from lgfed_core.errors import DataError

from .mirrors import MIRRORS


@dataclass(frozen=True)
class File:
    """One file of a set in the form it is kept: name, bytes, checksum, mirrors in order."""

    name: str
    size: int
    sha256: str
    mirrors: tuple[dict, ...]

    def __post_init__(self):
        if Path(self.name).name != self.name:
            raise ValueError(f"a file is called {self.name!r}; give a name without folders")
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ValueError(
                f"{self.name} has the sha256 {self.sha256!r}; it has 64 digits from 0 to f"
            )

    def fault(self, path: Path) -> str | None:
        """What is wrong with the copy at ``path``: None when it is the file itself."""
        if not path.is_file():
            return "missing"
        if path.stat().st_size != self.size:
            return f"{path.stat().st_size:,} bytes instead of {self.size:,}"
        try:
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            return f"it cannot be read ({error.strerror})"
        return None if found == self.sha256 else f"sha256 {found} instead of {self.sha256}"


@dataclass(frozen=True)
class Source:
    """A data set as ``data/sources.toml`` describes it."""

    name: str
    title: str
    licence: str
    cite: str
    citation: str
    home: str
    files: tuple[File, ...]
    stand_in: str = ""  # what its pages run on where it cannot be had

    @property
    def folder(self) -> Path:
        """Where its files are kept."""
        return paths.CACHE / self.name

    def faulty(self) -> list[File]:
        """The files that are not there, or are not what they should be."""
        return [file for file in self.files if file.fault(self.folder / file.name)]

    def state(self) -> str:
        """ready, partial or missing; a damaged file is as good as a missing one."""
        return {0: "ready", len(self.files): "missing"}.get(len(self.faulty()), "partial")


def catalogue() -> dict[str, Source]:
    """All sets of ``data/sources.toml``, by name. Raises DataError if the file is not usable."""
    try:
        tables = tomllib.loads(paths.SOURCES.read_text(encoding="utf-8"))
        sources = {}
        for name, table in tables.items():
            files = tuple(File(**{**f, "mirrors": tuple(f["mirrors"])}) for f in table.pop("files"))
            for mirror in (mirror for file in files for mirror in file.mirrors):
                if not any(isinstance(mirror[kind], str) for kind in MIRRORS if kind in mirror):
                    raise ValueError(f"{name} has a mirror {mirror}, none of {', '.join(MIRRORS)}")
            sources[name] = Source(name=name, files=files, **table)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{paths.SOURCES} cannot be read: {name} lacks a key, or has one too many: {error}. A "
            f"set has {_keys(Source)}; a file {_keys(File)}"
        ) from error
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{paths.SOURCES} cannot be read: {error}") from error
    return sources


def _keys(kind: type) -> str:
    return ", ".join(field.name for field in fields(kind))


def source(name: str) -> Source:
    """One set by name. Raises DataError that lists the known ones."""
    known = catalogue()
    if name not in known:
        raise DataError(f"no data set {name!r}; known are: {', '.join(known)}")
    return known[name]


def listing() -> str:
    """A line per set, every checksum looked at: its state, size, licence, citation and folder."""
    rows = [["set", "state", "size", "licence", "citation", "where"]]
    for s in catalogue().values():
        size = f"{sum(file.size for file in s.files) / 1e6:7.1f} MB"
        rows.append([s.name, s.state(), size, s.licence, s.cite, str(s.folder)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
