"""The linear models and the rules without a network: held against the theory, and by hand."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lgfed_core.papers.lgfedavg.mood import figures, linear, tables
from lgfed_core.papers.lgfedavg.mood.stand_in_people import SOURCES
from lgfed_core.papers.lgfedavg.mood.texts import Texts


@pytest.mark.parametrize("rho", [0.2, 1.0])
def test_the_mixture_errs_as_the_theory_says(rho):
    grid = np.array([0.0, 0.5, 1.0])  # of the global model
    found, due = linear.errors(rho, grid, range(12)), linear.predicted(rho).error(1 - grid)
    assert (abs(found.mean(0) - due) < 4 * found.std(0, ddof=1) / np.sqrt(12)).all()


def test_the_best_mixture_is_found_and_the_teacher_is_the_best_model():
    found = linear.table(range(8))
    assert list(found.index) == [SOURCES[name] for name in ("alike", "between", "apart")]
    assert (np.diff(found["measured"]) < 0).all() and found["measured"].iloc[0] > 0.95  # alike
    assert (found["error mixture"] <= found[["error local only", "error global"]].min(axis=1)).all()
    others = found[[f"accuracy {name}" for name in ("local only", "global", "mixture")]]
    assert (found["accuracy teacher"] > others.max(axis=1)).all()
    away = (found["measured"] - found["best global weight, predicted"]).abs()  # as the page says
    assert away.max() < 0.06 and found["measured"].iloc[-1] < 0.1


def test_the_side_that_the_theory_expects_follows_from_its_weight():
    said = [tables.expected(name) for name in ("alike", "between", "apart", "chats")]
    assert said[0] == "FedAvg (weight 1.00)" and said[3] == ""
    assert said[1].startswith("in between (weight 0.5") and said[2].startswith("local only (")


def test_rules_without_a_network_know_what_they_are_given():
    """Ann says "up" for 4 and "down" for 0, Ben says nothing of his mood, which is mostly 3."""
    many = 40
    ann = [(("up",), 4) if i % 2 else (("down",), 0) for i in range(many)]
    ben = [(("hm", "so"), 3)] * many
    words, label = zip(*ann, *ben, strict=True)
    texts = Texts("two", np.repeat(["ann", "ben"], many), words, np.array(label))
    found = tables.alone(texts, range(2)).mean()
    assert found["commonest label"] == 50 and found["the person's commonest"] < 100
    assert found["words"] == found["words and person"] == 100


def test_curves_are_means_over_seeds_and_restarts_by_source_and_share():
    rows = [
        dict(stand_in=title, alpha=alpha, lr=0.005, seed=seed, round=r)
        | dict(metric=f"{part}_acc", value=v + seed)
        for title, v in (("chats", 10.0), ("made up", 50.0))
        for alpha in (0.0, 0.4)
        for seed in (0, 2)
        for r in (1, 2)
        for part in ("validation", "test")
        if (part, title) != ("test", "chats") or alpha
    ]
    figure = figures.over_rounds(pd.DataFrame(rows))
    seen = [[line.get_ydata().tolist() for line in ax.lines] for ax in figure.axes]
    assert seen == [[[11, 11]] * 2, [[11, 11]], [[51, 51]] * 2, [[51, 51]] * 2]
    plt.close("all")


def test_the_theorys_curve_is_drawn_beside_what_was_measured():
    figure = figures.mixtures(range(2))
    for ax, rho in zip(figure.axes, (0.0, 0.2, 1.0), strict=True):
        predicted, measured, best = ax.lines
        assert predicted.get_ydata() == pytest.approx(
            linear.predicted(rho).error(1 - predicted.get_xdata())
        )
        assert measured.get_ydata() == pytest.approx(
            linear.errors(rho, measured.get_xdata(), range(2)).mean(0)
        )
        least = predicted.get_xdata()[np.argmin(predicted.get_ydata())]
        assert best.get_xdata()[0] == pytest.approx(least, abs=0.026)
    plt.close("all")
