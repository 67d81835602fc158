"""Reading the sets: official formats on tiny files, and the real MNIST, CIFAR-10 and Adult."""

import bz2
import csv
import hashlib
import io
import json
import re
import struct
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.model_selection import train_test_split

from lgfed_core import data, paths
from lgfed_core.data import adult, catalogue, cifar10, mirrors, mnist, usps
from lgfed_core.errors import DataError, NotAvailable, SettingsError

MNIST_MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
ADULT_MD5 = {
    "adult.data": "5d7c39d7b8804f071cdd1f2a7c460872",
    "adult.test": "35238206dfdf7f1fe215bbb874adecdc",
}


def ready(name: str) -> bool:
    return catalogue.source(name).state() == "ready"


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


# --- MNIST ---------------------------------------------------------------------------------


def idx(magic: int, shape: tuple[int, ...], body: bytes) -> bytes:
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + body


def write_mnist(folder: Path, labels=(3, 0, 9), images: int | None = None) -> np.ndarray:
    n = len(labels) if images is None else images
    pixels = np.random.default_rng(0).integers(0, 256, (n, 28, 28), np.uint8)
    content = idx(2051, pixels.shape, pixels.tobytes()), idx(2049, (len(labels),), bytes(labels))
    for prefix in ("train", "t10k"):
        for kind, some in zip(("images-idx3", "labels-idx1"), content, strict=True):
            (folder / f"{prefix}-{kind}-ubyte").write_bytes(some)
    return pixels


def test_mnist_is_read_and_normalised(tmp_path):
    pixels = write_mnist(tmp_path)
    got = mnist.read(tmp_path)
    assert (got.name, got.classes, got.train.groups) == ("mnist", 10, None)
    assert got.train.x.dtype == torch.float32
    assert got.train.y.dtype == torch.int64
    expected = (pixels.reshape(3, 784) / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(got.train.x, expected, rtol=1e-5, atol=1e-6)
    assert got.test.y.tolist() == [3, 0, 9]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(2049, (2, 3, 3), bytes(18)), "magic number 2049 instead of 2051"),
        (idx(0x1F8B0808, (2, 3, 3), bytes(18)), "not idx"),  # a gzip file that nobody unpacked
        (idx(2051, (2, 3, 3), bytes(17)), r"33 bytes, .*\(shape \[2, 3, 3\]\) says 34"),
        (idx(2051, (2, 3, 3), bytes(19)), "says 34"),
        (idx(2051, (2**31, 2**31, 4), b""), "says 18,446,744,073,709,551,632"),
        (b"\0\0\x08\x03\0\0", "6 bytes, too short for the 16"),
        (None, "cannot be read: No such file"),
    ],
)
def test_an_idx_file_that_is_not_right_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "images").write_bytes(content)
    with pytest.raises(DataError, match=message):
        mnist.read_idx(tmp_path / "images", dimensions=3)


def test_mnist_with_unequal_counts_or_strange_labels_is_refused(tmp_path):
    write_mnist(tmp_path, labels=(1, 2, 3), images=2)
    with pytest.raises(DataError, match="2 train images but 3 labels"):
        mnist.read(tmp_path)
    write_mnist(tmp_path, labels=(1, 10))
    with pytest.raises(DataError, match="train has label 10"):
        mnist.read(tmp_path)
    small = idx(2051, (2, 20, 20), bytes(800))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(small)
    with pytest.raises(DataError, match=r"train images have shape \[20, 20\], not 28, 28"):
        mnist.read(tmp_path)


def test_idx_files_can_be_rebuilt_from_csv(tmp_path):
    pixels = write_mnist(tmp_path)
    lines = [",".join(map(str, [y, *p.flatten()])) for y, p in zip((3, 0, 9), pixels, strict=True)]
    table = "\n".join(lines).encode()
    images = mnist.rebuild([table], {"dimensions": 3})
    assert images == (tmp_path / "train-images-idx3-ubyte").read_bytes()
    labels = mnist.rebuild([table], {"dimensions": 1})
    assert labels == (tmp_path / "train-labels-idx1-ubyte").read_bytes()
    with pytest.raises(ValueError, match="3 columns instead of 785"):
        mnist.rebuild([b"1,2,3\n"], {"dimensions": 3})


