"""A figure once more for a phone: panels below each other instead of beside each other."""

import textwrap
from copy import deepcopy

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, GridSpecBase
from matplotlib.legend import Legend
from matplotlib.text import Text

NARROW = 3.75  # inches: as wide as the text of a page on a phone of 390 pixels
_LETTER = 0.56 / 72  # inches that a letter takes, for every point of its size


def narrowed(figure: Figure) -> Figure | None:
    """A copy that is `NARROW` inches wide; None where the figure is no wider.

    Of two or three columns one is left, of four or five two, so no panel gets narrower; a panel
    keeps its height, and gets the words that it shared with a neighbour. Rows of pictures, which
    have no titles of their own, keep their grid.
    """
    wide = figure.get_figwidth()
    if wide <= NARROW:
        return None
    with plt.ioff():  # a copy that pyplot does not show
        copy = deepcopy(figure)
    plt.close(copy)
    panels = [ax for ax in copy.axes if ax.get_subplotspec()]
    grids = {ax.get_subplotspec().get_gridspec() for ax in panels}
    columns = max((grid.ncols for grid in grids), default=1)
    copy.set_figwidth(NARROW)
    if any(ax.images for ax in panels) and not all(ax.get_title("left") for ax in panels):
        copy.set_figheight(copy.get_figheight() * NARROW / wide)
    elif columns > 1 and len(grids) == 1:
        columns = max(1, int(columns * NARROW / wide))
        _stack(copy, panels, grids.pop(), columns)
    for legend in [*copy.legends]:
        _above(copy, legend)
    for ax in panels:
        names, share = [text.get_text() for text in ax.get_yticklabels()], 0.9
        if any(" " in name for name in names):  # no numbers
            ax.set_yticks(ax.get_yticks(), [_broken(name, 24) for name in names])
            share = 0.65
        for text in (*ax.get_children(), ax.xaxis.label):
            _break(text, share * NARROW / columns)
    for text in copy.get_children():
        _break(text, NARROW)
    return copy


def _stack(copy: Figure, panels: list[Axes], old: GridSpecBase, columns: int) -> None:
    """Move the panels of a grid to one of fewer columns, in the order in which they are read."""
    at = {ax: ax.get_subplotspec().num1 for ax in panels}
    order, tall = sorted(set(at.values())), old.get_height_ratios()
    rows = [
        max(tall[place // old.ncols] for place in order[n : n + columns])
        for n in range(0, len(order), columns)
    ]
    _name(at, old.ncols, {place for n, place in enumerate(order) if n % columns == 0})
    copy.set_figheight(copy.get_figheight() * sum(rows) / sum(tall))
    new = GridSpec(len(rows), columns, figure=copy, height_ratios=rows)
    for ax, place in at.items():
        ax.set_subplotspec(new[order.index(place)])
        ax.tick_params(which="both", labelleft=True, labelbottom=True)


def _name(at: dict[Axes, int], ncols: int, first: set[int]) -> None:
    """Titles of the panels above, and labels of those below and at the left, where there are none.

    at: the place of each panel, row by row. first: places that get a label of the y axis.
    """
    titled = {place // ncols for ax, place in at.items() if ax.get_title("left")}
    for ax, place in at.items():
        column = [other for other, there in at.items() if there % ncols == place % ncols]
        row = [other for other, there in at.items() if there // ncols == place // ncols]
        left = [other.get_ylabel() for other in row[: row.index(ax) + 1] if other.get_ylabel()]
        if place // ncols not in titled:
            ax.set_title(column[0].get_title("left"))
        if ax.axison and not ax.get_xlabel():
            ax.set_xlabel(column[-1].get_xlabel())
        if ax.axison and place in first and left:
            ax.set_ylabel(left[-1])


def _above(copy: Figure, legend: Legend) -> None:
    """Put a figure's legend above its panels, in as many columns as there is room for."""
    words = [text.get_text() for text in legend.get_texts()]
    marks = dict(zip(words, legend.legend_handles, strict=True))  # of error bars the bars alone
    for ax in copy.axes:
        whole = zip(*reversed(ax.get_legend_handles_labels()), strict=True)
        marks |= {word: mark for word, mark in whole if word in marks}
    size, title = legend.get_texts()[0].get_fontsize(), legend.get_title().get_text()
    each = _LETTER * size * (max(map(len, words)) + 10)  # with its mark, and what is between
    copy.legends.remove(legend)
    columns = max(1, int(NARROW / each))
    look = dict(ncols=columns, fontsize=size, title=title or None)
    more = (len(words) - 1) // columns  # lines, for which the figure grows
    copy.set_figheight(copy.get_figheight() + more * 1.5 * size / 72)
    copy.legend([marks[word] for word in words], words, loc="outside upper left", **look)


def _break(text: object, inches: float) -> None:
    """New lines in a text that is wider."""
    if isinstance(text, Text):
        most = int(inches / (_LETTER * text.get_fontsize()))
        text.set_text(_broken(text.get_text(), max(1, most)))


def _broken(words: str, most: int) -> str:
    lines = words.splitlines()
    whole = dict(break_long_words=False, break_on_hyphens=False)
    return "\n".join(textwrap.fill(line, most, **whole) for line in lines)
