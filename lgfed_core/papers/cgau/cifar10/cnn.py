"""CIFAR-10 as features of a network that was trained on CIFAR-10 itself, by ourselves.

The CGAU paper found its gain smaller with such features and names no network (Section 5); its
released code takes a DenseNet-169. Ours is LG-FedAvg's small CNN, trained on the training pictures
of all classes in one place; the 100 numbers before its last layer are the features. Training is
short, depends on nothing but the settings below, and its features are kept in the cache.

The rows that clients keep for validation are among those pictures: their loss is that of rows which
the features know with their labels, so that the round which it picks stands beside the last one.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm.auto import tqdm

from lgfed_core import models, paths
from lgfed_core.data import cifar10
from lgfed_core.data.features import cifar10 as cifar_features
from lgfed_core.data.features.stored import Features, features, load_arrays, save_arrays
from lgfed_core.errors import DataError

NAME, WIDTH = "cifar_cnn", 100
EPOCHS, BATCH, LR, MOMENTUM = 20, 50, 0.02, 0.9  # the rate falls linearly to zero


def load(per_class: int | None = None, epochs: int = EPOCHS) -> Features:
    """The features of the pictures that `features.cifar10.load` would give, in the same order.

    The network is trained on the training pictures among them. ``stand_in`` names it in any case:
    the paper's network was another one.
    """
    rows = cifar_features.pictures(per_class)
    path = paths.CACHE / "embeddings" / f"cifar10-{NAME}-{per_class or 5000}-{epochs}.npz"
    place = torch.from_numpy(rows.place[rows.kept])
    test = rows.test[rows.kept]
    if not path.is_file():
        images, labels = cifar_features.raw()  # [n, 3, 32, 32], [n]
        mean, std = (torch.tensor(v).view(3, 1, 1) for v in (cifar10.MEAN, cifar10.STD))
        images, labels = (images[place] / 255 - mean) / std, torch.from_numpy(labels)[place]
        net = trained(images[~test], labels[~test], epochs)
        save_arrays(path, x=embedded(net, images).numpy())
    (x,) = load_arrays(path, "x")
    if x.shape != (len(place), WIDTH) or not np.isfinite(x).all():
        raise DataError(f"{path} holds other rows; delete it to compute it again")
    label = rows.label[rows.kept]
    part = "" if per_class is None else f", first {per_class} of each class"
    return features(
        f"cifar10-{NAME}",
        x,
        label,
        label,
        test=test,
        stand_in=f"features of our small CNN, {epochs} epochs{part}",
    )


def trained(x: Tensor, y: Tensor, epochs: int = EPOCHS, seed: int = 0) -> models.CifarCNN:
    """A `CifarCNN` after ``epochs`` passes over x [n, 3, 32, 32], y [n], each picture mirrored by
    chance, and no other change to it."""
    net = models.make(models.cnn_cifar, seed).to(memory_format=torch.channels_last)
    steps = epochs * -(-len(y) // BATCH)
    sgd = torch.optim.SGD(net.parameters(), LR, MOMENTUM, nesterov=True)
    falls = torch.optim.lr_scheduler.LambdaLR(sgd, lambda step: 1 - step / steps)
    rng = torch.Generator().manual_seed(seed)
    with torch.enable_grad(), tqdm(total=epochs, desc=NAME, unit="epoch", leave=False) as bar:
        for _ in range(epochs):
            for rows in torch.randperm(len(y), generator=rng).split(BATCH):
                flip = torch.rand(len(rows), 1, 1, 1, generator=rng) < 0.5
                pictures = torch.where(flip, x[rows].flip(3), x[rows])
                sgd.zero_grad()
                F.cross_entropy(net(pictures), y[rows]).backward()
                sgd.step()
                falls.step()
            bar.update()
    return net.eval()


@torch.inference_mode()
def embedded(net: models.CifarCNN, x: Tensor) -> Tensor:
    """What goes into the last layer of ``net``: x [n, 3, 32, 32] -> [n, 100]."""
    body = copy.deepcopy(net)
    body.fc3 = nn.Identity()
    return torch.cat([body(part) for part in x.split(1_000)])
