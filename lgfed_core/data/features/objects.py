"""Pictures of objects as stored features: what a network trained on ImageNet says about each.

============  =======  ==============================================================  =========
backbone      numbers  weights                                                         MB
============  =======  ==============================================================  =========
resnet50      2,048    torchvision's file, from its address or from the file that      98
..                     the environment variable ``LGFED_RESNET50`` names; the paper's
inception_v3  2,048    `data.features.inception`; stands in                            87
mobilenet_v2  1,280    torchvision's file, from a registry; stands in                  14
``_maps``     7,840    the same, what its last four blocks are given
============  =======  ==============================================================  =========

The middle 224 of 256 pixels are shown, once: no crops at random. A domain is computed in blocks of
128 pictures, each a file of its own in the cache.

    python -m lgfed_core features office31 mobilenet_v2
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from lgfed_core import paths, require
from lgfed_core.errors import DataError, NotAvailable

from .. import objects, sources
from ..cifar10 import MEAN, STD
from . import inception
from .stored import Features, block, features

CROP, BLOCK, AT_ONCE = 224, 128, 16
SPLIT = 15  # of MobileNetV2's 19 blocks: those from here on can learn,
MAPS = (160, 7, 7)  # and this is the shape of what they are given
RESNET = "resnet50-0676ba61.pth"  # "IMAGENET1K_V1"; the digits begin its sha256
STAND_IN = {  # what the column of that name says
    "resnet50": "",
    "inception_v3": "Inception v3 features",
    "mobilenet_v2": "MobileNetV2 features",
    "mobilenet_v2_maps": "MobileNetV2 whose upper blocks learn",
}


@dataclass(frozen=True)
class Backbone:
    """A frozen network: its width, where its weights are, and ``make(weights, precision)``, which
    returns a function from pictures [n, 3, h, w], 0 to 255, to float32 [n, width]."""

    width: int
    weights: Callable[[], Path]
    make: Callable[[Path, str], Callable[[Tensor], Tensor]]
    precisions: tuple[str, ...] = ("float32",)


def load(name: str, domain: str, backbone: str = "mobilenet_v2") -> Features:
    """Features of all pictures of one ``domain``; what is missing is computed, with a bar.

    Raises NotAvailable where pictures or weights cannot be had here; DataError for what is damaged,
    and for stored features of other pictures or another backbone.
    """
    require.one_of("backbone", backbone, BACKBONES)
    pictures = objects.read(name, domain)
    x = np.concatenate(list(_blocks(name, domain, backbone, pictures)))
    return features(f"{name}-{domain}", x, pictures.y, pictures.y, stand_in=STAND_IN[backbone])


def stored(name: str, backbone: str) -> bool:
    """Whether the features of all domains of a set are in the cache; nothing is fetched for it."""
    require.one_of("backbone", backbone, BACKBONES)
    try:
        kind = objects.KINDS[name]
        return all(
            path.is_file()
            for domain in kind.domains
            for path in _files(name, domain, backbone, len(objects.read(name, domain)))
        )
    except NotAvailable:
        return False


def _blocks(name: str, domain: str, backbone: str, pictures: objects.Pictures) -> Iterator[NDArray]:
    """The features of each block, [up to 128, width]."""
    net = BACKBONES[backbone]
    weights, function = net.weights(), cache(net.make)
    checksum = hashlib.sha256(weights.read_bytes()).digest()
    files = _files(name, domain, backbone, len(pictures))
    missing = sum(not path.is_file() for path in files)
    contents, label = enumerate(pictures.contents()), f"{backbone}: {domain}"
    with tqdm(total=missing * BLOCK, desc=label, unit="picture", disable=not missing) as bar:
        for path in files:
            some = list(islice(contents, BLOCK))  # place and file of each
            ground = hashlib.sha256(checksum + b"".join(c for _, c in some)).hexdigest()
            parts = (some[at : at + AT_ONCE] for at in range(0, len(some), AT_ONCE))
            images = (torch.stack([pictures.decoded(c, i) for i, c in part]) for part in parts)
            made = (function(weights, net.precisions[0])(middle(shown)) for shown in images)
            yield block(path, ground, (len(some), net.width), made, bar)


def _files(name: str, domain: str, backbone: str, pictures: int) -> list[Path]:
    """Where the blocks of a domain are, or will be."""
    folder = paths.CACHE / "embeddings" / f"{name}-{backbone}"
    return [folder / f"{domain}-{i:03d}.npz" for i in range(-(-pictures // BLOCK))]


def middle(images: Tensor) -> Tensor:
    """The middle of pictures [n, 3, 256, 256] -> [n, 3, 224, 224]."""
    edge = (objects.SIDE - CROP) // 2
    return images[..., edge : edge + CROP, edge : edge + CROP]


def normalised(x: Tensor) -> Tensor:
    """Pictures [n, 3, h, w] with values from 0 to 1, as networks trained on ImageNet like them."""
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    return ((x - mean) / std).contiguous(memory_format=torch.channels_last)


def through(body: torch.nn.Module, maps: bool = False) -> Callable[[Tensor], Tensor]:
    """The last maps of ``body`` on pictures [n, 3, h, w], averaged -> [n, width]; or ``maps``
    themselves, flat."""

    @torch.inference_mode()
    def seen(images: Tensor) -> Tensor:
        found = body(normalised(images.float() / 255))
        return found.flatten(1).contiguous() if maps else found.mean((2, 3))

    return seen


def upper_blocks() -> tuple[torch.nn.Module, tuple[int, int, int]]:
    """MobileNetV2's blocks from `SPLIT` on, and the shape of the maps that they are given."""
    weights = BACKBONES["mobilenet_v2_maps"].weights()
    return _some(slice(SPLIT, None), weights), MAPS


