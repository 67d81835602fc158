"""Checkpoints: one safetensors file, written beside its final name and renamed.

Nothing is pickled, so a file from elsewhere cannot run code. A file carries the fingerprint of
the run it belongs to and is refused by any other.
"""

import hashlib
import json
import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .errors import CheckpointError


def fingerprint(**what: object) -> str:
    """A short hash of everything that decides a run's numbers; order of keys does not matter."""
    text = json.dumps(what, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest(*tensors: Tensor) -> str:
    """A hash of the contents of ``tensors``."""
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(tensor.detach().cpu().contiguous().numpy())
    return total.hexdigest()[:16]


def save(path: Path, tensors: dict[str, Tensor], facts: dict, identity: str) -> None:
    """Write ``tensors`` and JSON-able ``facts`` to ``path``: whole, or not at all.

    Raises CheckpointError when the file cannot be written (a full disk, say).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        meta = {"identity": identity, "facts": json.dumps(facts)}
        save_file({n: t.contiguous() for n, t in tensors.items()}, part, metadata=meta)
        with open(part, "rb") as written:
            os.fsync(written.fileno())  # on disk before the name changes
        os.replace(part, path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot write {path}: {error}; free some space or set LGFED_RUNS"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def load(path: Path, identity: str) -> tuple[dict[str, Tensor], dict] | None:
    """Tensors and facts of ``path``, or None when there is no such file.

    Raises CheckpointError when the file is damaged or belongs to another run.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            meta = file.metadata() or {}
            if meta.get("identity") == identity:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                return tensors, json.loads(meta["facts"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error}); delete it to start that part again"
        ) from error
    raise CheckpointError(
        f"{path} belongs to another run (other settings, data or code of the protocol); "
        "delete it, or run with the settings it was made with"
    )
