"""Figures of the FADE chapter show means over seeds of what they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lgfed_core.papers.fade.digits import figures as digits


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def heights(ax) -> list[list[float]]:
    return [np.asarray(line.get_ydata(), float).tolist() for line in ax.lines]


def test_digits_by_probability_and_both_losses_by_round():
    base = [
        dict(direction="usps-mnist", loss=loss, probability=p, seed=s)
        for loss in ("vanilla", "squared") for p in (0.1, 0.5, 1.0) for s in (0, 2)
    ]  # fmt: skip
    more = {"vanilla": 0, "squared": 5}
    end = [one | dict(value=60 + one["seed"] + more[one["loss"]]) for one in base]
    way = [
        one | dict(round=r, metric=metric, value=r + one["probability"] + one["seed"])
        for one in base for r in (1, 2) for metric in ("target_loss", "target_adversarial")
    ]  # fmt: skip
    reference = {"usps-mnist": {"source only": 40.0}}
    first, second, third = digits.figure2(pd.DataFrame(end), pd.DataFrame(way), reference).axes
    assert first.get_title() == "USPS to MNIST"
    assert [61] * 3 in heights(first) and [66] * 3 in heights(first)
    assert [40, 40] in heights(first)  # the reference
    assert np.allclose(heights(second), [[2.1, 3.1], [2.5, 3.5]] * 2)  # the rarest and a half
    assert heights(third)[-1] == pytest.approx([np.log(2)] * 2)
