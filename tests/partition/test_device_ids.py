"""Rows whose device is known."""

import numpy as np
import pandas as pd
import pytest

from lgfed_core.errors import PartitionError
from lgfed_core.partition import by_device


def test_a_device_has_the_rows_of_its_name():
    held = by_device(["b", "a", "b", "c"], ["c", "b"])
    assert [held.train.of(k).tolist() for k in range(3)] == [[1], [0, 2], [3]]
    assert [held.test.of(k).tolist() for k in range(3)] == [[], [1], [0]]
    assert held.validation is None and len(by_device(np.array([7, 3]), np.array([7, 7]))) == 2


def test_texts_may_be_of_pandas():
    held = by_device(pd.Series(["b", "a", "b"]), pd.Series(["b"]))
    assert held.train.of(1).tolist() == [0, 2] and held.test.of(1).tolist() == [0]


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        (np.array(["a", None]), np.array(["a"], dtype=object), "ids of training rows are object"),
        ([0, 1], [2], "device 2 has test rows and none to train on"),
        ([0.5, 1], [1], "ids of training rows are float64"),
        ([0, 1], [], "ids of test rows are"),
        ([[0], [1]], [0], "of shape"),
    ],
)
def test_what_names_no_device_is_refused(train, test, said):
    with pytest.raises(PartitionError, match=said):
        by_device(train, test)
