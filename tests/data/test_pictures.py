"""A picture that unpacks to more than can be meant is refused by name, wherever one is opened."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from lgfed_core.data import cifar10, dataset, objects
from lgfed_core.errors import DataError
from toy import picture


def claims(width: int, height: int) -> bytes:
    """The head of a PNG of so many pixels, which holds none."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (head, b"IDAT")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in parts
    )


def test_no_picture_is_unpacked_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    here = objects.Pictures("some", ("a",), Path("folder"), ("a.png",), np.zeros(1))
    for opened in (lambda p: dataset.shrunk(p, 2, "a.png"), lambda p: here.decoded(p, 0)):
        assert opened(picture(4, size=(4, 4))).shape[0] == 3
        with pytest.raises(DataError, match=r"a\.png is no readable picture .*decompression bomb"):
            opened(picture(0, size=(20, 20)))
    with pytest.raises(ValueError, match="does not open .*decompression bomb"):
        cifar10.rebuild([picture(0, size=(20, 20)), b"[]"], {"first": 0})


def test_a_picture_of_cifar10_is_measured_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(ImageFile.ImageFile, "load", None)  # whoever unpacks it fails
    for width, height in ((1023, 4), (1024, cifar10.MOST_ROWS + 1)):
        with pytest.raises(ValueError, match=f"it has {width} x {height} pixels"):
            cifar10.rebuild([claims(width, height), b"[]"], {"first": 0})
