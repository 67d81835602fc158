"""Write what is a list: ``errata.md`` and ``concordance.md``, each from one file of data/paper, and
the table of sets in ``data/README.md``, from ``data/sources.toml``.

    python book/appendix.py

The titles of pages are read from the pages, and a page that does not exist yet is said so; a test
asks for this command whenever the two no longer fit.
"""

import argparse
import json
import re
import tomllib
from pathlib import Path

BOOK = Path(__file__).resolve().parent
DATA = BOOK.parent / "data"
PAPER = DATA / "paper"
DOCUMENTS = ("v2", "v1", "slides", "cgau", "fade")

ERRATA = """\
<!-- made of data/paper/errata.toml by `python book/appendix.py` -->
# Errata and ambiguities

These are {count} places where text and released code differ, numbers or formulas disagree, or the
text leaves something open. We could find them because the authors published full tables, proofs,
code and notebooks. The released code may not be what they ran.

## Ten that change what you may conclude

{first}

## All others

*v1* and *v2* are the versions of LG-FedAvg {{cite}}`liang2019think,liang2020think`; FADE is
{{cite}}`hong2021federated`, CGAU {{cite}}`rieger2020client`. *Released* means the authors' code at
commits 7af0568 (LG-FedAvg; incomes: af89a47), 7997485 (FADE) and ea2882b (CGAU). Two of the
ten stand here again, with details. `data/paper/errata.toml` also says what each entry changes.
"""
CONCORDANCE = """\
<!-- made of data/paper/concordance.toml by `python book/appendix.py` -->
# Concordance

Which page has which table, figure, statement or appendix of the papers. Numbers in brackets are
equations; files of printed numbers are in `data/paper`. Results: [scoreboard](scoreboard.ipynb);
mistakes: [errata](errata.md).
"""


def read(name: str) -> dict:
    """A file of data/paper, e.g. "errata"."""
    return tomllib.loads((PAPER / f"{name}.toml").read_text(encoding="utf-8"))


def source(page: str, book: Path = BOOK) -> Path | None:
    """The file of a page such as "lgfedavg/mnist"; None where there is none (yet)."""
    places = (book / f"{page}{suffix}" for suffix in (".ipynb", ".md"))
    return next((place for place in places if place.exists()), None)


def headings(page: str, book: Path = BOOK) -> list[str]:
    """The headings of a page that exists, its title first."""
    path = source(page, book)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)


def link(page: str, book: Path = BOOK) -> str:
    """A page by its title before the colon, or after it where one word is before it."""
    path = source(page, book)
    before, _, after = headings(page, book)[0].partition(": ")
    title = before if " " in before or not after else after
    return f"[{title}]({path.relative_to(book).as_posix()})"


def errata(book: Path = BOOK) -> str:
    """The text of errata.md."""
    found = read("errata")
    ten = sorted((e for e in found["erratum"] if "first" in e), key=lambda e: e["first"]["place"])
    first = "\n\n".join(_told(erratum, book) for erratum in ten)
    out = [ERRATA.format(first=first, count=len(found["erratum"]))]
    for key, title in found["sections"].items():
        entries = [e for e in found["erratum"] if e["in"] == key and not e.get("whole")]
        lines = [_line_of(erratum, book) for erratum in entries]
        head = OPEN if key.startswith("open") else HEAD
        out.append("\n".join([f"### {title}\n", head, *lines, ""]))
    return "\n".join(out)


HEAD = "|where|what it says|what is right, or what we do|\n|---|---|---|"
OPEN = "|where|what is not said|what we do|\n|---|---|---|"


def _told(erratum: dict, book: Path) -> str:
    """One of the first ten, in three lines."""
    said = erratum["first"]
    return (
        f"**{said['place']}. {said['title']}** "
        f"({_place(erratum)}; {link(erratum['page'], book)}).\\\n"
        f"*The paper says:* {said['printed']}\\\n*We found:* {said['right']}\\\n"
        f"*So:* {said['follows']}"
    )


def _line_of(erratum: dict, book: Path) -> str:
    """An entry as a line of a table."""
    tell = [erratum["true"], *[erratum["proof"]] * erratum.get("tells", False)]
    if "page" in erratum:
        path = source(erratum["page"], book)
        tell.append(f"[{path.stem}]({path.relative_to(book).as_posix()})")
    cells = (
        f"**{_upper(erratum['about'])}** ({_place(erratum)})",
        erratum["printed"],
        " ".join(tell),
    )
    return "|" + "|".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + "|"


def _place(erratum: dict) -> str:
    """Where it is, with the versions of LG-FedAvg or the paper where the place does not say so."""
    place, of = erratum["place"], [d for d in erratum["of"] if d in ("v1", "v2", "slides")]
    if of and not re.search(r"\bv[12] ", place):
        return f"{', '.join(of)}: {place}"
    return place


def _upper(text: str) -> str:
    """With a capital, unless it begins with a symbol: σ is no Σ."""
    return text[0].upper() + text[1:] if text[0].isascii() else text


def concordance(book: Path = BOOK) -> str:
    """The text of concordance.md."""
    found, out = read("concordance"), [CONCORDANCE]
    for document in DOCUMENTS:
        part = found[document]
        out.append(f"## {part['title']}\n\n{{cite}}`{part['cite']}`\n")
        out += [_line(item, book) for item in part["items"]]
        out.append("")
    return "\n".join(out)


def _line(item: dict, book: Path) -> str:
    paths = [path for page in item["pages"] if (path := source(page, book))]
    said = [f"[{path.stem}]({path.relative_to(book).as_posix()})" for path in paths]
    if len(said) < len(item["pages"]):
        said.append(f"not in the book yet: {item['why']}")
    elif not said:
        said.append(f"no page: {item['why']}")
    numbers = f" (`{item['table']}.csv`)" if "table" in item else ""
    return f"- **{item['name']}**, {item['what']}{numbers}: {', '.join(said)}"


SETS = "| set | `name` | MB | licence | cite | from | stand-in |\n|---|---|---:|---|---|---|---|"
FROM = {"url": "official", "npm": "npm", "pip": "PyPI"}  # by the key of a mirror


def sets(data: Path = DATA) -> str:
    """The text of data/README.md, its table made anew."""
    text = (data / "README.md").read_text(encoding="utf-8")
    known = tomllib.loads((data / "sources.toml").read_text(encoding="utf-8"))
    head, begin, rest = text.partition("<!-- sets -->\n")
    lines = "\n".join([SETS, *(_set(name, one) for name, one in known.items())])
    return f"{head}{begin}{lines}\n{rest[rest.index('<!-- /sets -->') :]}"


def _set(name: str, one: dict) -> str:
    size = sum(file["size"] for file in one["files"]) / 1e6
    kinds = {kind for file in one["files"] for mirror in file["mirrors"] for kind in mirror}
    places = ", ".join(words for kind, words in FROM.items() if kind in kinds)
    cells = (one["title"], f"`{name}`", f"{size:.0f}" if size > 1 else f"{size:.1f}")
    cells += one["licence"], one["cite"], places or "`LGFED_MIRROR`", one.get("stand_in", "")
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


PAGES = {BOOK / "errata.md": errata, BOOK / "concordance.md": concordance, DATA / "README.md": sets}

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")
