"""Arrays that somebody brings along: accepted when whole, refused with the reason when not."""

import numpy as np
import pytest
import torch

from lgfed_core import data
from lgfed_core.data.features.stored import load_arrays, save_arrays
from lgfed_core.errors import DataError, SettingsError
from toy import reading, toy_federation

X, Y = torch.zeros(6, 3), torch.arange(6) % 3


def test_whole_arrays_are_taken():
    groups = torch.zeros(6, 2, dtype=torch.long)
    own = data.Dataset("own", data.Split(X, Y, groups), data.Split(X.double(), Y), 3)
    assert len(own.train.take(torch.tensor([4, 1]))) == 2
    counted = data.Dataset("own", own.train, own.test, np.unique(Y).size + np.int64(0))
    assert counted.classes == 3 and type(counted.classes) is int


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ((X, Y.int()), r"y is torch.int32 of shape \[6\]; labels must be torch.int64"),
        ((X, Y[:, None]), r"y is torch.int64 of shape \[6, 1\]"),
        ((X.int(), Y), r"x is torch.int32 of shape \[6, 3\]; 6 labels need floats"),
        ((X[:5], Y), r"x is torch.float32 of shape \[5, 3\]; 6 labels"),
        ((X, Y, Y), r"groups are torch.int64 of shape \[6\]; 6 labels need \[n, g\]"),
        ((X.numpy(), Y), r"x is a ndarray; .* torch.as_tensor\(x, dtype=torch.float32\)"),
        ((X, Y.numpy()), r"y is a ndarray; .* torch.as_tensor\(y, dtype=torch.int64\)"),
        ((X, Y.tolist()), "y is a list; make it a tensor"),
        ((X, Y, [[0]] * 6), "groups is a list; make it a tensor"),
        ((X, Y, Y[:, None].float()), r"groups are torch.float32 .* must be torch.int64"),
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


@pytest.mark.parametrize("part", ["train", "test"])
def test_rows_of_another_precision_than_the_network_are_refused(part):
    fed = toy_federation()
    with pytest.raises(SettingsError, match=r"rows are torch.float64.*float32; .* x.float\(\)"):
        reading(fed, part, x=getattr(fed.data, part).x.double())


def test_a_damaged_file_of_arrays_is_named_wherever_the_damage_is(tmp_path):
    path = tmp_path / "arrays.npz"
    save_arrays(path, x=np.random.default_rng(0).random((40, 5)).round(1), y=np.arange(40))
    whole, refused = path.read_bytes(), 0
    x, y = load_arrays(path, "x", "y")
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            found = load_arrays(path, "x", "y")
            assert (found[0] == x).all() and (found[1] == y).all()  # in a byte that says nothing
        except DataError as error:
            assert f"{path} is damaged" in str(error)
            refused += 1
    assert refused > len(whole) / 14


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("part", ["train", "test"])
def test_rows_that_are_not_finite_are_named(part, value):
    fed = toy_federation()
    x = getattr(fed.data, part).x
    x[7, 3] = x[9] = value
    kind = "training" if part == "train" else "test"
    with pytest.raises(DataError, match=f"toy, {kind} rows: row 7 holds {value}, and 2 of"):
        reading(fed, part, x=x)
    reading(fed, part, x=torch.full_like(x, 3e38))  # large, and finite


def test_parts_are_splits_and_rows_per_class_whole_numbers():
    whole = data.Split(X, Y)
    with pytest.raises(DataError, match=r"own: test is a tuple; make it by Split\(x, y\)"):
        data.Dataset("own", whole, (X, Y), 3)
    for many in ("2", 2.5, 0):
        with pytest.raises(DataError, match=f"asked for {many!r} train rows per class"):
            data.subset(data.Dataset("own", whole, whole, 3), many)
