"""Checkpoints: one safetensors file, written beside its final name and renamed.

Nothing is pickled, so a file from elsewhere cannot run code. A file carries the fingerprint of
the run it belongs to and is refused by any other.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lgfed_core.errors import CheckpointError
from lgfed_core.files import replacing

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


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
        total.update(tensor.detach().cpu().contiguous().numpy())
    return total.hexdigest()[:16]


def save(path: Path, tensors: dict[str, Tensor], facts: dict, identity: str) -> None:
    """Write ``tensors`` and JSON-able ``facts`` to ``path``: whole, or not at all.

    Raises CheckpointError when the file cannot be written (a full disk, say).
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        meta = {"identity": identity, "facts": json.dumps(facts)}
        with replacing(path, locked=True) as part:
            save_file({n: t.contiguous() for n, t in tensors.items()}, part, metadata=meta)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot write {path}: {error}; free some space or set LGFED_RUNS"
        ) from error


@contextmanager
def claimed(path: Path | None) -> Iterator[None]:
    """Hold the run of ``path``; raises CheckpointError while another process holds it."""
    if path is None or fcntl is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path.with_name(f".{path.name}.lock"), "w")  # noqa: SIM115
    except OSError as error:
        raise CheckpointError(f"cannot write beside {path}: {error}; set LGFED_RUNS") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(f"another process is running {path}; wait for it") from None
        yield


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
        f"{path} belongs to another run (other settings or data, a CPU and not a GPU, other lanes, "
        "or an older engine whose numbers differ); run as it was made, or delete it to start that "
        "part again"
    )