@pytest.fixture(scope="module")
def real_mnist() -> data.Dataset:
    return data.load("mnist")  # fetched when it is not here: this set is needed everywhere


def test_the_real_mnist_has_the_published_bytes_and_counts(real_mnist):
    assert {name: md5(paths.CACHE / "mnist" / name) for name in MNIST_MD5} == MNIST_MD5
    train, test = real_mnist.train, real_mnist.test
    assert (train.x.shape, test.x.shape) == ((60000, 784), (10000, 784))
    assert train.y.bincount().tolist() == list(mnist.ROWS[0])
    assert test.y.bincount().tolist() == list(mnist.ROWS[1])
    assert train.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert abs(float(train.x.mean())) < 1e-3 > abs(float(train.x.std()) - 1)
    assert float(train.x.min()) == pytest.approx(-0.1307 / 0.3081)


# --- subset --------------------------------------------------------------------------------


def test_subset_keeps_the_first_rows_of_every_class_in_order(real_mnist):
    small = data.subset(real_mnist, 5, 2)
    assert small.train.y.bincount().tolist() == [5] * 10
    assert small.test.y.bincount().tolist() == [2] * 10
    first = [(real_mnist.train.y == label).nonzero()[:5, 0] for label in range(10)]
    rows = torch.cat(first).sort().values
    assert torch.equal(small.train.x, real_mnist.train.x[rows])
    assert torch.equal(small.train.y, real_mnist.train.y[rows])
    assert len(data.subset(real_mnist, 3).test) == 30
    with pytest.raises(DataError, match="asked for 900 test rows per class, but class 5 has 892"):
        data.subset(real_mnist, 5, 900)
    with pytest.raises(DataError, match="asked for 0 train rows per class"):
        data.subset(real_mnist, 0)


# --- CIFAR-10 ------------------------------------------------------------------------------


def write_cifar10(folder: Path, n: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (6, n, 3, 32, 32), np.uint8)
    labels = rng.integers(0, 10, (6, n), np.uint8)
    for i, name in enumerate([*cifar10.TRAIN, *cifar10.TEST]):
        records = np.concatenate([labels[i][:, None], images[i].reshape(n, -1)], axis=1)
        (folder / name).write_bytes(records.tobytes())
    return images, labels


def test_cifar10_is_read_and_normalised(tmp_path):
    images, labels = write_cifar10(tmp_path)
    got = cifar10.read(tmp_path)
    assert got.train.x.shape == (20, 3, 32, 32)
    assert got.train.x.dtype == torch.float32
    assert got.train.y.tolist() == labels[:5].flatten().tolist()
    assert got.test.y.tolist() == labels[5].tolist()
    mean, std = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[:, :, None, None]
    np.testing.assert_allclose(got.test.x, (images[5] / 255 - mean) / std, rtol=1e-4, atol=1e-5)


def test_a_cifar10_batch_that_is_not_right_is_refused(tmp_path):
    write_cifar10(tmp_path)
    batch = tmp_path / "data_batch_3.bin"
    raw = batch.read_bytes()
    for bad in (raw[:-1], b""):
        batch.write_bytes(bad)
        with pytest.raises(DataError, match=r"data_batch_3.*no whole number of 3073 B records"):
            cifar10.read(tmp_path)
    batch.write_bytes(raw[:3073] + b"\x0a" + raw[3074:])
    with pytest.raises(DataError, match="record 1 has label 10"):
        cifar10.read(tmp_path)
    batch.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        cifar10.read(tmp_path)


def test_a_cifar10_batch_can_be_rebuilt_from_a_picture(tmp_path):
    images, labels = write_cifar10(tmp_path)
    picture = io.BytesIO()
    Image.fromarray(images[1].reshape(4, 3, 1024).transpose(0, 2, 1)).save(picture, "PNG")
    every_label = json.dumps(labels[:5].flatten().tolist()).encode()
    batch = cifar10.rebuild([picture.getvalue(), every_label], {"first": 4})
    assert batch == (tmp_path / "data_batch_2.bin").read_bytes()
    with pytest.raises(ValueError, match="2 labels for 4 images"):
        cifar10.rebuild([picture.getvalue(), every_label], {"first": 18})
    with pytest.raises(ValueError, match="does not open"):
        cifar10.rebuild([b"no picture", every_label], {"first": 0})


