"""Choosing a setting on validation rows: the highest, of equals the usual; whole sweeps first."""

import numpy as np
import pandas as pd
import pytest

from lgfed_core.evidence.tuning import best_by_cell, best_setting


@pytest.mark.parametrize(
    ("scores", "usual", "best"),
    [
        ({0.1: 1.0, 0.2: 3.0, 0.3: 2.0}, 0.1, 0.2),
        ({0.1: 3.0, 0.2: 3.0, 0.3: 2.0}, 0.2, 0.2),  # of equals the usual one
        ({0.1: 3.0, 0.2: 3.0, 0.3: 2.0}, 0.3, 0.1),  # which is none of the equals: the first
        ({0.1: 3.0, 0.2: 3.0}, None, 0.1),
        ({}, 0.7, 0.7),
    ],
)
def test_the_highest_score_is_chosen_and_of_equals_the_usual_setting(scores, usual, best):
    assert best_setting(pd.Series(scores, dtype=float), usual) == best


def test_in_a_cell_more_seeds_come_before_fewer_losses_and_these_before_the_mean():
    runs = {
        ("a", 0.1, 0): 50.0, ("a", 0.1, 1): 50.0, ("a", 0.2, 0): 60.0, ("a", 0.2, 1): np.nan,
        ("a", 0.3, 0): 90.0,  # of one seed alone
        ("b", 0.1, 0): 50.004, ("b", 0.2, 0): 50.003, ("b", 0.3, 0): 50.0,
    }  # fmt: skip
    index = pd.MultiIndex.from_tuples(runs, names=["cell", "lr", "seed"])
    lines = pd.DataFrame({"acc": list(runs.values())}, index)
    assert best_by_cell(lines, "acc", "lr", ["cell"]).to_dict() == {"a": 0.1, "b": 0.1}
    swapped = lines.rename({0.1: 0.9}, level="lr").sort_index()
    assert best_by_cell(swapped, "acc", "lr", ["cell"])["b"] == 0.9
    assert best_by_cell(swapped, "acc", "lr", ["cell"], digits=2)["b"] == 0.2  # equal to two digits
