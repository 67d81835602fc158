"""What the page on the status of this copy says: each notebook's scale, time and date; versions."""

import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from execute import stamp

MARK = "<!-- status -->"
PACKAGES = ("torch", "numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "jupyter-book")


def filled(page: str, names: list[str], executed: Path, scale: str) -> str:
    """``page`` with a table of the notebooks ``names`` and a line of versions at its mark."""
    lines = ["| notebook | executed (UTC) | seconds |", "|---|---|---:|"]
    for name in names:
        known = stamp(executed / name)
        took = json.loads(known.read_text())["seconds"] if known.exists() else "not known"
        when = datetime.fromtimestamp((executed / name).stat().st_mtime, UTC)
        title = name.removesuffix(".ipynb")
        lines.append(f"| [{title}]({name}) | {when:%Y-%m-%d %H:%M} | {took} |")
    built = [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in PACKAGES)]
    head = f"All at scale {scale}, drawn with {', '.join(built)}."
    return page.replace(MARK, "\n".join([head, "", *lines]))