@pytest.mark.slow
def test_the_real_cifar10():
    if not ready("cifar10"):
        pytest.skip("CIFAR-10 is not here; `python -m lgfed_core data cifar10` gets it (139 MB)")
    got = data.load("cifar10")
    assert (got.train.x.shape, got.test.x.shape) == ((50000, 3, 32, 32), (10000, 3, 32, 32))
    assert got.train.y.bincount().tolist() == list(cifar10.ROWS[0])
    assert got.test.y.bincount().tolist() == list(cifar10.ROWS[1])
    first = [cifar10.CLASSES[i] for i in got.train.y[:5]]
    assert first == ["frog", "truck", "truck", "deer", "automobile"]
    means = got.train.x.mean((0, 2, 3)) * torch.tensor(cifar10.STD) + torch.tensor(cifar10.MEAN)
    torch.testing.assert_close(means, torch.tensor([0.4914, 0.4822, 0.4465]), atol=1e-3, rtol=0)


# --- Adult ---------------------------------------------------------------------------------

# categories of the White and Black rows of adult.data, a missing value included
LEVELS = dict(workclass=9, education=16, marital_status=7, occupation=15, relationship=6)
LEVELS["country"] = 41


def adult_lines(n: int = 120) -> list[str]:
    """Rows in the official format in which every category occurs, two races too many among them."""
    races = ["White", "Black", "White", "Other", "White", "Asian-Pac-Islander"]
    lines = []
    for i in range(n):
        row = dict.fromkeys(adult.COLUMNS, "")
        for j, (column, count) in enumerate(LEVELS.items()):
            level = (i * (j + 1) + i // count) % count if i >= 82 else (i // 2) % count
            row[column] = "?" if level == 0 and column == "workclass" else f"{column[0]}{level:02d}"
        row |= {"age": 17 + i % 70, "fnlwgt": 1000 + i, "education_num": 1 + i % 16}
        row |= {"capital_gain": i % 3 * 500, "capital_loss": i % 5 * 7}
        row |= {"hours_per_week": 20 + i % 9}
        row |= {"race": races[i % 6] if i >= 82 else ("White", "Black")[i % 2]}
        row |= {"sex": ("Male", "Female")[i % 3 == 0], "target": (">50K", "<=50K")[i % 4 > 0]}
        lines.append(", ".join(str(row[c]) for c in adult.COLUMNS))
    return lines


def write_adult(folder: Path, lines: list[str]) -> Path:
    path = folder / "adult.data"
    path.write_text("\n".join(lines) + "\n\n")
    return path


def by_hand(lines: list[str]) -> tuple[np.ndarray, list[int], list[list[int]]]:
    """The recipe of the experiment once more, row by row."""
    rows = csv.DictReader(lines, adult.COLUMNS, skipinitialspace=True)
    rows = [r for r in rows if r["race"] in ("White", "Black")]
    features = [c for c in adult.COLUMNS if c in adult.NUMBERS and c != "fnlwgt"]
    x = [[float(r[c]) for c in features] for r in rows]
    for column in LEVELS:
        values = [r[column] if r[column] != "?" else "Unknown" for r in rows]
        for level in sorted(set(values))[1:]:
            for inputs, value in zip(x, values, strict=True):
                inputs.append(float(value == level))
    y = [int(r["target"] == ">50K") for r in rows]
    groups = [[int(r["race"] == "White"), int(r["sex"] == "Male")] for r in rows]
    return np.array(x), y, groups


@pytest.mark.parametrize("rows", [None, 90])
def test_adult_follows_the_recipe(tmp_path, rows):
    lines = adult_lines()
    write_adult(tmp_path, lines)
    got = adult.read(tmp_path, rows=rows)
    x, y, groups = (part[:rows] for part in by_hand(lines))
    train, test = train_test_split(range(len(y)), test_size=0.5, stratify=y, random_state=7)
    deviation = x[train].std(0)
    x = (x - x[train].mean(0)) / np.where(deviation == 0, 1, deviation)
    assert got.classes == 2
    for split, index in ((got.train, train), (got.test, test)):
        assert split.x.shape == (len(index), 93)
        np.testing.assert_allclose(split.x, x[index], rtol=1e-5, atol=1e-6)
        assert split.y.tolist() == [y[i] for i in index]
        assert split.groups.tolist() == [groups[i] for i in index]
        assert split.groups.dtype == split.y.dtype == torch.int64


def test_the_test_file_of_adult_is_read_despite_its_comment_and_dots(tmp_path):
    lines = adult_lines()
    plain = adult.read_table(write_adult(tmp_path, lines))
    path = tmp_path / "adult.test"
    path.write_text("|1x3 Cross validator\n" + ".\n".join(lines) + ".\n\n")
    assert adult.read_table(path).equals(plain)
    assert (plain.workclass == "Unknown").any()
    assert not (plain == "?").any(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line.rsplit(",", 1)[0], "line 3: not 15 fields"),
        (lambda line: line + ", more", "line 3: not 15 fields"),
        (lambda line: line.replace("50K", "60K"), "line 3: .* that end in <=50K or >50K"),
        (lambda line: "old" + line, "line 3: age is 'old19', no whole number"),
        (lambda line: str(2**70) + line[2:], "line 3: age is '1180591620717411303424', no whole"),
        (lambda line: line.replace("ale", "ALE"), "line 3: sex is '.*ALE', none of Male, Female"),
        (lambda line: line.replace("White", "white"), "line 3: race is 'white', none of White"),
        (lambda line: "é" + line, "cannot be read"),
    ],
)
def test_a_malformed_adult_file_is_refused_with_its_line(tmp_path, change, message):
    lines = adult_lines()
    lines[2] = change(lines[2])
    write_adult(tmp_path, lines)
    with pytest.raises(DataError, match=message):
        adult.read(tmp_path)


