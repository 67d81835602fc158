"""One look for every figure: a colour and a marker per method, the same everywhere.

Colours are Okabe and Ito's, which colour-blind readers tell apart; markers and words carry the same
information. Sizes are those of a book column (about 6.5 inches), text stays text in SVG and PDF.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .evidence.printed import METHODS, METRICS
from .evidence.verdict import reach_of

WIDTH = 6.5  # inches, the width of a page's text
_BLUE, _ORANGE, _GREEN, _RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
_SKY, _PINK, _GREY, _BLACK = "#56B4E9", "#CC79A7", "#7F7F7F", "#222222"

METHOD = {  # method -> (colour, marker)
    "fedavg": (_BLUE, "o"),
    "local_only": (_GREY, "s"),
    "lg_fedavg": (_RED, "D"),
    "mtl": (_GREEN, "^"),
    "fedprox": (_SKY, "v"),
    "lg_fedavg_adv": (_PINK, "P"),
    "baseline": (_BLUE, "o"),
    "cgau_kept": (_RED, "D"),
    "cgau_averaged": (_ORANGE, "<"),
    "source_only": (_GREY, "s"),
    "fade_dann": (_ORANGE, "^"),
    "fade_cdan": (_RED, "D"),
    "fedavg_shot": (_GREEN, "v"),
    "resnet": (_BLACK, "X"),
    "dann": (_ORANGE, "<"),
    "cdan": (_RED, "d"),
    "shot": (_GREEN, ">"),
    "dann+shot": (_SKY, "p"),
    "cdan+shot": (_PINK, "P"),
}
MEASURED, CORRECTED, PRINTED = _BLACK, _BLUE, _RED  # of a formula
PROTOCOL = {"as_released": (_RED, "D"), "as_described": (_BLUE, "o")}
_SPARE = ((_ORANGE, "<"), (_PINK, ">"), (_SKY, "p"), (_GREEN, "h"), (_BLACK, "X"))
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
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "lgfed",
}


def use() -> None:
    """Set the style for all figures that follow (first cell of a notebook); tables say all."""
    mpl.rcParams.update(_STYLE)
    pd.set_option("display.max_colwidth", None)
    _describe_figures()


def _describe_figures() -> None:
    """Have a notebook keep what a figure shows, in words, as its alternative text."""
    if "IPython" not in sys.modules:  # no notebook, and none of the book's packages needed
        return
    from IPython import get_ipython
    from IPython.core.pylabtools import print_figure

    shell = get_ipython()
    if shell is None:
        return
    plt.switch_backend(mpl.get_backend())  # loads the notebook's, which sets its own way to draw

    def drawn(figure: Figure):
        picture = print_figure(figure, "png", bbox_inches="tight", base64=True)
        return picture and (picture, {"alt": described(figure)})

    shell.display_formatter.formatters["image/png"].for_type(Figure, drawn)


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


def looks(methods: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each method; unknown ones take spare pairs in the order given."""
    spare = iter(_SPARE * 4)
    return {m: METHOD.get(m) or next(spare) for m in dict.fromkeys(methods)}


def room(ax: Axes, above: float = 0.0, below: float = 0.0) -> None:
    """Make room for a legend: extend the y axis by these shares of its height."""
    low, high = ax.get_ylim()
    ax.set_ylim(low - below * (high - low), high + above * (high - low))


def curves(
    history: pd.DataFrame,
    x: str = "round",
    y: str = "new_test_acc",
    by: str = "method",
    ax: Axes | None = None,
) -> Axes:
    """Mean of ``y`` over seeds against ``x``, a line per value of ``by``, with its 95 % band.

    history: one line per seed and x (columns x, y, by, and seed where there are several). Student's
    t band; none where a point has one seed. Points without ``y`` (rounds that were not evaluated)
    are left out.
    """
    ax = ax or plt.gca()
    history = history.dropna(subset=y)
    for method, (colour, marker) in looks(history[by]).items():
        points = history[history[by] == method].groupby(x)[y].agg(["mean", "std", "count"])
        some = slice(None, None, max(1, len(points) // 8))
        look = dict(color=colour, marker=marker, markevery=some)
        ax.plot(points.index, points["mean"], label=METHODS.get(method, str(method)), **look)
        n = points["count"]
        reach = reach_of(points["std"] / np.sqrt(n), n - 1)
        if (n > 1).any():
            low, high = points["mean"] - reach, points["mean"] + reach
            ax.fill_between(points.index, low, high, color=colour, alpha=0.18, linewidth=0)
    if pd.api.types.is_integer_dtype(history[x]):
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel(x.replace("_", " "))
    ax.set_ylabel(METRICS.get(y, y.replace("_", " ")))
    if len(history):
        ax.legend()
    return ax


def paper_vs_ours(
    table: pd.DataFrame,
    metric: str,
    ax: Axes | None = None,
    xlim: tuple[float, float] | None = None,
) -> Axes:
    """The paper's value (hollow, with its deviation) over ours (filled, with ours), line by line.

    table: of `report.table`, lines of one metric are drawn; per protocol its first selection.
    The shaded band is the margin within which a number counts as reproduced. Values outside
    ``xlim`` are written at the edge on their side.
    """
    ax = ax or plt.gca()
    lines = table[table["metric"] == metric]
    names = list(dict.fromkeys(lines["row"]))
    lines = lines.assign(y=lines["row"].map(names.index)).drop_duplicates(["row", "protocol"])
    if xlim:
        ax.set_xlim(*xlim)
    for cell in lines.drop_duplicates("row").itertuples():
        band = dict(height=0.84, color="#EFEFEF", linewidth=0, zorder=0)
        ax.barh(cell.y, 2 * cell.margin, left=cell.paper - cell.margin, **band)
    used = [p for p in PROTOCOL if (lines.loc[lines["seeds"] > 0, "protocol"] == p).any()]
    steps = np.linspace(-0.26, 0.26, 1 + len(used)) if used else [0.0]
    _dots(ax, lines.drop_duplicates("row"), "paper", steps[0], _BLACK, "o", "white", "paper")
    for protocol, step in zip(used, steps[1:], strict=True):
        colour, marker = PROTOCOL[protocol]
        run = lines[(lines["protocol"] == protocol) & (lines["seeds"] > 0)]
        seeds = "-".join(str(s) for s in sorted({run["seeds"].min(), run["seeds"].max()}))
        label = f"ours, {protocol.replace('_', ' ')} ({seeds} seed{'s' * (seeds != '1')})"
        _dots(ax, run, "ours", step, colour, marker, colour, label)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(METRICS.get(metric, metric))
    return ax


def _dots(ax, cells, value, step, colour, marker, face, label) -> None:
    """Dots with deviation; a dot beyond fixed limits becomes its number, written at the edge."""
    low, high = ax.get_xlim() if not ax.get_autoscalex_on() else (-np.inf, np.inf)
    inside = cells[cells[value].between(low, high)]
    look = dict(fmt=marker, color=colour, markerfacecolor=face, elinewidth=1.1, label=label)
    spread = inside[f"{value}_sd"].fillna(0)
    ax.errorbar(inside[value], inside["y"] + step, xerr=spread, **look)
    for cell in cells[~cells[value].between(low, high)].itertuples():
        found = getattr(cell, value)
        at, side, arrow = (low, "left", "← {:.1f}") if found < low else (high, "right", "{:.1f} →")
        look = dict(ha=side, va="center", fontsize=6.5, color=colour)
        ax.text(at, cell.y + step, arrow.format(found), **look)
