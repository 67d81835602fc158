"""Where a number was made: the processor, the version of PyTorch, the commit of this package."""

import platform
import re
import subprocess
from functools import lru_cache
from pathlib import Path

import torch


def provenance(device: torch.device) -> dict[str, str]:
    """The columns ``device``, ``torch`` and ``commit``.

    device: "cpu: <model>" or "cuda: <model>". commit: short hash of the checkout this package was
    imported from, with "+dirty" when its code or data/sources.toml differs from it, new modules
    included; "unknown" outside git.
    """
    model = torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu()
    return {"device": f"{device.type}: {model}", "torch": torch.__version__, "commit": _commit()}


@lru_cache
def _cpu() -> str:
    """The processor's name, as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        return re.findall(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)[0].strip()
    except (OSError, IndexError):
        return platform.processor() or platform.machine() or "unknown"


@lru_cache
def _commit(package: Path = Path(__file__).parent.parent) -> str:
    """Asked once a process, as that is the code which was imported."""

    def git(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["git", "-C", str(package), *arguments], capture_output=True, text=True, check=True
        )

    try:
        git("ls-files", "--error-unmatch", "engine/provenance.py")  # not just in someone's checkout
        short = git("rev-parse", "--short=8", "HEAD").stdout.strip()
        code = ".", "../data/sources.toml"
        changed = git("status", "--porcelain", "--untracked-files=no", *code).stdout.strip()
        changed += git("ls-files", "--others", "--exclude-standard", "*.py").stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{short}+dirty" if changed else short
