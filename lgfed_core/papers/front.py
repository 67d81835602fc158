"""The first page: three figures, and the questions that a reader asks first with their answers."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgfed_core import papers, plotting
from lgfed_core.colours import INK, LOSS, METHOD
from lgfed_core.errors import ResultsError
from lgfed_core.evidence.answers import FAILS, Told
from lgfed_core.evidence.claims import Claim
from lgfed_core.evidence.printed import METHODS
from lgfed_core.paths import ROOT

from . import board, questions
from .fade.digits import claims as digits
from .guards import gap
from .lgfedavg.comparisons import accuracies
from .lgfedavg.records import at_hand
from .questions import answered

PAGES = (ROOT / "README.md", ROOT / "book" / "intro.md")
IMAGES = ROOT / "book" / "images"
ASKED = {  # paper -> the claims whose questions a reader asks first, in this order
    "**LG-FedAvg** keeps some layers on each device": ("L1", "L2", "L7", "L4", "L5", "L12", "L14"),
    "**CGAU** gives each client vectors of its own": ("C3",),
    "**FADE** trains against an adversary that guesses the group": ("F1", "F2", "F11", "F8"),
}
NAMED = {  # claims of these pages -> what does not hold of them
    "F4": "FADE's Theorem 4.1, which has a wrong sign",
    "L11": "LG-FedAvg's best weight of a mixture",
}
NAMES = METHODS | {"local_only": "training alone"}  # as the text above the figure has them
_SIZE = (3.1, 2.7)  # inches: three of them side by side, or one on a phone


def renew() -> list[Path]:
    """Renew figures and answers of the first pages, and the answers of each notebook; which files
    that wrote.

    Raises ResultsError where there are no pages, as in an installed package.
    """
    for path in PAGES:
        if not path.exists():
            raise ResultsError(f"{path} is missing; the first pages are those of a checkout")
    found = board.told()
    changed = [path for path in PAGES if questions.renew_page(path, table(found))]
    figures = draw(found)
    found |= own_told()
    for page in dict.fromkeys(one.claim.page for one in found.values()):
        mine = [one for one in found.values() if one.claim.page == page]
        path = ROOT / "book" / f"{page}.ipynb"
        changed += [path] * questions.renew(path, mine)
    return changed + figures


def own_told() -> dict[str, Told]:
    """The claims of `own_pages` by id. Raises ResultsError for an id that another page has."""
    found = {claim.id: claim.page for claim in board.CLAIMS}
    out: dict[str, Told] = {}
    for id, one in (pair for page in own_pages() for pair in page.told().items()):
        if id in found:
            raise ResultsError(
                f"{found[id]} and {one.claim.page} both have a claim {id}; rename one"
            )
        found[id], out[id] = one.claim.page, one
    return out


def own_pages() -> list[ModuleType]:
    """The modules of pages that are no paper's and have claims, in ``claims.py`` or ``run.py``."""
    places = [Path(place) for place in papers.__path__]
    files = [(place, path) for place in places for path in sorted(place.glob("*/*/*.py"))]
    names = [
        ".".join([papers.__name__, *path.relative_to(place).with_suffix("").parts])
        for place, path in files
        if path.stem in ("claims", "run") and "\nCLAIMS" in path.read_text(encoding="utf-8")
    ]
    found = map(import_module, dict.fromkeys(names))
    return [page for page in found if page not in board.STORED]


def table(told: Mapping[str, Told]) -> str:
    """Questions and answers as a Markdown table, each with its page; told: of `board.told`."""
    lines = ["| question | answer |", "|---|---|"]
    for method, ids in ASKED.items():
        lines.append(f"| {method} | |")
        for one in (told[id] for id in ids if id in told):
            lines.append(
                f"| {one.claim.question} | {answered(one, short=True)} {_link(one.claim)} |"
            )
    fails = [told[id].claim for id in NAMED if id in told and told[id].verdict == FAILS]
    links = [f"{NAMED[claim.id]} ({_link(claim)})" for claim in fails]
    wrong = f"Errors in proofs: {', and '.join(links)}. " if links else ""
    every, limited = (
        len({one.claim.id for one in some})
        for some in (told.values(), [one for one in told.values() if one.tags])
    )
    lines += [
        "",
        f"{wrong}Of all {every} questions, {limited} are answered on stand-in data or by shortened "
        "runs alone.",
    ]
    return "\n".join(lines)


def _link(claim: Claim) -> str:
    """To a claim's page: "[cifar10](lgfedavg/cifar10.ipynb)"."""
    return f"[{claim.page.rpartition('/')[2]}]({claim.page}.ipynb)"


