"""The pages as a browser draws them: errors, what is cut off, what cannot be read, broken links.

They are those of the last `make book`. The browser is the system's Chromium; playwright drives it,
and axe-core judges contrast, names and roles (`pip install --editable ".[pages]"`). Without any of
these, or before the book is drawn, the tests are skipped and say what is missing.
"""

import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlparse

import pytest

from lgfed_core.paths import ROOT

HTML = ROOT / "book" / "_build" / "html"
PAGES = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if not path.name.startswith(("genindex", "search", "py-modindex", "index"))
    and "_static" not in path.relative_to(HTML).parts
)
SCREENS = 8  # of 800 pixels, at most, until the details begin
PHONE, DESK = {"width": 390, "height": 800}, {"width": 1280, "height": 900}
THEME = {  # what axe-core says of parts that sphinx-book-theme and sphinxcontrib-bibtex make
    "aria-allowed-role",
    "aria-required-children",
    "landmark-unique",
    "scrollable-region-focusable",
}
LEFT_OVER = re.compile(r":::|\{(cite|ref|doc|div|math)\}|\$\$|(?<!\w)nan(?!\w)")
CUT = """() => {
  const column = document.querySelector('article.bd-article') || document.body;
  const wide = [];
  for (const node of column.querySelectorAll('table, mjx-container, img, dl, pre, svg')) {
    if (node.closest('mjx-container') && node.tagName !== 'MJX-CONTAINER') continue;
    let box = node.parentElement, scrolls = getComputedStyle(node).overflowX;
    let free = ['auto', 'scroll'].includes(scrolls);
    while (!free && box && box !== column.parentElement) {
      free = ['auto', 'scroll'].includes(getComputedStyle(box).overflowX);
      box = box.parentElement;
    }
    const edge = column.getBoundingClientRect().right;
    if (!free && node.getBoundingClientRect().right > edge + 2)
      wide.push(node.tagName + ': ' + (node.textContent || node.src).trim().slice(0, 60));
  }
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth + 2) wide.push('the page itself');
  return wide;
}"""
PROSE = """() => [...document.querySelectorAll('article p, article li, article td')]
  .filter(n => !n.closest('pre, .cell_input, .math')).map(n => n.innerText).join('\\n')"""
DETAILS = """() => {
  const all = [...document.querySelectorAll('article h2')];
  const found = all.filter(h => h.innerText.startsWith('Details'));
  const end = found.length ? found[0] : document.querySelector('article').lastElementChild;
  const box = end.getBoundingClientRect();
  return (found.length ? box.top : box.bottom) + scrollY;
}"""
UNNAMED = """() => [...document.querySelectorAll('article img')]
  .filter(i => i.alt.length < 10 || i.alt.includes('_images/')).map(i => i.src.split('/').pop())"""
SMALL = """async () => {  // a phone's own drawing takes the place of the wide one a little later
  const small = () => [...document.querySelectorAll('figure.lgfed img')]
    .filter(i => i.clientWidth < 0.95 * i.naturalWidth).map(i => i.alt.slice(0, 60));
  for (let n = 0; n < 50 && small().length; n++) await new Promise(done => setTimeout(done, 100));
  return small();
}"""
WIDE = """async () => {
  document.querySelectorAll('article details').forEach(d => { d.open = true; });
  for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);
  return [...document.querySelectorAll('article table')]
    .filter(t => t.scrollWidth > 1.5 * document.querySelector('article').clientWidth)
    .map(t => t.innerText.trim().slice(0, 60));
}"""
FORMULAS = """() => [...document.querySelectorAll('mjx-container[display="true"]')]
  .filter(f => f.scrollWidth > f.clientWidth + 2).map(f => f.textContent.slice(0, 60))"""

pytestmark = [pytest.mark.drawn, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def address():
    """Of the book, served on this machine as a web server would."""
    handler = partial(Quiet, directory=str(HTML))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def page(browser):
    """A page without a network; ``page.wrong`` has what went wrong."""
    context = browser.new_context(viewport=DESK)
    page = context.new_page()
    page.wrong = wrong = []
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("response", lambda got: got.ok or wrong.append(f"not loaded: {got.url}"))
    page.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), lambda route: _refuse(route, wrong))
    yield page
    context.close()


