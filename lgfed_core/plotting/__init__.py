"""One look for every figure, and what stands under it: a number and a sentence.

What colours mean stands in `colours`. Sizes are those of a book column (about 6.5 inches), text
stays text in SVG and PDF.
"""

import base64
import html
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import GROUP
from lgfed_core.evidence.display import readable

from .drawings import curves as curves, looks as looks, paper_vs_ours as paper_vs_ours, room as room
from .narrow import NARROW as NARROW, narrowed

WIDTH = 6.5  # inches, the width of a page's text
PHONE = "(max-width: 576px)"  # screens that get a figure `narrowed`
LARGEST_SVG = 150_000  # bytes; what has more marks is drawn in dots
_STYLE = {
    "figure.figsize": (WIDTH, 3.0),
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.titlelocation": "left",
    "axes.prop_cycle": mpl.cycler(color=GROUP),
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.handlelength": 2.8,  # dashes are seen beside a mark
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "lgfed",
}


_shown: dict[tuple[str, str], int] = {}  # (what a figure shows, what is said of it) -> its number


def use() -> None:
    """Set the style for all figures that follow (first cell of a notebook); tables say all.

    A notebook then shows a figure as `presented`, and pandas' tables as `readable` ones.
    """
    mpl.rcParams.update(_STYLE)
    pd.set_option("display.max_colwidth", None)
    _shown.clear()
    if "IPython" not in sys.modules:  # no notebook, and none of the book's packages needed
        return
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    plt.switch_backend(mpl.get_backend())  # loads the notebook's, which sets its own way to draw
    formatters = shell.display_formatter.formatters
    formatters["image/png"].pop(Figure, None)
    formatters["text/html"].for_type(Figure, presented)
    for kind in (pd.DataFrame, "pandas.io.formats.style.Styler"):
        formatters["text/html"].for_type(kind, lambda table: readable(table._repr_html_()))


def caption(figure: Figure, words: str, *rows: pd.DataFrame) -> Figure:
    """Give ``figure`` the sentence that stands under it, and where ``rows`` come from; return it.

    rows: what is drawn, as for `origin`; a table per line where lines differ in seeds, which are
    then "3 to 5 seeds".
    """
    found: dict[str, list[int]] = {}
    for seeds, way in map(origin, rows):
        if seeds:
            found.setdefault(way, []).append(seeds)
    for way, counts in found.items():
        few, most = min(counts), max(counts)
        words += f" {most if few == most else f'{few} to {most}'} seed{'s' * (most != 1)}{way}."
    figure.set_label(words)
    return figure


def origin(rows: pd.DataFrame) -> tuple[int, str]:
    """How many seeds, and ", stored at paper scale" or ", live run"; 0 where that is not known.

    rows: stored ones have columns ``seed`` and ``scale``, the curves of a live run ``seed`` alone;
    of a table that has ``seed`` in its index the seeds are counted, and no more is known.
    """
    pivoted = "seed" in rows.index.names
    if rows.empty or not (pivoted or "seed" in rows):
        return 0, ""
    seeds = (rows.index.get_level_values("seed") if pivoted else rows["seed"]).nunique()
    if "scale" in rows:
        return seeds, f", stored at {' and '.join(map(str, rows['scale'].unique()))} scale"
    return seeds, "" if pivoted else ", live run"


def presented(figure: Figure) -> str | None:
    """A figure as HTML with its number on the page and its sentence; None where it is empty.

    Numbers count from `use`; a figure that is drawn again as it was keeps its own.
    """
    if not figure.axes and not figure.lines:
        return None
    pixels = any(ax.images for ax in figure.axes)
    seen, said = described(figure), figure.get_label()
    number = _shown.setdefault((seen, said), len(_shown) + 1)
    source = f'<img alt="{html.escape(seen)}" src="{_drawn(figure, pixels)}">'
    if (narrow := narrowed(figure)) is not None:
        drawn = _drawn(narrow, pixels, dpi=192)
        dense = " 2x" if drawn.startswith("data:image/png") else ""
        phone = f'<source media="{PHONE}" srcset="{drawn}{dense}">'
        source = f"<picture>{phone}{source}</picture>"
    below = f"<figcaption><b>Figure {number}.</b> {html.escape(said)}</figcaption>"
    classes = "lgfed picture" if pixels else "lgfed"  # a dark page turns lines, no photographs
    return f'<figure class="{classes}" id="figure-{number}">{source}{below}</figure>'


def _drawn(figure: Figure, pixels: bool, dpi: float = _STYLE["figure.dpi"]) -> str:
    """The file as an address: SVG, unless that has pixels or is large; then of so many dots."""
    from IPython.core.pylabtools import print_figure

    look = {"bbox_inches": "tight", "pad_inches": 0.02}
    if not pixels:
        with mpl.rc_context({"svg.hashsalt": _STYLE["svg.hashsalt"]}):
            drawn = print_figure(figure, "svg", metadata={"Date": None}, **look).encode()
        if len(drawn) < LARGEST_SVG:
            return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"
    dots = print_figure(figure, "png", base64=True, dpi=dpi, **look).strip()
    return f"data:image/png;base64,{dots}"


def described(figure: Figure) -> str:
    """A figure in words, for those who cannot see it: titles, axes, and what is drawn."""
    said = [figure.get_suptitle()]
    for ax in figure.axes:
        axes = " against ".join(filter(None, [ax.get_ylabel(), ax.get_xlabel()]))
        said.append(": ".join(filter(None, [ax.get_title("left") or ax.get_title(), axes])))
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes)]
    lines = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    words = "; ".join(dict.fromkeys(filter(None, said))) or "no axes are labelled"
    shown = f". Shown: {', '.join(dict.fromkeys(lines))}" if lines else ""
    return " ".join(f"Figure. {words}{shown}.".split())


@contextmanager
def style() -> Iterator[None]:
    """The same for the figures drawn inside a ``with`` block."""
    with mpl.rc_context(_STYLE):
        yield
