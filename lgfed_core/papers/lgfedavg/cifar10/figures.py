"""Two pictures for the CIFAR-10 page: what augmentation does, and what MTL's regularisers do."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lgfed_core.colours import CASE, FAINT, INK, REFERENCE
from lgfed_core.data.augment import CropFlip
from lgfed_core.data.cifar10 import MEAN, STD
from lgfed_core.methods import MTL, ReleasedMTL
from lgfed_core.plotting import WIDTH, caption


def crops(x: Tensor, augment: CropFlip, draws: int = 7, seed: int = 0) -> Figure:
    """Pictures x [n, 3, H, W] (normalised), a row each: as they are, then ``draws`` variants."""
    rng = np.random.default_rng(seed)
    drawn = torch.from_numpy(augment.draw(rng, draws, len(x)))  # [draws, n, 3]
    rows = torch.stack([x, *(augment.apply(x, d) for d in drawn)])  # [1 + draws, n, 3, H, W]
    mean, std = (torch.tensor(v)[:, None, None] for v in (MEAN, STD))
    pixels = torch.nn.functional.pad(rows * std + mean, (2, 2, 2, 2), value=1.0)  # white frames
    sheet = pixels.clamp(0, 1).permute(1, 3, 0, 4, 2).flatten(0, 1).flatten(1, 2)  # [., ., 3]
    figure, ax = plt.subplots(figsize=(WIDTH, WIDTH * len(x) / (1 + draws) + 0.3))
    ax.imshow(sheet.numpy())
    wide = pixels.shape[-1]
    ax.text(wide / 2, -2, "as it is", ha="center", va="bottom")
    ax.text(wide * (1 + draws / 2), -2, "as the device meets it", ha="center", va="bottom")
    ax.axis("off")
    below = (
        "Training pictures as they are (left) and cropped and flipped at random, as a "
        "device meets them."
    )
    return caption(figure, below)


def regularisers(devices: int = 10, steps: int = 40, rate: float = 0.02, seed: int = 0) -> Figure:
    """Ten models with two parameters each under MTL's pull alone, without data: text and released.

    Plain gradient descent on `pull`, all devices at once; each path ends in a dot.
    """
    rng = torch.Generator().manual_seed(seed)
    start = torch.randn(devices, 2, generator=rng) * 0.5 + torch.tensor([1.0, 0.6])  # [M, 2]
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.0), sharex=True, sharey=True)
    kinds = ((MTL(), "the text's Ω"), (ReleasedMTL(), "the released Ω"))
    for ax, (method, title) in zip(axes, kinds, strict=True):
        paths = [start]
        for _ in range(steps):
            w = paths[-1].clone().requires_grad_()
            others = (w.detach().sum(0) - w.detach()) / (devices - 1)  # [M, 2]
            pull = sum(method.pull(w[k], others[k], devices) for k in range(devices))
            paths.append(w.detach() - rate * torch.autograd.grad(pull, w)[0])
        track = torch.stack(paths)  # [steps + 1, M, 2]
        ax.plot(track[..., 0], track[..., 1], color=REFERENCE, linewidth=0.9)
        ax.plot(*track[0].T, "o", color="white", markeredgecolor=INK, label="before")
        ax.plot(*track[-1].T, "o", color=CASE[0], label="after")
        for at, face, label in ((0, "white", "mean before"), (-1, CASE[3], "mean after")):
            look = dict(color=CASE[3], markerfacecolor=face, markersize=8, label=label)
            ax.plot(*track[at].mean(0), "P", **look)
        ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
        ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        ax.set(title=title, xlabel="first parameter", aspect="equal")
    axes[0].set_ylabel("second parameter")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    below = (
        "Ten models of two parameters under the pull of MTL alone, without data: as "
        "the text writes it, and as released."
    )
    return caption(figure, below)
