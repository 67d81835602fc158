"""How much of a device's rows leaks through its uploads: numbers, words and pictures.

What an attack of `gradient_inversion` brings back is set beside the true row, with and without the
noise of `Privacy` on the upload.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats
from torch import Tensor

from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg
from lgfed_core.methods.privacy import Privacy
from lgfed_core.metrics import inversion
from lgfed_core.plotting import WIDTH, caption

from .gradient_inversion import (
    BLACK,
    FIRST,
    SHARED_FIRST,
    WHITE,
    Scene,
    below,
    labels_read,
    lg,
    overhear,
    read_rows,
)


def table(found: dict[str, tuple[Tensor, Tensor]]) -> pd.DataFrame:
    """Correlation and PSNR (dB) with the true row: mean over devices and its 95 % t interval."""
    lines = {}
    for name, (said, true) in found.items():
        alike = inversion.correlation(said, true)
        sharp = inversion.psnr(said.clamp(BLACK, WHITE), true, WHITE - BLACK)
        lines[name] = {"correlation": interval(alike), "PSNR": interval(sharp)}
    return pd.DataFrame(lines).T


def interval(values: Tensor) -> tuple[float, float, float]:
    """Mean, low and high of its 95 % interval, by Student's t over values [K]."""
    v = values.double().numpy()
    half = stats.t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / len(v) ** 0.5
    return float(v.mean()), float(v.mean() - half), float(v.mean() + half)


def said(numbers: pd.DataFrame) -> pd.DataFrame:
    """`table` in words: mean [low, high]."""
    formats = {"correlation": "{:.2f} [{:.2f}, {:.2f}]", "PSNR": "{:.1f} [{:.1f}, {:.1f}] dB"}
    return pd.DataFrame({c: [f.format(*v) for v in numbers[c]] for c, f in formats.items()},
                        index=numbers.index)  # fmt: skip


def pictures(found: dict[str, tuple[Tensor, Tensor]], devices: int = 6) -> Figure:
    """A line of pictures per attack, a column per device; the first line is the truth."""
    true = next(iter(found.values()))[1]
    lines = {"the row itself": true} | {name: said for name, (said, _) in found.items()}
    size = (WIDTH, 0.72 * len(lines))
    figure, axes = plt.subplots(len(lines), devices, figsize=size, squeeze=False)
    for line, (name, shown) in zip(axes, lines.items(), strict=True):
        for ax, picture in zip(line, shown, strict=False):
            ax.imshow(
                picture.clamp(BLACK, WHITE).view(28, 28).numpy(),
                cmap="gray",
                vmin=BLACK,
                vmax=WHITE,
            )
            ax.set_xticks([]), ax.set_yticks([])
            ax.grid(False)
            ax.spines[:].set_visible(False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    words = (
        "What an eavesdropper makes of a device's update, a line per attack, a column "
        "per device, below the row itself; live run."
    )
    return caption(figure, words)


def noised(scene: Scene, noises: Sequence[float], clip: float, steps: int) -> pd.DataFrame:
    """One row by FedAvg and by LG-FedAvg just now, clipped at ``clip`` and blurred.

    Correlation (mean, low, high) for each noise, the share of labels read, and the epsilon of one
    upload at delta = 1e-5 from the accountant of Opacus (NaN where that is not installed).
    """
    public, lines = scene.public().x, {}
    for noise in noises:
        privacy = Privacy(clip, noise)
        fed, local = FedAvg(upload=[privacy]), lg(scene.net, [privacy])
        plain = read_rows(overhear(scene, fed), FIRST)
        h = read_rows(overhear(scene, local), SHARED_FIRST).clamp(min=0)
        behind = inversion.behind(below(scene.net), h, public, BLACK, WHITE, steps=steps)
        lines[noise] = {
            "FedAvg": interval(inversion.correlation(plain, scene.rows())),
            "LG-FedAvg, just now": interval(inversion.correlation(behind, scene.rows())),
            "labels, FedAvg": labels_read(scene, fed),
            "labels, LG-FedAvg": labels_read(scene, local),
            "epsilon": _epsilon(privacy),
        }
    return pd.DataFrame(lines).T.rename_axis("noise")


def _epsilon(privacy: Privacy) -> float:
    try:
        return privacy.epsilon(1, 1e-5)
    except SettingsError:  # no accountant here
        return float("nan")


def said_of_noise(numbers: pd.DataFrame) -> pd.DataFrame:
    """`noised` in words."""
    lines = pd.DataFrame(index=numbers.index.map("{:g}".format))
    for name in ("FedAvg", "LG-FedAvg, just now"):
        lines[name] = ["{:.2f} [{:.2f}, {:.2f}]".format(*v) for v in numbers[name]]
    for name in ("labels, FedAvg", "labels, LG-FedAvg"):
        lines[name] = [f"{v:.0%}" for v in numbers[name]]
    lines["ε"] = ["not computed" if np.isnan(v) else f"{v:,.3g}" for v in numbers["epsilon"]]
    return lines
