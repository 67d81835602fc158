"""Pictures of objects from folders and archives, and their features, on tiny trees."""

import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from lgfed_core import paths
from lgfed_core.data import objects
from lgfed_core.data.features import digit_domains, objects as stored
from lgfed_core.errors import DataError, NotAvailable, SettingsError
from toy import picture


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    monkeypatch.delenv("LGFED_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def home(cache) -> Path:
    """Office-Home in its official folders, two pictures of every class in each domain."""
    kind = objects.KINDS["officehome"]
    for sub in kind.domains.values():
        for i, label in enumerate(kind.classes):
            folder = cache / "officehome" / sub / label
            folder.mkdir(parents=True)
            for j in (2, 1):
                (folder / f"{j:05d}.png").write_bytes(picture(3 * i + j))
            (folder / "notes.txt").write_text("no picture")
    return cache / "officehome"


def test_the_sets_have_their_classes():
    sizes = {name: len(kind.classes) for name, kind in objects.KINDS.items()}
    assert sizes == {"office31": 31, "caltech10": 10, "officehome": 65, "visda": 12}
    for kind in objects.KINDS.values():
        assert len(set(kind.classes)) == len(kind.classes)
    assert set(objects.SHARED10.values()) <= set(objects.KINDS["office31"].classes)


def test_an_official_folder_is_read_in_the_order_of_classes_and_names(home):
    found = objects.read("officehome", "real_world")
    assert len(found) == 130 and found.y.tolist() == np.repeat(np.arange(65), 2).tolist()
    assert found.names[:2] == tuple(f"Real World/Alarm_Clock/0000{i}.png" for i in (1, 2))
    image = found.decoded(next(iter(found.contents())), 0)
    assert image.shape == (3, 256, 256) and image.dtype == torch.uint8
    assert image[:, 0, 0].tolist() == [1, 0, 254]


def test_visda_and_an_archive_are_read_alike(cache):
    kind = objects.KINDS["visda"]
    for label in kind.classes:
        folder = cache / "visda" / "train" / label
        folder.mkdir(parents=True)
        (folder / "a.JPG").write_bytes(picture(9))
    with pytest.raises(NotAvailable, match="VisDA-C is not here: unpack"):
        objects.read("visda", "train")  # the other domain's folder is missing
    (cache / "visda" / "validation").mkdir()
    assert len(objects.read("visda", "train")) == 12
    with zipfile.ZipFile(cache / "box.zip", "w") as box:
        for label in kind.classes:
            box.writestr(f"train/{label}/a.png", picture(9))
    found = objects.listed(kind, "train", cache / "box.zip")
    assert len(found) == 12 and next(iter(found.contents())) == picture(9)


def test_what_is_wrong_with_a_folder_is_named_before_anything_is_computed(home):
    (home / "Art" / "Zebra").mkdir()
    (home / "Art" / "Zebra" / "1.jpg").write_bytes(b"")
    with pytest.raises(DataError, match="art has a folder 'Zebra', which is no class of Office-H"):
        objects.read("officehome", "art")
    for path in (home / "Clipart" / "Mug").glob("*.png"):
        path.unlink()
    with pytest.raises(DataError, match="clipart has no picture of 'Mug'; fetch"):
        objects.read("officehome", "clipart")
    with pytest.raises(SettingsError, match="domain 'photo' is none of art, clipart"):
        objects.read("officehome", "photo")


def test_a_damaged_archive_is_named_with_the_picture_in_it(tmp_path):
    place = tmp_path / "all.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as box:
        box.writestr("art/Mug/1.jpg", bytes(range(256)) * 9)
    whole = bytearray(place.read_bytes())
    whole[60:90] = bytes(30)  # of the packed bytes
    place.write_bytes(whole)
    pictures = objects.Pictures("all", ("Mug",), place, ("art/Mug/1.jpg",), np.zeros(1))
    with pytest.raises(DataError, match="1.jpg cannot be read"):
        next(pictures.contents())
    place.write_bytes(b"no archive")
    with pytest.raises(DataError, match="all.zip cannot be read"):
        next(pictures.contents())


class Colours(torch.nn.Module):
    """Stands for a backbone: the pictures themselves are its maps."""

    def forward(self, x):
        self.seen = getattr(self, "seen", 0) + len(x)
        return x


@pytest.fixture
def backbone(cache, monkeypatch):
    weights, body = cache / "weights", Colours()
    weights.write_bytes(b"one")
    made = stored.Backbone(3, lambda: weights, lambda *_: stored.through(body))
    monkeypatch.setitem(stored.BACKBONES, "mobilenet_v2", made)
    return weights, body


def test_features_are_computed_once_in_blocks_and_refused_from_another_backbone(home, backbone):
    weights, body = backbone
    load = partial(stored.load, "officehome", "art", "mobilenet_v2")
    found = load()
    assert found.x.shape == (130, 3) and body.seen == 130 and found.stand_in
    red = (found.x[:, 0] * stored.STD[0] + stored.MEAN[0]) * 255
    assert red[:4].round().tolist() == [1, 2, 4, 5]
    assert torch.equal(load().x, found.x) and body.seen == 130
    blocks = sorted((paths.CACHE / "embeddings" / "officehome-mobilenet_v2").glob("art-*"))
    assert len(blocks) == 2
    blocks[1].unlink()  # as after a kill
    assert torch.equal(load().x, found.x) and body.seen == 132
    weights.write_bytes(b"another")
    with pytest.raises(DataError, match="made from other pictures or by other weights"):
        load()


def test_a_damaged_picture_is_named_with_its_path(home, backbone):
    path = home / "Art" / "Bed" / "00001.png"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=r"officehome/Art/Bed/00001\.png is no readable picture"):
        stored.load("officehome", "art", "mobilenet_v2")


def test_weights_of_another_network_are_refused(tmp_path):
    torch.save({"a": torch.zeros(2)}, tmp_path / "other.pth")
    with pytest.raises(DataError, match="holds no weights of mobilenet_v2"):
        stored.BACKBONES["mobilenet_v2"].make(tmp_path / "other.pth", "float32")


def test_a_named_file_that_is_not_there_is_said(monkeypatch, cache):
    monkeypatch.setenv("LGFED_RESNET50", str(cache / "none.pth"))
    with pytest.raises(DataError, match="LGFED_RESNET50 names .*none.pth, which is no file"):
        stored.BACKBONES["resnet50"].weights()


def test_gradients_do_not_see_the_sign_of_an_edge():
    images = torch.zeros(1, 3, 28, 28, dtype=torch.uint8)
    images[..., 14:] = 200
    x = digit_domains.gradients(images)
    assert x.shape == (1, 392) and x.norm().item() == pytest.approx(7)
    torch.testing.assert_close(digit_domains.gradients(200 - images), x)
    turned = digit_domains.gradients(images.swapaxes(2, 3))
    assert (x * turned).sum() < 0.3 * 49