def draw(told: Mapping[str, Told], folder: Path = IMAGES) -> list[Path]:
    """The three figures of the first page -> ``folder``, as front-*.png."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    with plotting.style():
        for name, figure in (
            ("lgfedavg", by_classes()),
            ("cgau", by_shuffling(told["C3"])),
            ("fade", by_probability(told["F2"])),
        ):
            out.append(folder / f"front-{name}.png")
            figure.savefig(out[-1], metadata={"Software": None})
            plt.close(figure)
    return out


def by_classes() -> Figure:
    """CIFAR-10: accuracy on own classes by classes per device, the paper's hollow."""
    figure, ax = plt.subplots(figsize=_SIZE)
    for method, lines in accuracies(at_hand()).groupby("method", sort=False):
        colour, marker = METHOD[method]
        places = np.arange(len(lines))
        look = dict(marker=marker, markerfacecolor="white", linestyle=":", linewidth=0.9)
        ax.plot(places, lines["paper"], color=colour, markersize=4, **look)
        reach = np.nan_to_num(lines[["low", "high"]].sub(lines["mean"], axis=0).abs().T)
        ax.errorbar(places, lines["mean"], reach, marker=marker, color=colour, markersize=4)
        ax.plot([], [], color=colour, marker=marker, label=NAMES[method])
    ax.set_xticks(range(len(lines)), [*map(str, lines["classes"][:-1]), "all 10"])
    ax.set(xlabel="classes per device", ylabel="own classes, accuracy in %")
    ax.plot([], [], ":", color=INK, marker="o", markerfacecolor="white", label="the paper")
    _finish(figure, ax, "CIFAR-10: LG-FedAvg is far ahead\nwhere devices hold few classes")
    return figure


def by_shuffling(gain: Told) -> Figure:
    """CGAU's gain over the baseline by the share of rows that are shuffled; gain: C3."""
    lines = gain.lines[gain.lines["runs"] > 0]
    figure, ax = plt.subplots(figsize=_SIZE)
    _gains(ax, lines["name"].str.replace(" % shuffled", ""), lines, METHOD["cgau_kept"])
    ax.set(xlabel="rows shuffled among clients, %", ylabel="points ahead of one shared model")
    _finish(figure, ax, "CIFAR-10: CGAU gains 0.9 points,\nand none once clients are alike")
    return figure


def by_probability(gain: Told) -> Figure:
    """FADE, by direction: what the squared loss gains on the vanilla one, in pairs of seeds, by how
    often the target takes part; gain: F2, which is about both ends."""
    wide = digits.wide(digits.longest(digits.stored()), "target_acc")
    figure, ax = plt.subplots(figsize=_SIZE)
    kinds = (("--", "v"), ("-", "D"))
    for (direction, words), (line, mark) in zip(digits.DIRECTION.items(), kinds, strict=True):
        ends = gain.lines[gain.lines["name"].str.startswith(words)]
        if ends.empty:
            continue
        middle = gap(wide.loc[direction]["squared"][0.5], wide.loc[direction]["vanilla"][0.5])
        lines = pd.concat([ends.iloc[:1], pd.DataFrame([vars(middle)]), ends.iloc[1:]])
        look = dict(label=words, linestyle=line)
        colour = LOSS["squared"][0]
        _gains(ax, ["5", "50", "95"], lines, (colour, mark), 0.08 * (line == "--"), **look)
    ax.set(xlabel="rounds with the target, %", ylabel="points ahead of the vanilla loss")
    _finish(figure, ax, "Digits: FADE's squared loss gains\nwhere the target is frequent")
    return figure


def _gains(
    ax: Axes, names: Sequence[str], lines: pd.DataFrame, look: tuple[str, str], aside=0.0, **more
) -> None:
    """Estimates with their intervals, side by side, and the line of no gain. aside: how far to the
    right, so that two of them do not hide each other; more: of `Axes.errorbar`."""
    reach = lines[["low", "high"]].sub(lines["estimate"], axis=0).abs().T
    colour, marker = look
    places = np.arange(len(lines)) + aside
    ax.errorbar(places, lines["estimate"], reach, marker=marker, color=colour, **more)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_xticks(range(len(lines)), names)
    ax.set_xlim(-0.5, len(lines) - 0.5)


def _finish(figure: Figure, ax: Axes, title: str) -> None:
    ax.set_title(title)
    if ax.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, fontsize=7.5, handlelength=3)
