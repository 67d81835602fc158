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


SENTENCES = sorted(
    path
    for pattern in ("take_home.py", "sentences.py")
    for path in (ROOT / "lgfed_core" / "papers").rglob(pattern)
)


@pytest.mark.parametrize("path", SENTENCES, ids=lambda path: path.parent.name)
def test_beside_a_sentence_stands_what_would_make_it_false(path):
    tree = ast.parse(text := path.read_text(encoding="utf-8"))
    bold = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and re.search(r'"\*\*(?!Not yet)', said := ast.get_source_segment(text, node) or "")
        and "# False" not in said
    ]
    assert not bold, [node.name for node in bold]
