"""No result is typed into a page: a number in prose is a setting, or printed by a paper."""

import ast
import json
import re

import pytest

from lgfed_core.paths import PAPER, ROOT

NOTEBOOKS = sorted((ROOT / "book").glob("*/*.ipynb"))
# a share, points, or "an accuracy (AUC) of so much": what a result looks like
RESULT = re.compile(
    r"(?<![\w.,/-])(\d+(?:\.\d+)?)(?:\\?\s?%| points?\b)"
    r"|\b(?:AUCs?|accurac(?:y|ies)) (?:of|is|are|at) (\d+(?:\.\d+)?)"
)
KNOWN = {  # what is neither a result of ours nor in data/paper, and why
    "": {95.0, 50.0},  # intervals; chance
    "cgau/cifar10": {78.5},  # the text, as a share in data/paper
    "cgau/xor": {99.0},  # what counts as solved
    "fade/digits": {98.0},  # the caption of Figure 2
    "fade/theory": {201.0},  # of a grid
    "lgfedavg/cifar10": {57.0, 99.0},  # goal accuracy; where the released code stops a device
    "lgfedavg/communication": {15.79, 60.0, 82.0, 83.0},  # of the text; counts, without a run
    "lgfedavg/mnist": {15.79, 30.0, 84.0, 99.0},  # of the text; Tables 1 and 6, rounded; a stop
    "lgfedavg/rotated": {98.0},  # the goal accuracy
    "lgfedavg/version1": {15.79, 30.0, 55.0, 57.0, 60.0, 65.0, 84.0, 97.5},  # of the text, rounded
    "lgfedavg/vqa": {40.0},  # the goal accuracy
}


def typed(text: str) -> list[float]:
    """The numbers in ``text`` that look like results."""
    return [float(found[1] or found[2]) for found in RESULT.finditer(" ".join(text.split()))]


@pytest.fixture(scope="module")
def printed() -> set[float]:
    """Every number of the papers' claims, and of their tables those with a point: no counts."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in PAPER.glob("*.csv")}
    claims = re.findall(r"\d+(?:\.\d+)?", texts.pop("claims"))
    return {float(n) for n in claims + re.findall(r"\d+\.\d+", " ".join(texts.values()))}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_numbers_in_prose_are_settings_or_printed(path, printed):
    name = f"{path.parent.name}/{path.stem}"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    known = printed | KNOWN[""] | KNOWN.get(name, set())
    strange = [(n, text[:60]) for text in prose for n in typed(text) if n not in known]
    assert not strange, f"computed in the page, or gone: {strange}"


def test_what_looks_like_a_result_is_seen():
    assert typed("trained at the end: AUCs of 81 to 91, with 3 % of their length") == [81.0, 3.0]
    assert typed("$10^{-3}$ of 500 rounds, 2 x 128 units, `--set lr=0.05`, Table 4") == []
    assert typed("it loses 12 points, or 1.5 points\nof accuracy; 87.5 % are right") == [
        12,
        1.5,
        87.5,
    ]


# Sentences to take home: beside each stands what would make it false. Where it is made, that is a
# comment "# False ..."; where it is written in a notebook, its cell's metadata under "false_if".
PAPERS = ROOT / "lgfed_core" / "papers"
PAGES = sorted(
    page for book in ("cgau", "fade", "lgfedavg") for page in (ROOT / "book" / book).glob("*.ipynb")
)
BOLD = re.compile(r"\*\*(?!Not yet|In short)[^*\s][^*]*\*\*")
HEADINGS = {PAPERS / "board.py", PAPERS / "in_short.py"}  # bold there: a group of claims, a box


def bold(tree: ast.AST) -> bool:
    """Whether a string, or the constant parts of one, has bold words."""
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    texts += ["".join(p.value if isinstance(p, ast.Constant) else "x" for p in n.values)
              for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)]  # fmt: skip
    return any(isinstance(text, str) and BOLD.search(text) for text in texts)


def without_docstrings(node: ast.FunctionDef) -> ast.Module:
    return ast.Module(node.body[1:] if ast.get_docstring(node) else node.body, [])


def functions(path) -> dict[str, tuple[ast.FunctionDef, str]]:
    """The functions of a module, each with its source."""
    tree = ast.parse(text := path.read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: (node, ast.get_source_segment(text, node) or "") for node in found}


@pytest.mark.parametrize(
    "path", sorted(set(PAPERS.rglob("*.py")) - HEADINGS), ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_beside_a_sentence_stands_what_would_make_it_false(path):
    naked = [
        name
        for name, (node, text) in functions(path).items()
        if bold(without_docstrings(node)) and "# False" not in text
    ]
    assert not naked, f"bold, but what would make it false is not said: {naked}"


def taken_home(cells: list[dict]) -> list[tuple[dict, int]]:
    """Markdown cells, each with how many bold sentences it has to take home."""
    found, inside = [], False
    for cell in cells:
        if cell["cell_type"] != "markdown":
            continue
        many = 0
        for section in re.split(r"^(?=#+ )", "".join(cell["source"]), flags=re.M):
            heading = section.startswith("#")
            here = re.search(
                r"take home" if not heading else r"^#+ .*(take home|came out)", section, re.I
            )
            inside = bool(here) or (inside and not heading)
            many += len(BOLD.findall(section)) if inside else 0
        found.append((cell, many))
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_page_says_what_would_make_its_findings_false(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell, many in taken_home(cells):
        said = cell["metadata"].get("false_if", [])
        assert many <= len(said), f"{many} sentences, {len(said)} falsifiers: {cell['source'][:2]}"
        assert all("false if" in one.lower() for one in said), said
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    naked = [text for text in code if bold(ast.parse(text)) and "# False" not in text]
    assert not naked, f"bold in a code cell: {naked}"
    said = any(cell["metadata"].get("false_if") for cell in cells)
    assert said or any(map(falsifiable, called("\n".join(code)))), "no finding has a falsifier"


def called(code: str) -> set[tuple[str, str]]:
    """(module, function) of lgfed_core.papers that a page calls by the names that it imports."""
    names, found = {}, set()
    for node in ast.walk(tree := ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lgfed_core.papers"):
            names |= {one.asname or one.name: (node.module, one.name) for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            found.add(names[node.id])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add((".".join(names.get(node.value.id, ())), node.attr))
    return found


def falsifiable(function: tuple[str, str]) -> bool:
    """Whether a function, or one of its module that it uses, says what would make it false."""
    path = (ROOT / function[0].replace(".", "/")).with_suffix(".py")
    there = functions(path) if function[0] and path.is_file() else {}
    asked, seen = [function[1]], set()
    while asked:
        name = asked.pop()
        if name in there and name not in seen:
            seen.add(name)
            node, text = there[name]
            if "# False" in text:
                return True
            asked += [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return False


def test_a_take_home_sentence_without_a_falsifier_is_seen():
    head = {
        "cell_type": "markdown",
        "metadata": {},
        "source": ["To take home: **A is B.** And **C.**"],
    }
    more = head | {"source": ["**D is E**\n", "## Where we deviate\n", "**Data.**"]}
    code = {"cell_type": "code", "metadata": {}, "source": ["1"]}
    assert [many for _, many in taken_home([head, code, more])] == [2, 1]
    assert bold(ast.parse('f"**{x} of {y}** are"')) and not bold(
        ast.parse("dict(**{'Ab': 2 ** 3})")
    )
    dann, tables = "lgfed_core.papers.fade.digits.dann", "lgfed_core.papers.lgfedavg.mood.tables"
    assert falsifiable((dann, "sentences")) and not falsifiable((tables, "alone"))
