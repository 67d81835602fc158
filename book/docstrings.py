"""The pages on the code: which modules of a room they list, and docstrings as Sphinx wants them.

A page of book/api holds ``<!-- lgfed_core.ROOM -->`` where its modules belong; `filled` puts them
there when the pages are gathered. Sphinx's autodoc then reads the docstrings, through `setup`.
"""

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"<!-- lgfed_core\.(\w+) -->")
ENTRY = re.compile(r"([\w.*]+(?:, [\w.*]+)*): (?=\S)")  # "name, other: what they are"
MARKED = re.compile(r"\s*(:\w[^:]*: ?|[*-] )")
RULE = re.compile(r"\s*=+( +=+)+$")  # of a table
CODE = re.compile(r"(`+)(.+?)\1")


def filled(page: str) -> str:
    """``page`` with the modules of a room at its mark, and a comment that changes with them."""
    return MARK.sub(lambda mark: _modules(mark[1]), page)


def modules(room: str) -> dict[str, Path]:
    """Dotted name -> file: a room and its public modules, or what is one file."""
    folder = ROOT / "lgfed_core" / room
    if folder.with_suffix(".py").exists():
        return {f"lgfed_core.{room}": folder.with_suffix(".py")}
    first = "__init__", "interface"  # what everybody needs
    paths = sorted(folder.rglob("*.py"), key=lambda p: (p.stem not in first, p.parts))
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in paths}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    return {n: p for n, p in names.items() if "._" not in n and (p.parent / "__init__.py").exists()}


def _modules(room: str) -> str:
    found = modules(room)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in found.values())).hexdigest()
    said = [f"% {digest}"]  # a comment: the page is drawn again when the code changes
    for name in found:
        directive = f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```"
        said.append(directive if name == f"lgfed_core.{room}" else f"## {name}\n\n{directive}")
    return "\n\n".join(said)


def plain(lines: list[str]) -> list[str]:
    """A docstring in reStructuredText: names in backticks are code, "name: text" is an item, what
    is indented keeps its lines, and no character in a sentence has another meaning."""
    out: list[str] = []
    listed = raw = block = False
    for line in lines:
        after_blank, full = not out or not out[-1].strip(), bool(line.strip())
        before = listed
        listed = listed and (not full or line.startswith(" ") or bool(ENTRY.match(line)))
        raw = full and (raw or line.lstrip().startswith((">>>", ".. ")) or bool(RULE.match(line)))
        block = line.startswith(" ") and not listed and (block or after_blank)
        if raw:  # an example, a directive of napoleon's, a table
            out.append(line)
        elif mark := MARKED.match(line):  # a field of napoleon's, a bullet
            out.append(mark[0] + _escaped(line[mark.end() :]))
        elif block and full:
            out.append(f"| {_escaped(line.strip())}")
        elif ENTRY.match(line):
            out += [] if listed or after_blank else [""]
            names, _, words = line.partition(": ")
            out.append(f"* ``{names}``: {_escaped(words)}")
            listed = True
        elif listed and line.startswith(" "):
            out.append(f"  {_escaped(line.strip())}")
        else:
            out += [""] if before and full and not after_blank else []
            out.append(_escaped(line))
    return out


def _escaped(text: str) -> str:
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [_bare(text[end : code.start()]), f"``{code[2]}``\\ "]
        end = code.end()
    return "".join([*parts, _bare(text[end:])]).replace("\\  ", " ").removesuffix("\\ ")


def _bare(text: str) -> str:
    return re.sub(r"([*|`\\]|_(?=\W|$))", r"\\\1", text)


def setup(app) -> dict:
    """For Sphinx: after napoleon, which knows "Args:" and "Raises:"."""

    def said(app, what, name, obj, options, lines):
        lines[:] = plain(lines)

    def skipped(app, what, name, obj, skip, options):
        return True if str(obj.__doc__).startswith("Alias for field number") else None

    app.connect("autodoc-process-docstring", said, priority=900)
    app.connect("autodoc-skip-member", skipped)
    return {"parallel_read_safe": True}
