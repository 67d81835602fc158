"""The figures of the theory page show what they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lgfed_core import plotting
from lgfed_core.papers.lgfedavg.theory import (
    best_weight,
    closed_form as theory,
    figures as figures_theory,
    minimax,
)
from lgfed_core.papers.lgfedavg.theory.interpolation import simulate


@pytest.fixture(autouse=True)
def styled():
    with plotting.style():
        yield
    plt.close("all")


@pytest.fixture(scope="module")
def samples():
    laws = theory.cube(), theory.normal(), theory.sphere()
    return [simulate(law, 3, devices=5, rows=60, test_rows=20) for law in laws]


def test_error_curves(samples):
    figure = figures_theory.error_curves(samples[0])
    assert len(figure.axes) == 8
    ax = figure.axes[1]
    assert "ρ = 0.1 (2a)" in ax.get_title(loc="left")
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    expected = best_weight.errors(samples[0], 0.1, 1.5, best_weight.GRID, on="test").mean(0)
    np.testing.assert_allclose(dots.get_ydata(), expected)
    terms = theory.corrected(best_weight.problem(samples[0], 0.1, 1.5))
    solid = next(line for line in ax.lines if line.get_label() == "Theorem 2 corrected")
    np.testing.assert_allclose(solid.get_ydata(), 1.5**2 + terms.error(solid.get_xdata()))


def test_predicted_and_measured(samples):
    table = best_weight.table(samples)
    figure = figures_theory.predicted_and_measured(table)
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    cs = {"uniform on the cube": "0.333", "normal": "1", "uniform on the sphere": "0.05"}
    assert words == [f"x {law}, c = {c}" for law, c in cs.items()]
    left = [line for line in figure.axes[0].lines if line.get_marker() in "o^D"]
    shown = np.concatenate([np.asarray(line.get_xdata(), float) for line in left])
    np.testing.assert_allclose(np.sort(shown), np.sort(table["printed"]))
    low, high = figure.axes[2].get_ylim()
    assert low < table["z"].min() and table["z"].max() < high


def test_few_rows():
    law = theory.normal(4)
    samples = [simulate(law, 3, devices=5, rows=rows) for rows in (30, 12)]
    ax = figures_theory.few_rows(samples, 0.1, 1.0).axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["12", "30"]


def test_pivotal_limits():
    reliance = minimax.sweep([0.0, 0.1, 0.2], [1.0])
    strength = minimax.sweep([0.15], [0.1, 1.0, 10.0])
    figure = figures_theory.pivotal_limits(reliance, strength)
    assert [text.get_text() for text in figure.axes[1].texts] == ["then 0"]
