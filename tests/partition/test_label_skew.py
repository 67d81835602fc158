"""Partitions: no row twice, none lost, the sizes of the released scheme, and clear refusals."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from lgfed_core.errors import PartitionError
from lgfed_core.partition import (
    ClientIndices,
    Partition,
    classes_per_device,
    dirichlet,
    iid,
    label_shards,
    label_skew,
    with_validation,
)

MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # rows per digit
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
FEW = settings(max_examples=40, deadline=None)


def labels(per_class, seed=0):
    """Shuffled labels with ``per_class[c]`` rows of class c."""
    y = np.repeat(np.arange(len(per_class)), per_class)
    return np.random.default_rng(seed).permutation(y)


def dataset(train_y, test_y):
    split = [SimpleNamespace(y=torch.as_tensor(y)) for y in (train_y, test_y)]
    return SimpleNamespace(train=split[0], test=split[1])


def lists(rows):
    return [rows.of(k).tolist() for k in range(len(rows))]


def same(a, b):
    parts = [(a.train, b.train), (a.validation, b.validation), (a.test, b.test)]
    return all(x is y or torch.equal(x.index, y.index) for x, y in parts)


def assert_complete(rows, n):
    """Every one of n rows is held by exactly one device, and no device is empty."""
    assert sorted(i for mine in lists(rows) for i in mine) == list(range(n))
    assert rows.size.min() >= 1


@pytest.fixture(scope="module")
def mnist():
    return labels(MNIST_TRAIN), labels(MNIST_TEST, seed=1)


@st.composite
def problems(draw):
    """(train_y, test_y, devices, s): small data on which every scheme has an answer."""
    classes = draw(st.integers(1, 5))
    s = draw(st.integers(1, classes))
    devices = draw(st.integers(1, 9).filter(lambda k: s * k % classes == 0))
    at_least = s * devices // classes
    sizes = st.lists(st.integers(at_least, at_least + 9), min_size=classes, max_size=classes)
    seed = draw(st.integers(0, 2**40))
    return labels(draw(sizes), seed), labels(draw(sizes), seed + 1), devices, s


# ---- every scheme ----


def every_scheme(train_y, test_y, devices, s, seed):
    return {
        "label_shards": label_shards(train_y, test_y, devices, s, seed),
        "classes_per_device": classes_per_device(train_y, test_y, devices, s, seed),
        "iid": iid(train_y, test_y, devices, seed),
        "dirichlet": dirichlet(train_y, test_y, devices, 0.3, seed),
    }


@FEW
@given(problems(), st.integers(0, 2**40))
def test_each_row_is_held_once_and_no_device_is_empty(problem, seed):
    train_y, test_y, devices, s = problem
    made = every_scheme(train_y, test_y, devices, s, seed)
    for partition in made.values():
        assert len(partition) == devices and partition.validation is None
        assert_complete(partition.train, len(train_y))
        assert_complete(partition.test, len(test_y))
    table = made["classes_per_device"].describe(dataset(train_y, test_y))
    assert table.classes.map(len).max() <= s and (table.classes == table.test_classes).all()
    for rows in (made["iid"].train, made["iid"].test):
        assert rows.size.max() - rows.size.min() <= 1


def test_the_seed_alone_decides_and_no_global_state_is_read_or_changed(mnist):
    np.random.seed(0)
    one, drawn = every_scheme(*mnist, 100, 2, seed=3), np.random.rand()
    again = every_scheme(*(torch.from_numpy(y) for y in mnist), 100, 2, seed=3)
    other = every_scheme(*mnist, 100, 2, seed=4)
    for name in one:
        assert same(one[name], again[name]), name
        assert not same(one[name], other[name]), name
    np.random.seed(0)
    assert np.random.rand() == drawn


# ---- classes per device (LG-FedAvg v2, as released) ----


@pytest.mark.parametrize(
    ("s", "train", "test"), [(2, (271, 338), (44, 57)), (5, (108, 135), (17, 23))]
)
def test_mnist_shards_have_the_sizes_of_the_released_code(mnist, s, train, test):
    """Of two classes a device, a train shard has 271-338 rows and a test shard 44-57."""
    partition = classes_per_device(*mnist, 100, s, seed=0)
    sides = (partition.train, mnist[0], train), (partition.test, mnist[1], test)
    for rows, y, (low, high) in sides:
        for mine in lists(rows):
            per_class = np.unique(y[mine], return_counts=True)[1]
            most = s - len(per_class) + 1  # shards of one class
            assert low <= per_class.min() and per_class.max() <= high * most
        assert s * low <= rows.size.min() and rows.size.max() <= s * high
    held = partition.describe(dataset(*mnist)).classes.map(len)
    assert held.min() < s == held.max()  # a class may be drawn twice: "at most" is meant


def test_left_over_rows_go_to_the_first_shards():
    partition = classes_per_device([0] * 8, [0] * 3, devices=3, classes=1, seed=0)
    assert sorted(map(sorted, lists(partition.train))) == [[0, 1, 6], [2, 3, 7], [4, 5]]


# ---- label shards (LG-FedAvg v1) ----


def test_label_shards_share_their_numbers_between_train_and_test(mnist):
    balanced = labels([600] * 10), labels([100] * 10, seed=1)
    table = label_shards(*balanced, 100, 2, seed=0).describe(dataset(*balanced))
    assert (table.classes == table.test_classes).all() and table.classes.map(len).max() <= 2

    partition = label_shards(*mnist, 100, 2, seed=0)  # MNIST is not balanced
    assert set(partition.train.size.tolist()) == {600}
    assert set(partition.test.size.tolist()) == {100}
    table = partition.describe(dataset(*mnist))
    assert (table.classes != table.test_classes).any()
    assert "are tested on classes they never train on" in partition.summary(dataset(*mnist))


def test_label_shards_follow_the_sorted_labels():
    partition = label_shards([1, 0, 1, 0], [0, 1], devices=2, shards_per_device=1, seed=0)
    train, test = lists(partition.train), lists(partition.test)
    zero = train.index([1, 3])  # the device with the rows of class 0
    assert train[1 - zero] == [0, 2] and test[zero] == [0] and test[1 - zero] == [1]


# ---- i.i.d. and Dirichlet ----


def test_dirichlet_gives_a_device_the_same_share_of_a_class_in_train_and_test(mnist):
    partition = dirichlet(*mnist, devices=20, alpha=0.5, seed=0)
    train, test = (
        np.array([np.bincount(y[mine], minlength=10) for mine in lists(rows)]) / np.bincount(y)
        for rows, y in zip((partition.train, partition.test), mnist, strict=True)
    )  # [devices, classes] each
    assert (abs(train - test) <= 1 / np.array(MNIST_TEST) + 1 / np.array(MNIST_TRAIN)).all()


def test_alpha_says_how_uneven_the_shares_are(mnist):
    def classes(alpha):
        table = dirichlet(*mnist, 50, alpha, seed=0).describe(dataset(*mnist))
        return table.classes.map(len).mean()

    assert classes(0.01) < 2 < classes(0.1) < 9 < classes(100.0) == 10


def test_an_empty_device_gets_a_row_of_its_largest_share_from_who_holds_most_of_it():
    for seed in range(10):  # a row for each device, shares near 0 or 1: most are empty at first
        partition = dirichlet(labels([20] * 3), labels([10] * 3), 30, alpha=0.01, seed=seed)
        assert_complete(partition.train, 60)
        assert partition.test.size.tolist() == [1] * 30
    shares = np.array([[0.3, 0.69, 0.01], [0.37, 0.59, 0.04]])  # rounded: 3, 7, 0 and 4, 6, 0
    counts = label_skew._counts(shares, np.array([10, 10]))
    assert counts.tolist() == [[3, 7, 0], [4, 5, 1]]


def test_rows_of_a_class_are_dealt_at_random_in_train_and_test_each():
    y = np.zeros(40, dtype=int)
    shards = classes_per_device(y, y, devices=40, classes=1, seed=0)
    assert lists(shards.train) != lists(shards.test)
    shares = dirichlet(y, y, devices=2, alpha=5.0, seed=0)
    for mine in (sorted(shares.train.of(0).tolist()), sorted(shares.test.of(0).tolist())):
        assert len(mine) > 1 and mine != list(range(len(mine)))


# ---- validation ----


@FEW
@given(problems(), st.floats(0.01, 0.99), st.integers(0, 1000))
def test_validation_is_taken_from_each_devices_training_rows(problem, fraction, seed):
    train_y, test_y, devices, _ = problem
    before = dirichlet(train_y, test_y, devices, 0.3, seed)
    after = with_validation(before, fraction, seed)
    assert after.test is before.test
    for k, rows in enumerate(lists(before.train)):
        train, held = after.train.of(k).tolist(), after.validation.of(k).tolist()
        assert sorted(train + held) == sorted(rows)
        assert len(train) >= 1
        assert len(held) >= 1 or len(rows) == 1
        assert abs(len(held) - fraction * len(rows)) <= 1


def test_validation_is_random_and_seeded_and_a_single_row_is_kept(mnist):
    before = iid(*mnist, 10, seed=0)
    one, again, other = (with_validation(before, 0.2, seed) for seed in (0, 0, 1))
    assert same(one, again) and not same(one, other)
    assert one.validation.of(0).tolist() != before.train.of(0).tolist()[:1200]
    single = with_validation(iid([0, 0], [0, 0], devices=2, seed=0), 0.9, seed=0)
    assert single.train.size.tolist() == [1, 1] and single.validation.mask.shape == (2, 0)


# ---- rows and what a partition says of itself ----


def test_rows_come_as_anything_that_counts_and_are_padded_and_masked():
    rows = ClientIndices.from_lists([[5, 3], np.array([9]), []])
    assert rows.index.tolist() == [[5, 3], [9, 0], [0, 0]] and rows.index.dtype == torch.int64
    assert rows.size.tolist() == [2, 1, 0] and rows.size.dtype == torch.int64
    assert rows.mask.tolist() == [[True, True], [True, False], [False, False]]
    kinds = [torch.tensor([1, 2]), np.array([3], dtype=np.uint8), range(2), (4,), [torch.tensor(5)]]
    empty = [[], torch.empty(0), np.array([], dtype=bool)]
    found = lists(ClientIndices.from_lists(kinds + empty))
    assert found == [[1, 2], [3], [0, 1], [4], [5], [], [], []]
    padded = ClientIndices(torch.tensor([[3, -1, -1], [0, 0, 2]]), torch.tensor([1, 1]))
    assert lists(padded) == [[3], [0]]  # whatever lies behind
    assert len(Partition("padded", padded, None, padded)) == 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([0.0, 1.0], r"rows of device 1 are float64 of shape \[2\]"),
        (torch.tensor([1.5]), r"rows of device 1 are float32 of shape \[1\]"),
        (torch.tensor([True, False]), r"device 1 are bool of shape \[2\].*flatnonzero"),
        ([0, 3, -2], "device 1 holds row -2; rows are numbered from 0"),
        (torch.tensor([-1]), "device 1 holds row -1"),
        ([[0], [1]], r"rows of device 1 are int64 of shape \[2, 1\]"),
        (3, r"rows of device 1 are int64 of shape \[\]"),
        (["a"], "rows of device 1 are <U1"),
    ],
)
def test_what_is_no_row_number_is_refused(rows, said):
    with pytest.raises(PartitionError, match=said):
        ClientIndices.from_lists([[0, 1], rows])


def test_a_partition_says_what_it_made(mnist):
    partition = classes_per_device(*mnist, 100, 2, seed=0)
    sizes = [(int(r.size.min()), int(r.size.max())) for r in (partition.train, partition.test)]
    said = "100 devices, {}-{} train rows, {}-{} test rows".format(*sizes[0], *sizes[1])
    assert partition.summary(dataset(*mnist)) == f"{said}, at most 2 classes each"
    assert str(partition) == f"at most 2 classes per device: {said}"
    assert "validation rows" in str(with_validation(partition, 0.1, seed=0))


def test_describe_has_one_line_per_device():
    data = dataset([0, 0, 1, 1, 1], [0, 1, 1])
    partition = Partition(
        "by hand",
        train=ClientIndices.from_lists([[0, 1], [2, 3]]),
        validation=ClientIndices.from_lists([[4], []]),
        test=ClientIndices.from_lists([[0], [1, 2]]),
    )
    table = partition.describe(data)
    assert table.index.name == "device" and table.index.tolist() == [0, 1]
    due = dict(train=[2, 2], validation=[1, 0], test=[1, 2])
    due |= dict(classes=[(0, 1), (1,)], test_classes=[(0,), (1,)])
    assert table.to_dict("list") == due
    assert partition.summary(data) == (
        "2 devices, 2 train rows, 0-1 validation rows, 1-2 test rows, at most 2 classes each"
    )


def test_rows_that_several_devices_hold_are_counted_and_allowed():
    data, train = dataset([0, 0, 1, 1, 1], [0, 1, 1]), [[0, 1], [1, 2], []]
    assert "; 1 rows of the training set are held by several" in of(train, None).summary(data)
    assert "; 2 rows of" in of(train, [[], [0], [3, 1]]).summary(data)


# ---- what is refused ----

A, B = [0, 0, 1, 1, 2, 2], [0, 1, 2]  # six training and three test rows of three classes


def made(index, size) -> ClientIndices:
    return ClientIndices(torch.as_tensor(index), torch.as_tensor(size))


def of(train, validation) -> Partition:
    held = [rows and ClientIndices.from_lists(rows) for rows in (train, validation)]
    return Partition("x", *held, ClientIndices.from_lists([[0]] * len(train)))


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        *[("devices is 0", lambda make=make, more=more: make(A, B, 0, *more, 0)) for make, more in (
            (label_shards, [2]), (classes_per_device, [2]), (iid, []), (dirichlet, [1.0]))],
        ("devices is -3", lambda: iid(A, B, -3, 0)),
        ("devices is 1.5", lambda: iid(A, B, 1.5, 0)),
        ("0 devices", lambda: ClientIndices.from_lists([])),
        ("4 devices, but only 6 .* and 3 test rows", lambda: iid(A, B, 4, 0)),
        ("4 devices, but only", lambda: dirichlet(A, B, 4, 1.0, 0)),
        ("4 shards, but the test set", lambda: label_shards(A, B, 2, 2, 0)),
        ("4 shards, but the training set", lambda: label_shards(B, A, 2, 2, 0)),
        ("class 0 of the test set has 1 rows for 2 shards", lambda: classes_per_device(
            A, B, 2, 3, 0)),
        (r"test set has no row of class \[2\]", lambda: iid(A, [0, 1], 1, 0)),
        (r"training set has no row of class \[3\]", lambda: classes_per_device(
            A, [0, 1, 2, 3], 3, 1, 0)),
        ("8 shards cannot be shared equally by 3 classes", lambda: classes_per_device(
            A, B, 4, 2, 0)),
        ("classes is 0", lambda: classes_per_device(A, B, 3, 0, 0)),
        ("shards_per_device is 0", lambda: label_shards(A, B, 3, 0, 0)),
        ("only 3 classes", lambda: classes_per_device(A, B, 3, 4, 0)),
        *[(f"alpha is {alpha!r}", lambda alpha=alpha: dirichlet(A, B, 2, alpha, 0))
          for alpha in ("0.3", None, 0.0, -1.0, float("nan"), float("inf"))],
        ("too extreme", lambda: dirichlet(A, B, 2, 1.7e308, 0)),
        (r"training labels are int64 of shape \(1, 2\)", lambda: iid([[0, 1]], B, 1, 0)),
        ("test labels are float64", lambda: iid(A, [0.0, 1.0], 1, 0)),
        ("training set has no rows", lambda: iid(np.array([], int), B, 1, 0)),
        ("seed is -1", lambda: iid(A, B, 1, -1)),
        ("seed is None", lambda: iid(A, B, 1, None)),
        *[(f"fraction is {part}", lambda part=part: with_validation(iid(A, B, 1, 0), part, 0))
          for part in (0, 1.0, -0.1)],
        ("has validation rows already", lambda: with_validation(
            with_validation(iid(A, B, 1, 0), 0.5, 0), 0.5, 0)),
        ("row 5 of a training set with 4 rows", lambda: iid(
            A, B, 1, 0).describe(dataset(A[:4], B))),
        ("row 2 of a test set with 2 rows", lambda: iid(A, B, 1, 0).describe(dataset(A, B[:2]))),
        ("different numbers of devices", lambda: Partition(
            "x", ClientIndices.from_lists([[0]]), None, ClientIndices.from_lists([[0], [1]]))),
        ("device 1 holds row -3; rows are numbered from 0", lambda: made(
            [[0, 1], [2, -3]], [2, 2])),
        (r"index is torch.float32 of shape \[1, 2\], size torch.int64 .*from_lists", lambda: made(
            [[0.0, 1.0]], [2])),
        ("size torch.float32 of shape", lambda: made([[0]], [1.0])),
        (r"index is torch.int64 of shape \[2\]", lambda: made([0, 1], [2])),
        (r"size torch.int64 of shape \[1\]", lambda: made([[0], [1]], [1])),
        ("index is a list, size a list; they must", lambda: ClientIndices([[0]], [1])),
        ("a ndarray", lambda: ClientIndices(np.zeros((1, 1), int), torch.ones(1).long())),
        ("index is", lambda: made(torch.zeros(0, 2).long(), [])),
        ("sizes go from 3 to 3, but .* 0 to 2", lambda: made([[0, 1]], [3])),
        ("sizes go from -1 to -1", lambda: made([[0, 1]], [-1])),
        ("train rows of 'x' are a list; make them by ClientIndices.from_lists", lambda: Partition(
            "x", [[0]], None, [[0]])),
        ("test rows of 'x' are a", lambda: Partition("x", made([[0]], [1]), None, None)),
        ("device 1 of 'x' has train row 2 twice; give each once", lambda: of(
            [[0, 1], [2, 5, 2]], None)),
        ("device 0 of 'x' has train row 0 twice", lambda: of([[0, 3, 0], [1]], None)),
        ("device 1 of 'x' trains on row 3, which it has for validation too", lambda: of(
            [[0, 1], [2, 3]], [[2], [0, 3]])),
    ],
)  # fmt: skip
def test_the_impossible_is_refused(said, asked):
    with pytest.raises(PartitionError, match=said):
        asked()
