"""CIFAR-10 as stored features: what a network trained on ImageNet says about each picture.

=============  ==============================  =======  ==========================================
features       pictures                        numbers  weights
=============  ==============================  =======  ==========================================
inception_v3   enlarged to 299 x 299           2,048    `inception`; the paper's experiment
mobilenet_v2   enlarged to 128 x 128           1,280    torchvision's file; small enough to look at
=============  ==============================  =======  ==========================================

A picture is computed once. Rows come in blocks of 600, 50 training and 10 test pictures of each
class, each a file of its own in the cache: any number of whole blocks is a balanced subset.

    python -m lgfed_core features cifar10 inception_v3     # all 60,000 pictures
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from lgfed_core import data, paths, require
from lgfed_core.errors import DataError

from .. import cifar10
from .objects import BACKBONES, Backbone
from .stored import Features, block, features

BLOCK_TRAIN, BLOCK_TEST = 50, 10  # pictures of each class in a block
BLOCKS = 100
AT_ONCE = 20  # pictures that go through a network together
MOBILENET_SIDE = 128


NETS = {name: BACKBONES[name] for name in ("inception_v3", "mobilenet_v2")}


def shown(name: str, images: Tensor) -> Tensor:
    """Pictures [n, 3, 32, 32] as the network ``name`` takes them; Inception enlarges its own."""
    if name != "mobilenet_v2":
        return images
    size = (MOBILENET_SIDE, MOBILENET_SIDE)
    return F.interpolate(images.float(), size, mode="bilinear", align_corners=False)


def load(network: str, precision: str = "", per_class: int | None = None) -> Features:
    """CIFAR-10's features by ``network``; what is missing is computed, with a bar.

    precision: in which convolutions are computed; by default the first of `NETS`.
    per_class: only so many training pictures of each class, the first ones, and a fifth as many
        test pictures. Then ``stand_in`` says so: a part of CIFAR-10 is not CIFAR-10.

    Rows lie block by block, so that a larger part begins with a smaller one. Raises SettingsError
    for an unknown network or precision, DataError for weights that cannot be had, and damaged files
    of the cache.
    """
    require.one_of("network", network, NETS)
    net = NETS[network]
    precision = precision or net.precisions[0]
    require.one_of("precision", precision, net.precisions)
    rows = pictures(per_class)
    x = np.concatenate(list(_blocks(network, net, precision, rows.blocks)))[rows.kept]
    label = rows.label[rows.kept]
    stand_in = "" if per_class is None else f"first {per_class} of each class"
    return features(
        f"cifar10-{network}", x, label, label, test=rows.test[rows.kept], stand_in=stand_in
    )


@dataclass(frozen=True, eq=False)
class Pictures:
    """Rows in the order of the blocks: place in CIFAR-10's own order (test pictures follow the
    50,000 of training), label, whether for testing; [n] each. ``kept``: which of them are asked
    for; ``blocks``: how many blocks hold these."""

    place: NDArray
    label: NDArray
    test: NDArray
    kept: NDArray
    blocks: int


def pictures(per_class: int | None = None) -> Pictures:
    """The rows of the first blocks, enough for ``per_class`` training pictures of each class."""
    wanted = 5_000 if per_class is None else per_class
    if not 1 <= wanted <= 5_000:
        raise DataError(f"{per_class} pictures of each class; CIFAR-10 has 5,000 to train with")
    y = raw()[1]  # [60000]
    test = np.arange(len(y)) >= 50_000
    rank = np.zeros(len(y), int)  # among the pictures of its class and part
    for part in (test, ~test):
        for label in range(10):
            mine = np.flatnonzero(part & (y == label))
            rank[mine] = np.arange(len(mine))
    block = rank // np.where(test, BLOCK_TEST, BLOCK_TRAIN)
    order = np.lexsort((y, rank, test, block))
    blocks = -(-wanted // BLOCK_TRAIN)
    order = order[block[order] < blocks]
    kept = rank[order] < np.where(test[order], -(-wanted // 5), wanted)
    return Pictures(order, y[order], test[order], kept, blocks)


def _blocks(name: str, net: Backbone, precision: str, blocks: int) -> Iterator[NDArray]:
    """The features of the first ``blocks`` blocks, [600, width] each."""
    weights = net.weights()
    checksum = hashlib.sha256(weights.read_bytes()).hexdigest()
    place = torch.from_numpy(pictures().place.reshape(BLOCKS, -1))
    folder = paths.CACHE / "embeddings" / f"cifar10-{name}-{precision}"
    files = [folder / f"{i:03d}.npz" for i in range(blocks)]
    missing = sum(not path.is_file() for path in files)
    images, function = raw()[0] if missing else torch.empty(0), cache(net.make)
    label = f"{name} on CIFAR-10, {precision}"
    with tqdm(total=600 * missing, desc=label, unit="picture", disable=not missing) as bar:
        for i, path in enumerate(files):
            made = (
                function(weights, precision)(shown(name, images[at]))
                for at in place[i].split(AT_ONCE)
            )
            yield block(path, f"{checksum} {precision} {i}", (600, net.width), made, bar)


def raw() -> tuple[Tensor, NDArray]:
    """All pictures uint8 [60000, 3, 32, 32] and labels int64 [60000]: training, then test."""
    folder = data.get("cifar10")
    read = [cifar10.read_batch(folder / n) for n in (*cifar10.TRAIN, *cifar10.TEST)]
    return torch.cat([x for x, _ in read]), torch.cat([y for _, y in read]).long().numpy()
