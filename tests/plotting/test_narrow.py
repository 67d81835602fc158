"""A figure once more for a phone: what is kept, what moves, and that the figure stays as it was."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.lines import Line2D

from lgfed_core import plotting
from lgfed_core.plotting.narrow import NARROW, narrowed


@pytest.fixture(autouse=True)
def styled():
    with plotting.style():
        yield
    plt.close("all")


def drawn(rows: int, columns: int, **look):
    figure, grid = plt.subplots(rows, columns, figsize=(6.5, 2.0 * rows), squeeze=False, **look)
    for n, ax in enumerate(grid.flat):
        ax.errorbar([0, 1], [n, 1], 0.1, marker="o", label="a method")
    grid[0, 0].set_title("old devices")
    grid[0, 1].set_title("newcomer"), grid[0, 0].set_ylabel("accuracy"), grid[-1, 0].set_xlabel("n")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), ncols=3, loc="outside lower center")
    return figure


def places(figure) -> list[tuple[int, int]]:
    """Row and column of each panel in its grid."""
    specs = [ax.get_subplotspec() for ax in figure.axes]
    return [(spec.rowspan.start, spec.colspan.start) for spec in specs]


def test_panels_come_below_each_other_as_high_as_before_and_with_their_words():
    figure = drawn(2, 2, sharex=True, sharey=True)
    copy = narrowed(figure)
    assert copy.get_size_inches() == pytest.approx([NARROW, 8])
    assert places(copy) == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert [ax.get_title("left") for ax in copy.axes] == ["old devices", "newcomer"] * 2
    assert [ax.get_ylabel() for ax in copy.axes] == ["accuracy", "accuracy", "", ""]
    assert [ax.get_xlabel() for ax in copy.axes] == ["n", "", "n", ""]
    assert all(ax.yaxis.get_tick_params()["labelleft"] for ax in copy.axes)
    assert places(figure) == [(0, 0), (0, 1), (1, 0), (1, 1)] and figure.get_figwidth() == 6.5
    assert plt.get_fignums() == [figure.number], "pyplot does not show the copy"


def test_of_five_columns_two_are_left_and_what_is_narrow_stays():
    assert places(narrowed(drawn(1, 5))) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert narrowed(plt.figure(figsize=(NARROW, 2))) is None
    assert narrowed(plt.figure(figsize=(6.5, 2))).get_figwidth() == NARROW


def test_rows_of_pictures_keep_their_grid_unless_each_has_a_title():
    figure = drawn(1, 2)
    figure.axes[0].imshow([[0, 1]])
    assert places(narrowed(figure)) == [(0, 0), (1, 0)]
    figure.axes[1].set_title("")
    copy = narrowed(figure)
    assert places(copy) == [(0, 0), (0, 1)]
    assert copy.get_figheight() == pytest.approx(2 * NARROW / 6.5)


def test_a_legend_keeps_its_marks_and_long_words_get_new_lines():
    figure = drawn(1, 2)
    figure.suptitle("a title that is far too long for a phone, though a page has room for it")
    figure.axes[0].set_yticks([0, 1], ["a method with too many words", "b\nc d"])
    copy = narrowed(figure)
    [legend] = copy.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a method"]
    assert "o" in [line.get_marker() for line in legend.findobj(Line2D)]
    assert copy.get_suptitle().count("\n") == 1
    names = [text.get_text() for text in copy.axes[0].get_yticklabels()]
    assert names == ["a method with too many\nwords", "b\nc d"]


def test_a_page_has_both_and_a_screen_takes_the_one_that_fits():
    page = plotting.presented(drawn(1, 2))
    assert page.count("data:image/svg+xml") == 2 and page.count("<img") == 1
    assert f'<picture><source media="{plotting.PHONE}" srcset="data:' in page
    figure = plt.figure(figsize=(NARROW, 2))
    figure.add_subplot()
    assert "<source" not in plotting.presented(figure)