def test_adult_refuses_other_categories_and_impossible_rows(tmp_path):
    lines = adult_lines()
    write_adult(tmp_path, lines)
    few = "of the first 4 rows 1 have one of the two targets"
    for rows, said in ((99999, "asked for the first 99999 rows"), (4, few), (4.5, "4.5 rows")):
        with pytest.raises(DataError, match=said):
            adult.read(tmp_path, rows=rows)
    write_adult(tmp_path, [lines[0].replace("e00", "e99"), *lines[1:]])
    with pytest.raises(DataError, match="94 inputs instead of 93"):
        adult.read(tmp_path)


@pytest.mark.slow
def test_the_real_adult():
    if not ready("adult"):
        pytest.skip("Adult is not here; `python -m lgfed_core data adult` gets it (28 MB)")
    folder = data.get("adult")
    assert {name: md5(folder / name) for name in ADULT_MD5} == ADULT_MD5
    assert len(adult.read_table(folder / "adult.data")) == 32561
    assert len(adult.read_table(folder / "adult.test")) == 16281
    got = data.load("adult")
    assert got.train.x.shape == got.test.x.shape == (15470, 93)
    assert got.train.y.sum() == got.test.y.sum() == 3752
    groups = torch.cat([got.train.groups, got.test.groups])
    assert groups.sum(0).tolist() == [27816, 20743]  # White, male; 3,124 Black, 10,197 female
    assert got.train.x.mean(0).abs().max() < 1e-5
    deviation = got.train.x.std(0, correction=0)
    assert ((deviation - 1).abs() < 1e-4).sum() == 91  # two countries have no training row
    shorter = data.load("adult", rows=30_000)
    assert (len(shorter.train), len(shorter.test)) == (15000, 15000)


# USPS


def usps_text(rows: np.ndarray) -> bytes:
    """LIBSVM's form of int rows [n, 257]: label 1 to 10, then index:value where it is not 0."""
    lines = []
    for label, *pixels in rows.tolist():
        values = (f"{i}:{p / 1000:g}" for i, p in enumerate(pixels, 1) if p)
        lines.append(" ".join([str(label + 1), *values]))
    return "\n".join(lines).encode()


