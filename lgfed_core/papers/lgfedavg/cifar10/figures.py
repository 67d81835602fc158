"""A picture for the CIFAR-10 page: what MTL's regularisers do."""

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure

from lgfed_core.colours import CASE, FAINT, INK, REFERENCE
from lgfed_core.methods import MTL, ReleasedMTL
from lgfed_core.plotting import WIDTH, caption


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
