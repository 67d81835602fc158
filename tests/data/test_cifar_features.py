"""CIFAR-10 as stored features: blocks, the cache, our Inception beside the file's own."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lgfed_core import paths
from lgfed_core.data import catalogue
from lgfed_core.data.features import cifar10 as cifar_features, inception
from lgfed_core.errors import DataError, SettingsError
from lgfed_core.papers.cgau.cifar10 import cnn

LABELS = np.concatenate([np.arange(50_000) % 10, np.arange(10_000) % 10])


class Fake:
    """Three numbers a picture; counts the pictures; stops in the middle of the second block."""

    seen, stop_at = 0, 900

    @classmethod
    def make(cls, weights, precision):
        assert weights.name == "fake.pt" and precision == "float32"
        return cls.features

    @classmethod
    def features(cls, images):
        cls.seen += len(images)
        if cls.seen > cls.stop_at:
            raise KeyboardInterrupt
        return images[:, :, 0, 0].float()


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """CIFAR-10 of one pixel, which tells a picture's place, and a network that reads it."""
    place = torch.arange(60_000)
    pixel = torch.stack([place // 250, place % 250, torch.from_numpy(LABELS)], 1)
    images = pixel.to(torch.uint8)[:, :, None, None]
    monkeypatch.setattr(cifar_features, "raw", lambda: (images, LABELS))
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    net = cifar_features.Backbone(3, lambda: tmp_path / "fake.pt", Fake.make)
    monkeypatch.setitem(cifar_features.NETS, "fake", net)
    (tmp_path / "fake.pt").write_bytes(b"weights")
    Fake.seen, Fake.stop_at = 0, 900
    return tmp_path


def test_blocks_are_balanced_and_begin_with_the_first_pictures(monkeypatch):
    monkeypatch.setattr(cifar_features, "raw", lambda: (None, LABELS))
    every, some = cifar_features.pictures(), cifar_features.pictures(70)
    assert sorted(every.place) == list(range(60_000)) and every.blocks == 100
    for block in range(100):
        mine = slice(600 * block, 600 * block + 600)
        assert (np.bincount(every.label[mine]) == 60).all() and every.test[mine].sum() == 100
    assert (every.place >= 50_000).tolist() == every.test.tolist()
    assert some.blocks == 2 and (some.place == every.place[:1200]).all()
    kept = some.place[some.kept]
    assert sorted(kept) == [*range(700), *range(50_000, 50_140)]


def test_what_was_computed_before_a_kill_is_not_computed_again(fake):
    with pytest.raises(KeyboardInterrupt):
        cifar_features.load("fake", per_class=100)
    Fake.seen, Fake.stop_at = 0, 10_000
    found = cifar_features.load("fake", per_class=100)
    assert Fake.seen == 600
    assert not list((fake / "embeddings").rglob(".*")), "no unfinished file is left"
    place = 250 * found.x[:, 0] + found.x[:, 1]
    assert sorted(place.int().tolist()) == [*range(1_000), *range(50_000, 50_200)]
    assert (found.x[:, 2] == found.y).all()
    assert (found.test_rows(0) == (place.numpy() >= 50_000)).all()
    assert found.stand_in == "first 100 of each class"
    smaller = cifar_features.load("fake", per_class=50)
    assert Fake.seen == 600 and (smaller.x == found.x[:600]).all()


def test_damage_and_other_weights_are_told(fake):
    Fake.stop_at = 10_000
    cifar_features.load("fake", per_class=1)
    (path,) = (fake / "embeddings").rglob("*.npz")
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for bad in (b"no", good[:-200], bytes(flipped)):
        path.write_bytes(bad)
        with pytest.raises(DataError, match="damaged"):
            cifar_features.load("fake", per_class=1)
    path.write_bytes(good)
    (fake / "fake.pt").write_bytes(b"other weights")
    with pytest.raises(DataError, match="by other weights"):
        cifar_features.load("fake", per_class=1)
    with pytest.raises(SettingsError, match="none of inception_v3, mobilenet_v2"):
        cifar_features.load("resnet")
    with pytest.raises(SettingsError, match="bfloat16, float32"):
        cifar_features.load("inception_v3", "float16")
    with pytest.raises(DataError, match="5,000"):
        cifar_features.load("fake", per_class=5_001)


def test_a_network_trained_on_cifar10_itself(fake, monkeypatch):
    rng = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (60_000, 3, 1, 1), generator=rng, dtype=torch.uint8)
    images = images.expand(-1, -1, 32, 32)  # its classes cannot be told: this is about the form
    monkeypatch.setattr(cifar_features, "raw", lambda: (images, LABELS))
    first = cnn.load(5, epochs=1)
    assert first.x.shape == (60, 100) and (first.x >= 0).all()
    assert first.stand_in == "features of our small CNN, 1 epochs, first 5 of each class"
    monkeypatch.setattr(cnn, "trained", None)
    assert torch.equal(cnn.load(5, epochs=1).x, first.x), "it is read, not trained again"
    (path,) = (fake / "embeddings").glob("cifar10-cifar_cnn*")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match="damaged"):
        cnn.load(5, epochs=1)


def test_its_features_are_what_goes_into_the_last_layer():
    x, y = torch.randn(40, 3, 32, 32), torch.arange(40) % 10
    net = cnn.trained(x, y, epochs=2)
    again = cnn.trained(x, y, epochs=2)
    with torch.no_grad():
        assert torch.allclose(net.fc3(cnn.embedded(net, x)), net(x), atol=1e-6)
        assert torch.equal(net(x), again(x))


def test_our_inception_is_the_one_in_the_file():
    source = catalogue.source("inception_v3")
    if source.faulty():
        pytest.skip("the weights of inception_v3 are not in the cache")
    path = source.folder / inception.WEIGHTS
    images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    ours, short = (inception.Inception(path, p).features(images) for p in inception.PRECISIONS)
    x = F.interpolate(images.float(), (299, 299), mode="bilinear", align_corners=False)
    with torch.no_grad():
        theirs = inception.script(path)(x / 127.5 - 1)
    assert ours.shape == theirs.shape == (2, 2048) and ours.dtype == torch.float32
    assert torch.allclose(ours, theirs, atol=1e-4)
    off = (short - ours).norm() / ours.norm()
    assert 1e-4 < off < 0.1, "bfloat16 is another, coarser computation"
    with pytest.raises(SettingsError, match="bfloat16"):
        inception.Inception(path, "int8")


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.pt"
    path.write_bytes(b"no")
    with pytest.raises(DataError, match="no TorchScript file"):
        inception.Inception(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))
    with pytest.raises(DataError, match="another network"):
        inception.Inception(path)
