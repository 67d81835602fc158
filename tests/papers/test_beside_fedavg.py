"""Five ways to differ from FedAvg, told by task."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from lgfed_core.papers.everywhere import claims, figures, tables
from lgfed_core.papers.everywhere.settings import METHODS


@pytest.fixture
def values():
    """MNIST alone, three seeds: whoever is not FedAvg is four points ahead."""
    cells = [("mnist", method, seed) for method in METHODS for seed in range(3)]
    index = pd.MultiIndex.from_tuples(cells, names=tables.INDEX)
    own = [90 + 0.1 * seed + 4 * (method != "fedavg") for _, method, seed in cells]
    return pd.DataFrame({"local_test_acc": own, "scale": "paper"}, index)


def test_each_way_is_so_far_ahead_of_fedavg_on_the_tasks_that_ran(values):
    (one,) = claims.ahead_of(values, "fedavg", figures.BESIDE)
    assert list(one.lines["name"]) == [METHODS[method] for method in figures.BESIDE]
    assert one.lines["estimate"].tolist() == pytest.approx([4.0] * 5)


def test_the_picture_has_a_mark_for_each_way_and_task(values):
    figure = figures.beside_fedavg(values, "seen")
    (ax,) = figure.axes
    drawn = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 1]
    assert drawn == pytest.approx([4.0] * 5)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["MNIST"]
    plt.close(figure)
