"""Checkpoints: one safetensors file, written in a folder beside its final name and renamed.

Nothing is pickled, so a file from elsewhere cannot run code. A file carries the fingerprint of
the run it belongs to and is refused by any other, and a checksum of all that is in it. The file
before it is kept beside it, as ``<name>.previous.safetensors``, until the run is complete: it takes
over when the newest is gone.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lgfed_core import paths
from lgfed_core.errors import Busy, CheckpointError
from lgfed_core.files import locked, replacing


def fingerprint(**what: object) -> str:
    """A short hash of everything that decides a run's numbers; order of keys does not matter.

    Raises TypeError for what is not plain JSON, rather than hash the name of an object.
    """
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def folder_name(start: str, cfg, usual, seeds: Sequence[int]) -> str:
    """The name of a run's folder: changed settings and other seeds never share one.

    cfg, usual: dataclasses; what differs between them is part of the name.
    """
    changed = {k: v for k, v in asdict(cfg).items() if v != getattr(usual, k)}
    name = start + (
        f"-seed{seeds[0]}" if len(seeds) == 1 else f"-seeds-{fingerprint(seeds=list(seeds))}"
    )
    return name + (f"-{fingerprint(**changed)}" if changed else "")


def digest(*tensors: Tensor) -> str:
    """A hash of the contents of ``tensors``."""
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(_bytes(tensor))
    return total.hexdigest()[:16]


def _bytes(tensor: Tensor) -> memoryview:
    """What ``tensor`` holds, of any type, as bytes."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def _checksum(tensors: dict[str, Tensor], identity: str, facts: str) -> str:
    """A hash of all that a file says: names, types, shapes and contents of tensors, and texts."""
    said = [[n, str(t.dtype), list(t.shape)] for n, t in sorted(tensors.items())]
    total = hashlib.sha256(json.dumps([identity, facts, said]).encode())
    for name in sorted(tensors):
        total.update(_bytes(tensors[name]))
    return total.hexdigest()


def previous(path: Path) -> Path:
    """Where the checkpoint before the one at ``path`` is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save(
    path: Path, tensors: dict[str, Tensor], facts: dict, identity: str, last: bool = False
) -> None:
    """Write ``tensors`` and JSON-able ``facts`` to ``path``: whole, or not at all.

    The file that was there becomes the `previous` one; after the ``last`` there is none. Raises
    CheckpointError when the file cannot be written (a full disk, say).
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(facts)
        meta = {"identity": identity, "facts": text, "sha256": _checksum(tensors, identity, text)}
        with replacing(path, locked=True) as part:
            save_file({n: t.contiguous() for n, t in tensors.items()}, part, metadata=meta)
            if path.exists():
                with suppress(OSError):  # a file system without links keeps one file
                    previous(path).unlink(missing_ok=True)
                    os.link(path, previous(path))
        if last:
            previous(path).unlink(missing_ok=True)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot write {path}: {error}; free some space or {_elsewhere(path)}"
        ) from error


def _elsewhere(path: Path) -> str:
    """What puts a checkpoint in another place."""
    own = path.absolute().is_relative_to(paths.RUNS)
    return "set LGFED_RUNS to another folder" if own else "name another file to save to"


@contextmanager
def claimed(path: Path | None, folder: bool = False) -> Iterator[None]:
    """Hold the run of the checkpoint ``path``, or of a whole ``folder`` of them; None: of none.

    Raises Busy while another process holds it, and CheckpointError where nothing can be kept.
    """
    if path is None:
        yield
        return
    with ExitStack() as held:
        try:
            lock = path if folder else path.with_name(f".{path.name}.lock")
            (lock if folder else lock.parent).mkdir(parents=True, exist_ok=True)
            if not folder:
                lock.touch()
            held.enter_context(locked(lock, wait=False))
        except BlockingIOError:
            raise Busy(
                f"another process is running {path}; wait for it, or take other seeds"
            ) from None
        except OSError as error:
            raise CheckpointError(
                f"cannot write beside {path}: {error}; {_elsewhere(path)}"
            ) from error
        yield


def load(
    path: Path,
    identity: str,
    check: Callable[[dict[str, Tensor], dict], None] = lambda tensors, facts: None,
) -> tuple[dict[str, Tensor], dict] | None:
    """Tensors and facts of ``path``, or of the `previous` file where that one is gone.

    None when there is neither. ``check`` raises ValueError for contents that do not fit the run.
    Raises CheckpointError when the file is damaged, naming an older one that is sound, belongs to
    another run, or is something else.
    """
    older = previous(path)
    if not path.exists():
        if not older.exists():
            return None
        path = older
    try:
        return _read(path, identity, check)
    except _Damaged as error:
        advice, kept = "delete it to start that part again", path != older and older.exists()
        if _foreign(path) and not kept:
            raise CheckpointError(
                f"{path} is there and no checkpoint of a run; name another file to save to, or "
                "move it away"
            ) from error
        if kept:
            advice = f"delete it and {older.name} beside it to start that part again"
            with suppress(CheckpointError):
                number = _read(older, identity, check)[1].get("round")
                advice = (
                    f"an older one, after round {number}, is sound: delete {path.name} and run "
                    f"again to go on from {older.name}"
                )
        raise CheckpointError(f"{path} is damaged ({error}); {advice}") from error


def _foreign(path: Path) -> bool:
    """Whether a file begins as none of safetensors' does: a length of 8 bytes, and a brace."""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(9)
        return int.from_bytes(head[:8], "little") >= 2**32 and head[8:] != b"{"
    return False


class _Damaged(CheckpointError):
    """A file whose contents are not what was written."""


def _read(path: Path, identity: str, check: Callable) -> tuple[dict[str, Tensor], dict]:
    try:
        with safe_open(path, framework="pt") as file:
            meta = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        made_by, text, stated = meta["identity"], meta["facts"], meta.get("sha256")
        if stated is not None and stated != _checksum(tensors, made_by, text):
            raise ValueError("its checksum is not that of its contents")
        if made_by == identity:
            if stated is None:
                raise ValueError("it has no checksum")
            facts = json.loads(text)
            check(tensors, facts)
            return tensors, facts
    except Exception as error:  # whatever a reader of broken bytes may think of
        raise _Damaged(f"{type(error).__name__}: {error}") from error
    which = f"it and {older.name}" if (older := previous(path)).exists() else "it"
    raise CheckpointError(
        f"{path} belongs to another run (other settings or data, a CPU and not a GPU, other lanes, "
        f"or an older engine whose numbers differ); run as it was made, or delete {which} to start "
        "that part again"
    )
