"""Install the project and what it needs into the environment of this Python, and show how it goes.

`make` runs this with the bare Python of a new .venv: nothing here may need more than the standard
library. pip does the work; it is silent for minutes, so what it has put on the disk is counted.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "book,test,dev"
EVERY = 10  # seconds between two lines where there is no terminal
HERE = Path(sysconfig.get_path("purelib"))


def main() -> int:
    """Install; the exit status of pip."""
    print(f"Installing into {shown(Path(sys.prefix))}, about 2.6 GB (6 GB with PyTorch for CUDA):")
    print(f"  {', '.join(wanted())} and what these need", flush=True)
    log, start = Path(sys.prefix) / "install.log", time.monotonic()
    with tempfile.TemporaryDirectory(dir=sys.prefix) as scratch:
        command = [sys.executable, "-m", "pip", "install", "--progress-bar", "off"]
        command += ["--constraint", "constraints.txt", "--editable", f".[{EXTRAS}]"]
        with log.open("w") as out:
            pip = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | {"TMPDIR": scratch}, stdout=out, stderr=out
            )
        try:
            watch(pip, log, Path(scratch), start)
        except KeyboardInterrupt:
            pip.wait()
            print("\nStopped; the same command begins again.", file=sys.stderr)
            return 130
    if pip.returncode:
        said = log.read_text(errors="replace").splitlines()[-15:]
        print("\n".join(["pip failed:", *said, f"All it said: {shown(log)}"]), file=sys.stderr)
    else:
        done = f"{len(packages())} packages, {megabytes(Path(sys.prefix)):,.0f} MB"
        print(f"installed in {time.monotonic() - start:.0f} s: {done}", flush=True)
    return pip.returncode


def wanted() -> list[str]:
    """Names of the packages that pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(project["dependencies"])
    for extra in EXTRAS.split(","):
        lines += project["optional-dependencies"][extra]
    return list(dict.fromkeys(re.match(r"[\w.-]+", line)[0] for line in lines))


def watch(pip: subprocess.Popen, log: Path, scratch: Path, start: float) -> None:
    """Say how far pip is until it ends: on a terminal in one line, else every few seconds."""
    terminal, told, before = sys.stdout.isatty(), start, len(packages())
    while pip.poll() is None:
        time.sleep(0.5)
        if time.monotonic() - told < (1 if terminal else EVERY):
            continue
        told = time.monotonic()
        said = f"  {told - start:.0f} s: {state(log, scratch, before)}"
        print(f"\r\033[K{said}" if terminal else said, end="" if terminal else "\n", flush=True)
    print("\r\033[K" if terminal else "", end="")


def state(log: Path, scratch: Path, before: int) -> str:
    """What pip is doing: fetching, or unpacking what it fetched."""
    said = log.read_text(errors="replace")
    if found := re.search(r"^Installing collected packages: (.*)$", said, re.MULTILINE):
        return f"unpacked {len(packages()) - before} of {found[1].count(',') + 1} packages"
    named = re.findall(r"^Collecting ([\w.-]+)", said, re.MULTILINE)
    last = f", now {named[-1]}" if named else ""
    return f"fetched {megabytes(scratch):,.0f} MB, {len(named)} packages{last}"


def packages() -> list[Path]:
    """What is installed here."""
    return list(HERE.glob("*.dist-info"))


def megabytes(folder: Path) -> float:
    """Size of all files below ``folder``."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:  # pip has moved it meanwhile
                continue
    return total / 1e6


def shown(path: Path) -> str:
    """``path`` relative to the project where it lies in it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