def _some(which: slice, weights: Path) -> torch.nn.Module:
    """Some of MobileNetV2's blocks."""
    return torch.nn.Sequential(*list(body_of("mobilenet_v2", weights).children())[which])


def body_of(kind: str, weights: Path) -> torch.nn.Module:
    """torchvision's network ``kind`` up to its last maps, frozen."""
    from .._torchvision import torchvision

    net = getattr(torchvision.models, kind)()
    try:
        net.load_state_dict(torch.load(weights, weights_only=True))
    except (RuntimeError, OSError, ValueError, EOFError) as error:
        raise DataError(f"{weights} holds no weights of {kind}: {error}") from error
    body = torch.nn.Sequential(*list(net.children())[:-2]) if kind == "resnet50" else net.features
    body.eval().requires_grad_(False)
    return body.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _mobilenet() -> Path:
    return sources.fetch("mobilenet_v2") / "mobilenet_v2-b0353104.pth"


def _resnet() -> Path:
    """The file of ResNet-50's weights; fetched from torchvision's address when it is not here."""
    named = os.environ.get("LGFED_RESNET50")
    path = Path(named).expanduser() if named else paths.CACHE / "resnet50" / RESNET
    if not path.is_file() and not named:
        path.parent.mkdir(parents=True, exist_ok=True)
        address = f"https://download.pytorch.org/models/{RESNET}"
        try:
            torch.hub.download_url_to_file(address, str(path), RESNET.split("-")[1][:8])
        except (OSError, RuntimeError) as error:
            raise NotAvailable(
                f"ResNet-50's weights cannot be had here ({error}); put torchvision's {RESNET} at "
                f"{path}, or name a file in LGFED_RESNET50"
            ) from error
    if not path.is_file():
        raise DataError(f"LGFED_RESNET50 names {path}, which is no file")
    return path


BACKBONES = {
    "resnet50": Backbone(2048, _resnet, lambda file, _: through(body_of("resnet50", file))),
    "inception_v3": Backbone(
        inception.WIDTH,
        lambda: sources.fetch("inception_v3") / inception.WEIGHTS,
        lambda file, precision: inception.Inception(file, precision).features,
        ("bfloat16", "float32"),
    ),
    "mobilenet_v2": Backbone(
        1280, _mobilenet, lambda file, _: through(body_of("mobilenet_v2", file))
    ),
    "mobilenet_v2_maps": Backbone(
        math.prod(MAPS), _mobilenet, lambda file, _: through(_some(slice(SPLIT), file), maps=True)
    ),
}
