"""The pages that are lists say what is in the book, in data/paper and in the papers' texts."""

import os
import re
import tomllib
from pathlib import Path
from pydoc import locate

import pytest
import yaml

import appendix
from lgfed_core.evidence import report
from lgfed_core.papers import overview
from lgfed_core.papers.printed import TABLES
from lgfed_core.paths import PAPER, ROOT

BOOK = ROOT / "book"
ERRATA, CONCORDANCE = appendix.read("errata"), appendix.read("concordance")
ITEMS = [(document, item) for document, part in CONCORDANCE.items() for item in part["items"]]
TEXTS = dict(v1="lgfedavg_v1_2019", v2="lgfedavg_v2_2020", slides="lgfedavg_slides")
TEXTS |= dict(cgau="cgau_2020", fade="fade_2021")
CAPTION = re.compile(
    r"^\W*((?:Table|Figure|Algorithm|Theorem|Proposition|Corollary) \d(?:\d|\.\d)?)\b", re.MULTILINE
)


def _is_of(line, metric: str | None, less: str | None) -> bool:
    """Whether a contrast of a table is one that an erratum can be behind."""
    return metric in (None, line.metric) and less in (None, line.contrast.partition(" - ")[2])


@pytest.mark.parametrize("path", appendix.PAGES, ids=lambda path: path.name)
def test_a_list_is_up_to_date_and_its_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    assert text == appendix.PAGES[path](), "to renew it: python book/appendix.py"
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links and not [link for link in links if not (path.parent / link).exists()]


def test_an_erratum_says_where_what_and_how_one_can_tell():
    needed = {"in", "of", "place", "about", "printed", "true", "proof", "changes"}
    optional = {"page", "moves", "artefact", "behind", "aside", "first", "whole", "tells"}
    for entry in ERRATA["erratum"]:
        assert needed <= set(entry) <= needed | optional, entry
        assert all(entry.values()), entry
        for one, needs in dict(
            moves="page", artefact="moves", whole="first", aside="behind"
        ).items():
            assert needs in entry or one not in entry, entry
        for place in overview.numbers_behind(entry):
            spec = TABLES[place["table"]]
            assert entry.get("artefact") or entry["aside"], entry
            assert {"table"} < set(place) <= {"table", "metric", "less"}, entry
            asked = place.get("metric"), place.get("less")
            assert any(_is_of(line, *asked) for line in report.contrasts(spec).itertuples()), entry
        assert entry["in"] in ERRATA["sections"], entry
        assert set(entry["of"]) <= set(appendix.DOCUMENTS), entry
        if "page" in entry:
            assert appendix.headings(entry["page"]), entry


def test_ten_errata_come_first_in_three_short_lines():
    ten = [entry["first"] for entry in ERRATA["erratum"] if "first" in entry]
    assert sorted(one["place"] for one in ten) == [*range(1, 11)]
    for one in ten:
        assert set(one) == {"place", "title", "printed", "right", "follows"}
        assert all(len(one[line].split()) <= 25 for line in ("printed", "right", "follows"))


def test_every_place_of_the_concordance_is_known_or_excused():
    assert set(CONCORDANCE) == set(appendix.DOCUMENTS)
    for document, item in ITEMS:
        there = [page for page in item["pages"] if appendix.source(page)]
        whole = there and there == item["pages"]
        assert whole or item.get("why"), f"{document}, {item['name']}: a page is missing, why?"
        assert set(item) <= {"name", "what", "pages", "table", "why"}


def test_the_concordance_has_every_table_and_every_chapter():
    tables = {item["table"] for _, item in ITEMS if "table" in item}
    assert tables == {path.stem for path in PAPER.glob("*.csv")} - {"claims"}
    pages = {page for _, item in ITEMS for page in item["pages"]}
    chapters = {f"{path.parent.name}/{path.stem}" for path in BOOK.glob("[!_]*/*.ipynb")}
    of_papers = {document.partition("_")[0] for document in TEXTS.values()}
    chapters = {page for page in chapters if page.partition("/")[0] in of_papers}
    assert chapters <= pages, f"in which document? {chapters - pages}"


@pytest.mark.parametrize("document", TEXTS)
def test_the_concordance_has_what_the_text_has(document):
    mirror = os.environ.get("LGFED_MIRROR")
    places = [Path(mirror).parent] if mirror else [ROOT.parent / "shared"]
    path = places[0] / "papers" / f"{TEXTS[document]}.txt"
    if not path.exists():
        pytest.skip(f"the text {path.stem} is not at hand")
    found = set(CAPTION.findall(path.read_text(encoding="utf-8").replace("**", "")))
    names = {item["name"] for of, item in ITEMS if of == document}
    assert found and found <= names, f"without an entry: {sorted(found - names)}"


def test_every_term_of_the_glossary_is_defined_once_on_a_page_or_in_code():
    text = (BOOK / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^(\S.*)\n: ((?:.+\n?)+)", text, re.MULTILINE)
    assert len(entries) == text.count("\n: ") and len({term for term, _ in entries}) == len(entries)
    for term, said in entries:
        code = re.findall(r"`([a-z]+\.[\w.]+)`", said)
        assert code or re.search(r"\]\(", said), f"{term} leads nowhere"
        assert all(locate(f"lgfed_core.{name}") is not None for name in code), f"{term}: {code}"


def test_the_citation_is_of_this_version_and_of_the_papers():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["version"] == project["version"] and cited["license"] == project["license"]
    page = (BOOK / "references.md").read_text(encoding="utf-8")
    assert f"version = {{{project['version']}}}" in page
    known = (BOOK / "references.bib").read_text(encoding="utf-8").replace("{IID}", "IID")
    for paper in cited["references"]:
        assert paper["title"] in known
        assert all(author["family-names"][-3:] in known for author in paper["authors"])
