"""One colour, one meaning; lines that can be seen; and a figure's number and sentence."""

import ast
import re
from itertools import combinations

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from lgfed_core import colours, plotting
from lgfed_core.evidence.printed import METHODS
from lgfed_core.paths import ROOT
from toy import NOTEBOOKS, cells

WHITE, DARK = "#ffffff", "#14181e"  # pages of the book's theme
AREAS = {"PART", "KIND", "UNIT", "FAINT", "PALE", "LABEL"}  # filled, with words in them
NEUTRAL = {colours.INK, colours.REFERENCE, colours.FAINT, colours.PALE}
TABLES = {name: value for name, value in vars(colours).items() if name.isupper() and name[0] != "_"}
SOURCES = {str(p): p.read_text("utf-8") for p in (ROOT / "lgfed_core").rglob("*.py")}
del SOURCES[colours.__file__]
SOURCES |= {str(p): "\n".join(source for source, _ in cells(p, "code")) for p in NOTEBOOKS}
LITERAL = re.compile(
    r"""["'](\#[0-9a-fA-F]{6}|(?:tab:)?(?:blue|orange|green|red|purple|brown|pink|olive|cyan)"""
    r"""|tab10|RdBu(?:_r)?|viridis|Blues)["']"""
)


def hues(table) -> set[str]:
    """The colours in a table, without the neutral ones."""
    if isinstance(table, str):
        return {table} - NEUTRAL if table.startswith("#") else set()
    if isinstance(table, dict):
        return hues(tuple(table.values()))
    return set().union(*map(hues, table)) if isinstance(table, tuple) else set()


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours' relative luminance, from 1 to 21."""

    def luminance(colour: str) -> float:
        r, g, b = (
            c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)
        )
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_hues_of_methods_are_of_nothing_else():
    assert set(colours.METHOD) - {"lg_fedavg_v1"} <= set(METHODS)
    own = hues(colours.METHOD) | hues(colours.SPARE)
    others = {n: hues(t) for n, t in TABLES.items() if n not in ("METHOD", "SPARE")}
    assert {name: own & found for name, found in others.items() if own & found} == {}
    assert not [look for look in colours.PROTOCOL.values() if "color" in look]
    pairs = {}
    for method, pair in colours.METHOD.items():
        pairs.setdefault(pair, []).append(method)
    assert [names for names in pairs.values() if len(names) > 1] == [
        ["fedavg", "baseline"],
        ["local_only", "source_only"],
    ]
    assert not {*colours.SPARE} & {*pairs}


def test_every_line_stands_out_from_a_white_page_and_from_a_dark_one():
    assert contrast("#000000", WHITE) == pytest.approx(21)
    drawn = set().union(*(hues(t) for name, t in TABLES.items() if name not in AREAS))
    drawn |= {colours.REFERENCE} | {to_hex(colours.SHADES(x / 10)) for x in range(11)}
    faint = {c for c in drawn if min(contrast(c, WHITE), contrast(c, DARK)) < 3}
    assert not faint
    assert contrast(colours.INK, WHITE) > 7


def test_figures_take_their_colours_from_the_tables():
    named = {name: LITERAL.findall(source) for name, source in SOURCES.items()}
    assert {name: found for name, found in named.items() if found} == {}


def test_tables_that_meet_on_a_page_share_no_hue():
    clashes = {}
    for name, source in SOURCES.items():
        taken = {
            alias.name
            for node in ast.walk(ast.parse(source if "colours" in source else ""))
            if isinstance(node, ast.ImportFrom) and "colours" in (node.module or "")
            for alias in node.names
            if alias.name in TABLES and alias.name not in ("GROUP", "SPARE")
        }
        pairs = combinations(sorted(taken), 2)
        clashes[name] = [(a, b) for a, b in pairs if hues(TABLES[a]) & hues(TABLES[b])]
    assert sum(map(len, clashes.values())) == 0, clashes


def test_what_names_a_colour_is_found():
    assert LITERAL.findall("plot(color='#0072B2')") == ["#0072B2"]
    assert LITERAL.findall('plot(color="tab:red", cmap="tab10")') == ["tab:red", "tab10"]
    assert LITERAL.findall('plot(color="0.5", marker="o")') == []


@pytest.fixture
def drawn(monkeypatch):
    monkeypatch.setattr(plotting, "_shown", {})
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.plot([0, 1])
    ax.set(title="<MNIST>", xlabel="round")
    yield figure
    plt.close("all")


def test_a_figure_shows_its_number_its_sentence_and_where_it_comes_from(drawn):
    rows = pd.DataFrame({"seed": [0, 1, 1], "scale": "paper"})
    plotting.caption(drawn, "Accuracy < 1.", rows, rows, rows.iloc[:0])
    page = plotting.presented(drawn)
    below = "Accuracy &lt; 1. 2 seeds, stored at paper scale."
    assert f"<figcaption><b>Figure 1.</b> {below}</figcaption>" in page
    assert 'alt="Figure. &lt;MNIST&gt;: round."' in page and 'id="figure-1"' in page
    assert plotting.presented(drawn) == page, "drawn again, it keeps its number"
    one = rows.iloc[:1]
    assert plotting.caption(drawn, "", rows, one).get_label().startswith(" 1 to 2 seeds, stored")
    plotting.caption(drawn, "Another.", rows.drop(columns="scale"))
    assert "<b>Figure 2.</b> Another. 2 seeds, live run.</fig" in plotting.presented(drawn)
    assert 'src="data:image/svg+xml;base64,' in page and 'class="lgfed"' in page
    drawn.axes[0].imshow([[0, 1]])
    page = plotting.presented(drawn)
    assert 'class="lgfed picture"' in page and 'src="data:image/png;base64,' in page
    assert plotting.presented(plt.figure()) is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (pd.DataFrame({"seed": [3]}), (1, ", live run")),
        (pd.DataFrame({"value": [3]}), (0, "")),
        (pd.DataFrame({("a", 1): [1.0, 2.0]}, pd.Index([0, 1], name="seed")), (2, "")),
    ],
)
def test_where_rows_come_from(rows, said):
    assert plotting.origin(rows) == said


def test_a_page_counts_its_figures_from_one(drawn):
    assert 'id="figure-1"' in plotting.presented(drawn)
    drawn.set_label("another")
    assert 'id="figure-2"' in plotting.presented(drawn)
    with plt.rc_context():
        plotting.use()
    assert 'id="figure-1"' in plotting.presented(drawn)