def _refuse(route, wrong: list[str]) -> None:
    wrong.append(f"asks the network for {route.request.url}")
    route.fulfill(status=200, body="")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_can_be_read_by_everybody(name, page, address):
    page.goto(f"{address}/{name}")
    page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    wrong = {"errors": [*page.wrong], "cut off": page.evaluate(CUT)}
    wrong["formulas wider than the column"] = page.evaluate(FORMULAS)
    wrong["left over"] = LEFT_OVER.findall(page.evaluate(PROSE))
    wrong["unnamed pictures"] = page.evaluate(UNNAMED)
    wrong["axe"] = _grave(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    wrong["axe, dark"] = _grave(page, {"runOnly": ["color-contrast"]})
    page.set_viewport_size(PHONE)
    wrong["cut off on a phone"] = page.evaluate(CUT)
    wrong["figures that shrink on a phone, and their labels"] = page.evaluate(SMALL)
    wrong["tables far wider than a phone"] = page.evaluate(WIDE)
    said = [f"{kind}: {one}" for kind, some in wrong.items() for one in some]
    assert not said, "\n".join(said)


def _grave(page, options: dict | None = None) -> list[str]:
    """Critical and serious violations, those of the theme's own parts left out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="it brings axe-core")
    found = axe.Axe().run(page, context="article", options=options).response["violations"]
    return [
        f"{one['id']} ({len(one['nodes'])}): {one['nodes'][0]['html'][:150]}, "
        f"{one['nodes'][0]['failureSummary'].splitlines()[-1].strip()[:150]}"
        for one in found
        if one["impact"] in ("critical", "serious") and one["id"] not in THEME
    ]


SPANS = """<article><table style="width: 900px">
<thead><tr><th></th><th>metric</th><th colspan="2">ours</th><th rowspan="2">paper</th></tr>
<tr><th>data</th><th>devices</th><th>mean</th><th>sd</th></tr></thead>
<tbody><tr><th rowspan="2">MNIST</th><th rowspan="2">100</th><td>1</td><td>2</td><td>3</td></tr>
<tr><td>4</td><td>5</td><td>6</td></tr></tbody></table></article>"""


def test_a_wide_table_becomes_lines_on_a_phone_that_name_row_and_column(page):
    static = ROOT / "book" / "_static"
    style, script = ((static / name).read_text("utf-8") for name in ("lgfed.css", "tables.js"))
    page.set_viewport_size(PHONE)
    page.set_content(f"<style>{style}</style>{SPANS}<script>{script}</script>")
    rows = "rows => rows.map(r => [...r.cells].map(c => [c.dataset.name || '', c.textContent]))"
    first, second = page.eval_on_selector_all("tbody tr", rows)
    columns = ["ours, mean", "ours, sd", "paper"]
    names = [["", "MNIST"], ["devices", "100"]]  # which span both rows
    assert first == [*names, *map(list, zip(columns, "123", strict=True))]
    assert second == [*names, *map(list, zip(columns, "456", strict=True))]
    tops = "cells => cells.map(c => c.getBoundingClientRect().top)"
    down = page.eval_on_selector_all("td", tops)
    assert down == sorted(set(down))  # one below the other
    page.set_viewport_size(DESK)
    assert len(set(page.eval_on_selector_all("td", tops))) == 2  # two rows as ever
    assert not page.is_visible("th.again")


CHAPTERS = [
    n for n in PAGES if re.match(r"(lgfedavg|fade|cgau|machines)/|everywhere|reliab|scoreb", n)
]


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_answer_and_its_evidence_take_eight_screens_before_the_details(name, page, address):
    page.goto(f"{address}/{name}")
    page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    assert page.evaluate(DETAILS) <= 800 * SCREENS


@pytest.mark.parametrize("name", PAGES)
def test_scripts_and_styles_of_a_page_weigh_less_than_a_megabyte(name):
    html = (HTML / name).read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"?#:]+\.(?:js|css))[^"]*"', html)
    files = {(HTML / name).parent / place for place in loaded}
    assert len(files) > 5
    assert sum(path.stat().st_size for path in files) < 1e6


@pytest.mark.parametrize("name", PAGES)
def test_every_link_into_the_book_leads_somewhere(name):
    html = (HTML / name).read_text(encoding="utf-8")
    broken = []
    for link in re.findall(r'href="([^"]+)"', html):
        place = urlparse(link)
        if place.scheme or place.netloc or not place.path:
            continue
        target = (HTML / name).parent / unquote(place.path)
        if not target.exists():
            broken.append(link)
        elif place.fragment and target.suffix == ".html":
            ids = re.escape(unquote(place.fragment))
            if not re.search(rf'(id|name)="{ids}"', target.read_text(encoding="utf-8")):
                broken.append(link)
    assert sorted({*broken}) == []
