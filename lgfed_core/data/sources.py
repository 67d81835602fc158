"""From ``data/sources.toml`` to checked files in the cache, whatever happens on the way."""

import contextlib
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from lgfed_core import files, paths
from lgfed_core.errors import DataError, NotAvailable

from . import mirrors
from .catalogue import File, Source, source
from .mirrors import MirrorError, Shelf, WrongFile

Rebuild = Callable[[list[bytes], dict], bytes]


def fetch(name: str, rebuild: Rebuild | None = None) -> Path:
    """Make sure that every file of a set is in the cache, and return its folder.

    Files that are there and right are left alone. The others are fetched from the first mirror
    that has them, under a temporary name, checked, and only then renamed; two processes may do
    this at the same time.

    rebuild: makes the bytes of a file out of a mirror's ``members``, for mirrors that carry the
    content in another form. Raises NotAvailable where no mirror has it here (the message lists each
    with its reason); DataError for an unknown set, where what the mirrors have, or the copy here,
    is not the file, and where the disk is full or cannot be written.
    """
    wanted = source(name)
    if not wanted.faulty():
        return wanted.folder
    try:
        wanted.folder.mkdir(parents=True, exist_ok=True)
        with _lock(wanted.folder) as alone:
            if alone:  # what a killed process left
                for path in wanted.folder.glob(".part-*"):
                    shutil.rmtree(path, ignore_errors=True)
                for path in wanted.folder.glob(".*.part"):
                    path.unlink(missing_ok=True)
            with tempfile.TemporaryDirectory(prefix=".part-", dir=wanted.folder) as shelf_folder:
                shelf = Shelf(Path(shelf_folder), name, _most(wanted))
                for file in wanted.faulty():
                    _fetch_file(wanted, file, shelf, rebuild)
    except OSError as error:
        raise DataError(_disk_message(wanted, error)) from error
    return wanted.folder


def unpacked(name: str, folders: Iterable[str]) -> Path | None:
    """Where somebody has unpacked a set, with these ``folders``: in the cache or `LGFED_MIRROR`."""
    mirror = os.environ.get("LGFED_MIRROR", "")
    places = [paths.CACHE / name, *([Path(mirror).expanduser() / name] if mirror else [])]
    return next((place for place in places if all((place / f).is_dir() for f in folders)), None)


def _fetch_file(wanted: Source, file: File, shelf: Shelf, rebuild: Rebuild | None) -> None:
    reasons, wrong = [], file.fault(wanted.folder / file.name) != "missing"
    for mirror in file.mirrors:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=wanted.folder)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as out, _content(shelf, mirror, rebuild) as stream:
                _copy(stream, out, file.size)
            fault = file.fault(part)
            if fault is None:
                part.chmod(0o644)
                files.named(part, wanted.folder / file.name)
                return
            raise WrongFile(f"wrong content, {fault}")
        except MirrorError as error:
            wrong |= isinstance(error, WrongFile)
            reasons.append(f"{mirrors.title(mirror)}: {error}")
        finally:
            part.unlink(missing_ok=True)
    kind = DataError if wrong else NotAvailable
    raise kind(_give_up_message(wanted, file, reasons))


@contextlib.contextmanager
def _content(shelf: Shelf, mirror: dict, rebuild: Rebuild | None) -> Iterator[IO[bytes]]:
    archive = shelf.archive(mirror)
    if "members" not in mirror:
        with mirrors.member(archive, mirror.get("member")) as stream:
            yield stream
        return
    if rebuild is None:
        raise MirrorError("this set has no way to rebuild a file from several members")
    parts = []
    for name in mirror["members"]:
        with mirrors.member(archive, name) as stream:
            out = io.BytesIO()
            _copy(stream, out, shelf.most)
        if out.tell() > shelf.most:
            raise WrongFile(f"{name} is longer than {shelf.most:,} bytes, more than it can be")
        parts.append(out.getvalue())
    try:
        content = rebuild(parts, mirror)
    except Exception as error:  # whatever a reader of strange bytes may think of
        raise WrongFile(f"cannot be rebuilt: {error}") from error
    yield io.BytesIO(content)


def _most(wanted: Source) -> int:
    """Bytes that a download or an unpacked member can have: other forms of a set are not larger."""
    return 8 * sum(file.size for file in wanted.files) + (64 << 20)


def _copy(stream: IO[bytes], out: IO[bytes], size: int) -> None:
    """Copy to the end; stop early when it is longer than the file can be. Raises WrongFile where
    what comes cannot be unpacked."""
    left, block = size + 1, b"some"
    while left > 0 and block:
        try:
            block = stream.read(min(mirrors.CHUNK, left))
        except Exception as error:  # damaged bytes make readers raise anything
            raise WrongFile(f"it is damaged ({error!r})") from error
        out.write(block)
        left -= len(block)
    out.flush()


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[bool]:
    """Only one process fetches into a folder; yields False where locks do not exist."""
    with contextlib.ExitStack() as held:
        alone = files.fcntl is not None
        try:
            told = f"{folder.name}: another process is fetching it, waiting"
            held.enter_context(files.locked(folder, wait=told))
        except OSError:  # a file system without locks
            alone = False
        yield alone


def _give_up_message(wanted: Source, file: File, reasons: list[str]) -> str:
    path = wanted.folder / file.name
    there = file.fault(path)
    lines = [f"{wanted.name}: {file.name} could not be fetched. Tried, in this order:"]
    lines += [f"  {i}. {reason}" for i, reason in enumerate(reasons, 1)]
    if there != "missing":
        lines.append(f"The copy at {path} is not it: {there}.")
    local = [m["local"] for m in file.mirrors if "local" in m]
    ways = [f"put the file at {path} ({file.size:,} bytes, sha256 {file.sha256})"]
    if len(local) < len(file.mirrors):
        ways.insert(0, f"go online and repeat `python -m lgfed_core data {wanted.name}`")
    if local:
        ways.append(f"set LGFED_MIRROR to a folder that holds {' or '.join(local)}")
    return "\n".join([*lines, f"What to do: {'; or '.join(ways)}."])


def _disk_message(wanted: Source, error: OSError) -> str:
    where = wanted.folder
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        need = sum(file.size for file in wanted.files) / 1e6
        return (
            f"{wanted.name}: no space left while fetching to {where} ({error.strerror}); it needs "
            f"{need:,.0f} MB, and about as much again while it is unpacked. Nothing was left "
            "behind. Free some space, or set LGFED_CACHE to a folder on another disk."
        )
    return f"{wanted.name}: cannot write to {where} ({error}). Set LGFED_CACHE to another folder."
