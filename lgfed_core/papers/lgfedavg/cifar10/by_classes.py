"""Figure 2c of LG-FedAvg (v2): accuracy on devices' own classes against how alike devices are.

`accuracies` and `advantage` compute from stored rows, `by_classes` draws what they return.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core.colours import INK, METHOD, PROTOCOL
from lgfed_core.evidence import verdict
from lgfed_core.evidence.printed import METHODS
from lgfed_core.plotting import WIDTH, caption, room

from ..comparisons import CLASSES, FULL, LOCAL, READINGS, SOUND, gaps, lg, printed
from ..stored import by_seed

TEST = "local_test_acc"
_AT = {classes: n for n, classes in enumerate(CLASSES)}  # place on the axis


def accuracies(
    stored: pd.DataFrame, budget: int = 1800, dataset: str = "cifar10", reading: str = SOUND
) -> pd.DataFrame:
    """Local test of FedAvg, local only and LG-FedAvg at each number of classes, in percent.

    stored: rows of `records.load`. One line per method and number of classes: mean, low, high
    (95 %), seeds (0: not run, mean NaN), and paper, the printed mean.
    """
    numbers, lines = by_seed(stored), []
    for who in (FULL[dataset], LOCAL, lg(budget)):
        for classes in CLASSES:
            key = dataset, classes, who, TEST, READINGS[reading]
            line = _line(numbers.get(key, pd.Series(dtype=float)))
            paper = printed(dataset, classes)[who, TEST]
            lines.append({"method": who[0], "classes": classes, "paper": paper, **line})
    return pd.DataFrame(lines)


def advantage(stored: pd.DataFrame, budget: int = 1800, dataset: str = "cifar10") -> pd.DataFrame:
    """Local test of LG-FedAvg minus FedAvg's, and minus local only's, in points.

    One line per rival, number of classes and reading of `READINGS`: mean, low, high (95 % over
    paired seeds), seeds (0: not run, mean NaN), and paper, the difference of the printed means.
    """
    lines, numbers = [], by_seed(stored)
    for rival, who in (("fedavg", FULL[dataset]), ("local_only", LOCAL)):
        for classes in CLASSES:
            means = printed(dataset, classes)
            paper = means[lg(budget), TEST] - means[who, TEST]
            for reading in READINGS:
                found = gaps(numbers, dataset, classes, TEST, lg(budget), who, reading)
                ids = {"rival": rival, "classes": classes, "reading": reading}
                lines.append({**ids, "paper": paper, **_line(found)})
    return pd.DataFrame(lines)


def by_classes(
    levels: pd.DataFrame, leads: pd.DataFrame, readings: Iterable[str] | None = None
) -> Figure:
    """Above: `accuracies`, the paper's hollow and ours filled. Below: `advantage`, both readings.

    Bars are 95 % intervals; a number in brackets is that of seeds.
    """
    places = [["levels"] * 2, ["fedavg", "local_only"]]
    figure, axes = plt.subplot_mosaic(places, figsize=(WIDTH, 5.6))
    for method, lines in levels.groupby("method", sort=False):
        colour, marker = METHOD[method]
        _paper(axes["levels"], lines, colour, marker, f"{METHODS[method]}, paper")
        _ours(axes["levels"], lines, METHODS[method], color=colour, marker=marker)
    axes["levels"].set(ylabel="local test, %", xlabel="classes per device")
    axes["levels"].set_title("Own classes: our runs as described, chosen on validation rows")
    room(axes["levels"], below=0.4)
    axes["levels"].legend(ncols=2, loc="lower left")
    words = {"fedavg": "over FedAvg", "local_only": "over local only"}
    for rival, said in words.items():
        ax, block = axes[rival], leads[leads["rival"] == rival]
        _paper(ax, block.drop_duplicates("classes"), INK, "o", "paper, Table 8")
        for n, reading in enumerate(readings or (SOUND, "as released, best on test")):
            lines = block[block["reading"] == reading]
            look = {"color": INK} | PROTOCOL[READINGS[reading][0]]
            _ours(ax, lines, reading, 0.12 * (n - 0.5), **look)
        ax.axhline(0, color=INK, linewidth=0.8)
        ax.set(title=f"LG-FedAvg {said}", xlabel="classes per device")
        room(ax, above=0.35)
        ax.legend(fontsize=6.5, loc="upper left")
    axes["fedavg"].set_ylabel("local test, points")
    for ax in axes.values():
        ax.set_xticks(list(_AT.values()), [*map(str, CLASSES[:-1]), "10, i.i.d."])
        ax.set_xlim(-0.4, len(CLASSES) - 0.6)
    below = (
        "Local test by how many classes a device has (above), and what LG-FedAvg is "
        "ahead of its rivals (below); the paper hollow, ours filled with 95 % "
        "intervals over seeds, stored at paper scale."
    )
    return caption(figure, below)


def _line(values: pd.Series) -> dict:
    found = verdict.greater(values.to_numpy())
    return {"mean": found.estimate, "low": found.low, "high": found.high, "seeds": len(values)}


def _paper(ax: Axes, lines: pd.DataFrame, colour: str, marker: str, label: str) -> None:
    look = dict(marker=marker, color=colour, markerfacecolor="white", label=label)
    ax.plot(lines["classes"].map(_AT), lines["paper"], ":", **look)


def _ours(ax: Axes, lines: pd.DataFrame, label: str, shift: float = 0.0, **mark) -> None:
    """Points of ours with their intervals; the label says how many seeds, or that none has run."""
    lines = lines[lines["seeds"] > 0]
    bars = np.nan_to_num(lines[["low", "high"]].sub(lines["mean"], axis=0).abs().T)
    seeds = "-".join(str(n) for n in sorted({lines["seeds"].min(), lines["seeds"].max()}))
    ran = f"seeds: {seeds}" if len(lines) else verdict.NOT_RUN
    look = mark | {"linestyle": "", "elinewidth": 1.1, "label": f"{label} ({ran})"}
    ax.errorbar(lines["classes"].map(_AT) + shift, lines["mean"], bars, **look)
