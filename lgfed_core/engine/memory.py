"""Memory for the tensors of a phase: in common for forked workers, on disk where it would not fit.

The private layers of a hundred thousand devices may be larger than the machine's memory, and a
round touches those of a cohort. They lie in a file that has no name: nothing is left when the
process ends, however it ends.
"""

import math
import mmap
import shutil
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from lgfed_core import paths
from lgfed_core.errors import SettingsError

SHARE = 0.5  # of the available memory, at most, for one tensor


def zeros(*shape: int, forked: bool) -> Tensor:
    """Zeros on the CPU, which forked workers share, and do not copy, if ``forked``.

    What takes more than `SHARE` of the available memory is a file in `paths.RUNS`. Raises
    SettingsError where that does not fit on the disk either.
    """
    kind = torch.get_default_dtype()
    size = math.prod(shape) * kind.itemsize
    if size > SHARE * available():
        memory = _on_disk(size, shape)
    elif forked and size:
        memory = mmap.mmap(-1, size)  # backed by no file, so no limit of /dev/shm
    else:
        return torch.zeros(*shape, dtype=kind)
    return torch.frombuffer(memory, dtype=kind).view(shape)


def to_device(value: Tensor, place: torch.device) -> Tensor:
    """``value`` at ``place``; to a GPU from pinned memory, without waiting for it."""
    if place.type == "cuda" and value.device.type == "cpu":
        value = torch.empty(value.shape, dtype=value.dtype, pin_memory=True).copy_(value)  # dense
    return value.to(place, non_blocking=True)


def available() -> float:
    """Bytes of memory that this process may still take; infinite where Linux does not say."""
    found = [math.inf]
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(1024 * int(lines["MemAvailable"].split()[0]))
        group = Path("/sys/fs/cgroup")  # of a container with a limit of its own
        limit, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        found.append(int(limit) - int(used))  # "max" is no number: no limit
    except (OSError, ValueError, KeyError):
        pass
    return min(found)


def _on_disk(size: int, shape: tuple[int, ...]) -> mmap.mmap:
    paths.RUNS.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(paths.RUNS).free
    if size > free:
        raise SettingsError(
            f"a tensor of {' x '.join(map(str, shape))} numbers takes {size / 1e9:.1f} GB: "
            f"too much for the memory ({available() / 1e9:.1f} GB) and the disk of {paths.RUNS} "
            f"({free / 1e9:.1f} GB); set LGFED_RUNS to a folder with more room, or take fewer "
            "devices or seeds at once"
        )
    with tempfile.TemporaryFile(dir=paths.RUNS) as file:
        file.truncate(size)
        return mmap.mmap(file.fileno(), size)
