"""Lists of verdicts by paper, verdict and protocol, as book/_static/filters.js shows them."""

import pandas as pd
import pytest

from lgfed_core.papers import overview
from lgfed_core.paths import ROOT

SCRIPT = ROOT / "book" / "_static" / "filters.js"
VISIBLE = """() => [...document.querySelectorAll('.judged tbody tr')]
  .filter(row => row.checkVisibility()).map(row => row.dataset.name)"""
LINES = {  # name -> paper, protocol, verdict
    "a": ("lgfedavg", "as_released", "reproduced"),
    "b": ("lgfedavg", "as_released", "differs"),
    "c": ("lgfedavg", "as_described", "reproduced"),
    "d": ("lgfedavg", "", "confirmed"),
    "e": ("fade", "as_released", "reproduced"),
    "f": ("fade", "as_described", "holds in part (1 of 2 comparisons)"),
}

pytestmark = [pytest.mark.drawn, pytest.mark.timeout(120)]


def shown(page) -> str:
    return "".join(page.evaluate(VISIBLE))


@pytest.fixture
def page(browser):
    lists = []
    for paper in ("lgfedavg", "fade"):
        rows = "".join(
            f'<tr data-name="{name}"{f" data-protocol={way!r}" * bool(way)}><td>x</td>'
            f"<td>{said}</td></tr>"
            for name, (of, way, said) in LINES.items()
            if of == paper
        )
        verdicts = pd.Series([said for of, _, said in LINES.values() if of == paper])
        table = f"<table><tbody>{rows}</tbody></table>"
        lists.append(overview.judged(paper, "some", verdicts, table))
    page = browser.new_page()
    script = f"<script>{SCRIPT.read_text('utf-8')}</script>"
    page.set_content(f"{script}{overview.filters()}{''.join(lists)}")
    return page


def test_filters_show_the_lines_of_a_paper_a_verdict_and_a_protocol(page):
    assert shown(page) == ""  # folded
    assert page.get_by_text("FADE, some: holds 1, holds in part 1").is_visible()
    page.get_by_label("Verdict").select_option("holds")
    assert shown(page) == "acde"  # "holds in part" is another kind
    page.get_by_label("Protocol of numbers").select_option("as_released")
    assert shown(page) == "ade"  # a claim has no protocol
    page.get_by_label("Paper").select_option("lgfedavg")
    assert shown(page) == "ad"
    assert page.locator("form output").inner_text() == "2 of 6 lines"
    page.get_by_role("button", name="Reset").click()
    page.get_by_text("all 6 lines").wait_for(timeout=10_000)  # the form is empty after its event
    assert shown(page) == ""
    page.get_by_text("LG-FedAvg, some: holds 3, fails 1").click()
    assert shown(page) == "abcd"
