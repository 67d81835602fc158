"""Arrays that somebody brings along: accepted when whole, refused with the reason when not."""

import pytest
import torch

from lgfed_core import data
from lgfed_core.errors import DataError

X, Y = torch.zeros(6, 3), torch.arange(6) % 3


def test_whole_arrays_are_taken():
    groups = torch.zeros(6, 2, dtype=torch.long)
    own = data.Dataset("own", data.Split(X, Y, groups), data.Split(X.double(), Y), 3)
    assert len(own.train.take(torch.tensor([4, 1]))) == 2


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ((X, Y.int()), r"y is torch.int32 of shape \[6\]; labels must be torch.int64"),
        ((X, Y[:, None]), r"y is torch.int64 of shape \[6, 1\]"),
        ((X.int(), Y), r"x is torch.int32 of shape \[6, 3\]; 6 labels need floats"),
        ((X[:5], Y), r"x is torch.float32 of shape \[5, 3\]; 6 labels"),
        ((X, Y, Y), r"groups are torch.int64 of shape \[6\]; 6 labels need \[n, g\]"),
        ((X, Y, Y[:4, None]), r"groups are torch.int64 of shape \[4, 1\]"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, said):
    with pytest.raises(DataError, match=said):
        data.Split(*arrays)


@pytest.mark.parametrize("labels", [Y + 1, Y - 1])
def test_labels_that_are_no_class_are_refused(labels):
    whole, wrong = data.Split(X, Y), data.Split(X, labels)
    with pytest.raises(DataError, match="own: test labels go from .* 3 classes are 0 to 2"):
        data.Dataset("own", whole, wrong, 3)
    if labels.max() == 3:
        with pytest.raises(DataError, match="own: train labels go from 1 to 3"):
            data.Dataset("own", wrong, whole, 3)
    else:  # a row without a label, in training alone
        data.Dataset("own", wrong, whole, 3)
