"""The forest plot: what each mark stands for, and that nothing is drawn of what has not run."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lgfed_core.evidence import verdict
from lgfed_core.evidence.answers import told
from lgfed_core.evidence.claims import Claim, tested as part
from lgfed_core.papers.forest import forest

VALUES = {
    "ahead": [5.0, 5.1, 5.2],
    "behind": [-5.0, -5.1, -5.2],
    "level": [0.01, 0.0, -0.01],
    "unclear": [9.0, -9.0, 1.0],
    "not run": [],
}


@pytest.fixture
def claim():
    def parts(found):
        some = [part(name, np.array(v), verdict.greater) for name, v in found.items() if v]
        return [replace(some[0], printed=7.0), *some[1:]]

    return Claim(
        "L1", "a/page", "above zero", parts, question="Is it?", answer="**In part.**",
        guard=lambda _: True, unit="points, above 0: ours is ahead", level=1.0, total=5,
    )  # fmt: skip


@pytest.fixture
def figure(claim):
    figure = forest(told([claim], VALUES)["L1"], "Ours is ahead in one of four")
    yield figure
    plt.close(figure)


def test_a_line_for_each_comparison_that_has_run_in_its_order(figure):
    (ax,) = figure.axes
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["unclear", "level", "behind", "ahead"]  # from below
    assert [text.get_text() for text in ax.texts] == ["3"] * 4
    assert ax.get_xlabel() == "points, above 0: ours is ahead"
    assert ax.get_title(loc="left") == "Ours is ahead in one of four"


def test_the_legend_has_what_is_drawn_and_the_paper_is_hollow(figure):
    (legend,) = figure.legends
    said = [text.get_text() for text in legend.get_texts()]
    assert said == ["as claimed", "level", "against", "open", "the paper"]
    (ax,) = figure.axes
    (paper,) = (line for line in ax.lines if list(line.get_xdata()) == [7.0])
    assert paper.get_markerfacecolor() == "white"


def test_panels_of_claims_that_have_not_run_are_empty(claim):
    empty = replace(claim, comparisons=lambda found: [])
    figure = forest([told([claim], VALUES)["L1"], told([empty], {})["L1"]], ["a", "b"])
    assert [len(ax.texts) for ax in figure.axes] == [4, 0]
    plt.close(figure)
