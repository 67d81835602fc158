"""The pages as a browser draws them: errors, what is cut off, what cannot be read, broken links.

They are those of the last `make book`. The browser is the system's Chromium; playwright drives it,
and axe-core judges contrast, names and roles (`pip install --editable ".[pages]"`). Without any of
these, or before the book is drawn, the tests are skipped and say what is missing.
"""

import os
import re
import shutil
from urllib.parse import unquote, urlparse

import pytest

from lgfed_core.paths import ROOT

HTML = ROOT / "book" / "_build" / "html"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
PAGES = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if not path.name.startswith(("genindex", "search", "py-modindex"))
    and "_static" not in str(path)
)
PHONE, DESK = {"width": 390, "height": 800}, {"width": 1280, "height": 900}
THEME = {  # what axe-core says of sphinx-book-theme's own parts: not of the pages
    "aria-allowed-role",
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

pytestmark = [pytest.mark.drawn, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def browser():
    if os.environ.get("LGFED_PAGES") != "1" and not PAGES:
        pytest.skip("no page is drawn; `make book` does it")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    with sync.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser):
    """Open a page of the book at a size and without a network: (page, what went wrong)."""
    contexts = []

    def opening(name: str, size: dict[str, int], theme: str = "light"):
        context = browser.new_context(viewport=size, offline=False)
        contexts.append(context)
        context.add_init_script(f"localStorage.setItem('mode', '{theme}')")
        page, wrong = context.new_page(), []
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.route(re.compile("^https?://"), lambda route: _refuse(route, wrong))
        page.on("requestfailed", lambda r: wrong.append(f"not loaded: {r.url}"))
        page.goto((HTML / name).as_uri())
        page.wait_for_load_state("load")
        page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
        return page, wrong

    yield opening
    for context in contexts:
        context.close()


def _refuse(route, wrong: list[str]) -> None:
    wrong.append(f"asks the network for {route.request.url}")
    route.fulfill(status=204)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_a_page_draws_without_errors_and_nothing_is_cut_off(name, size, opened):
    page, wrong = opened(name, size)
    assert not wrong
    assert page.evaluate(CUT) == []
    text = page.inner_text("article.bd-article" if page.query_selector("article") else "body")
    prose = page.evaluate(
        "() => [...document.querySelectorAll('article p, article li, article td')]"
        ".filter(n => !n.closest('pre, .cell_input, .math')).map(n => n.innerText).join('\\n')"
    )
    assert text.strip()
    assert LEFT_OVER.findall(prose) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_can_be_read_by_everybody(name, theme, opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="it brings axe-core")
    page, _ = opened(name, DESK, theme)
    rules = None if theme == "light" else {"runOnly": ["color-contrast"]}
    found = axe.Axe().run(page, options=rules).response["violations"]
    grave = [v for v in found if v["impact"] in ("critical", "serious") and v["id"] not in THEME]
    assert {v["id"]: [n["html"][:120] for n in v["nodes"]][:4] for v in grave} == {}
    pictures = page.evaluate(
        "() => [...document.querySelectorAll('article img')].map(i => [i.alt, i.src])"
    )
    assert [src for alt, src in pictures if len(alt) < 10 or "_images/" in alt] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_link_into_the_book_leads_somewhere(name):
    if not PAGES:
        pytest.skip("no page is drawn")
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