def test_usps_is_rebuilt_and_read(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(10), rng.integers(-1000, 1001, (10, 256))])
    rows[:, 7] = 0
    content = usps.rebuild([usps_text(rows)], {})
    assert np.array_equal(np.frombuffer(content, "<i2").reshape(10, 257), rows)
    for name in ("train", "test"):
        (tmp_path / f"usps-{name}.bin").write_bytes(content)
    read = usps.read(tmp_path)
    assert read.train.x.shape == (10, 1, 28, 28)
    assert read.train.y.tolist() == list(range(10))
    small = torch.from_numpy(rows[:, 1:].reshape(10, 1, 16, 16) / 1000).float()
    large = torch.nn.functional.interpolate(small, size=(28, 28), mode="bilinear")
    assert torch.allclose(read.test.x, large)
    for odd in (content[:-1], content + b"\0", b""):
        (tmp_path / "usps-test.bin").write_bytes(odd)
        with pytest.raises(DataError, match="514 B"):
            usps.read(tmp_path)
    with pytest.raises(ValueError, match="not the digits"):
        usps.rebuild([b"11 1:0.5"], {})


def test_usps_turns_training_pictures_once_and_about_their_middle(tmp_path):
    rows = np.full((4, 257), -1000)
    rows[:, 0] = 1
    rows[:, 1:].reshape(4, 16, 16)[:, 2:14, 7:9] = 1000  # an upright bar
    for name in ("train", "test"):
        (tmp_path / f"usps-{name}.bin").write_bytes(rows.astype("<i2").tobytes())
    once, again = (usps.read(tmp_path, turned=10.0) for _ in range(2))
    assert torch.equal(once.train.x, again.train.x)
    assert torch.equal(once.test.x, usps.read(tmp_path).test.x)
    assert not torch.equal(once.train.x[0], once.train.x[1])  # an angle for each row
    quarter = usps.rotated(once.test.x[:1], torch.tensor([90.0]))
    assert torch.allclose(quarter[0, 0].T, once.test.x[0, 0], atol=1e-4)
    assert torch.allclose(usps.rotated(once.test.x, torch.zeros(4)), once.test.x, atol=1e-5)


def test_a_single_compressed_file_is_a_mirror_of_its_content(tmp_path):
    path = tmp_path / "usps.t.bz2"
    path.write_bytes(bz2.compress(b"content"))
    for name in ("usps.t", None):
        with mirrors.member(path, name) as stream:
            assert stream.read() == b"content"


def test_a_set_of_your_own_is_an_entry_and_a_module_as_the_readme_has_them(tmp_path, monkeypatch):
    text = (paths.ROOT / "data/README.md").read_text(encoding="utf-8")
    entry, code = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)[1]
                   for kind in ("toml", "python"))  # fmt: skip
    own = tmp_path / "mirror" / "walks" / "walks.npz"
    own.parent.mkdir(parents=True)
    np.savez(own, x=np.random.default_rng(0).random((20, 4)), y=np.arange(20) % 3)
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    entry = re.sub(r"size = \d+", f"size = {own.stat().st_size}", entry)
    entry = re.sub(r'sha256 = ".*"', f'sha256 = "{digest}"', entry)
    monkeypatch.setattr(paths, "SOURCES", tmp_path / "sources.toml")
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    paths.SOURCES.write_text(entry)
    module = ModuleType("lgfed_core.data.walks")
    module.__package__ = data.__name__
    exec(code, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(data, "_MODULES", data._MODULES | {"walks"})
    with pytest.raises(NotAvailable) as missing:
        data.load("walks")
    assert "LGFED_MIRROR" in str(missing.value) and "online" not in str(missing.value)
    monkeypatch.setenv("LGFED_MIRROR", str(tmp_path / "mirror"))
    got = data.load("walks")
    assert (got.name, len(got.train), len(got.test), got.classes) == ("walks", 16, 4, 3)
    assert data.walks is module


def test_a_set_that_is_not_known_or_that_nothing_reads_is_refused():
    for call in (data.load, data.get):
        with pytest.raises(DataError, match="'emnist'; known are: mnist, cifar10, adult"):
            call("emnist")
    with pytest.raises(DataError, match=r"yamnet: lgfed_core/data/yamnet.py has no read\(folder\)"):
        data.load("yamnet")


def test_an_option_of_another_set_is_named_before_anything_is_fetched(monkeypatch):
    monkeypatch.setattr(data, "get", None)
    for name, said in (("mnist", "it takes none"), ("usps", "it has turned")):
        with pytest.raises(SettingsError, match=f"{name} has no option rows; {said}"):
            data.load(name, rows=3)
