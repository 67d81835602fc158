"""Take this machine's folders out of executed notebooks: pages read the same wherever they are
built, and do not show where their author keeps the project."""

import html
import json
import os
import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).absolute().parent.parent
ENDS = r"(?!\w|[.-]\w)"  # not a longer name
CELL = r"/ipykernel_\d+/\d+\.py"  # the file that a kernel pretends to run


def without_places(notebook: Any) -> Any:
    """A copy of a notebook, or of any value of one, with short names for this machine's folders.

    Values are searched one by one. A notebook's text as JSON has other characters in the place of
    some, and a folder with one of these would not be found in it.
    """
    known = _patterns()

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            for pattern, name in known:
                value = pattern.sub(name, value)
        elif isinstance(value, dict):
            return type(value)({walk(key): walk(inner) for key, inner in value.items()})
        elif isinstance(value, list | tuple):
            return [walk(inner) for inner in value]
        return value

    return walk(notebook)


def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """What is replaced by what, in this order."""
    scratch = "|".join(_any(path) for path in _ways(tempfile.gettempdir()))
    found = [(re.compile(rf"(?:{scratch}){CELL}|(?<![^\s\"])[^\s\"]*{CELL}"), "<cell>")]
    for path, name in _folders():
        found.append((re.compile(_any(path) + ENDS), name))
    return found


def _folders() -> Iterator[tuple[Path, str]]:
    home = os.path.expanduser("~")  # and not Path.home(), which raises where there is none
    for folder, name in ((ROOT, "."), (sys.prefix, ".venv"), (home, "~")):
        for path in _ways(folder):
            if os.path.isabs(folder) and path != Path(path.anchor):
                yield path, name


def _ways(folder: Path | str) -> list[Path]:
    """A folder by the name it was given, and by that without links."""
    return list(dict.fromkeys((Path(folder).absolute(), Path(folder).resolve())))


def _any(path: Path) -> str:
    """A pattern for all spellings of ``path``, in large and small letters where these are one."""
    spelled = sorted(_spellings(str(path)), key=lambda text: (-len(text), text))
    flags = "i" if _ignores_case(path) else ""
    return f"(?{flags}:{'|'.join(map(re.escape, spelled))})"


def _spellings(text: str) -> set[str]:
    """A path as it is, and as it stands in Python, JSON, HTML and addresses."""
    found = set()
    for form in (text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))):
        found |= {form, html.escape(form), html.escape(form, quote=False)}
        found |= {repr(form)[1:-1], ascii(form)[1:-1], quote(os.fsencode(form))}
        found |= {json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]}
    return found


def _ignores_case(path: Path) -> bool:
    """Whether the disk knows ``path`` in other letters, too, as those of macOS and Windows do."""
    other = path.with_name(path.name.swapcase())
    try:
        return other != path and other.samefile(path)
    except OSError:
        return False
