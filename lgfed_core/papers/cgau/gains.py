"""What knowing the client is worth: gains of CGAUs over the baseline, paired by repetition."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lgfed_core import plotting
from lgfed_core.evidence.claims import Part, paired, tested
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import NO_EVIDENCE, Evidence, greater

from . import federated

PROPORTIONS = federated.Settings.shuffles  # the paper's: claims are about all of them


def gains(found: pd.DataFrame, metric: str = "test_auc", selection: str = "best_val"):
    """What each CGAU gains over the baseline: shuffle_proportion, method, seed, gain.

    found: tidy rows of one protocol and scale, paired by seed and proportion. Empty where the
    baseline has not run.
    """
    wide = select(found, metric=metric, selection=selection)
    wide = wide.pivot_table("value", ["shuffle_proportion", "seed"], "method")
    if "baseline" not in wide:
        return pd.DataFrame(columns=["shuffle_proportion", "seed", "method", "gain"])
    others = [m for m in federated.METHODS if m in wide and m != "baseline"]
    gain = wide[others].sub(wide["baseline"], axis=0)
    gain.columns.name = "method"
    return gain.stack().rename("gain").reset_index()


def by_seed(
    found: pd.DataFrame, method: str, metric: str = "test_auc", selection: str = "best_val"
) -> pd.DataFrame:
    """`gains` of one CGAU: a line per seed, a column per proportion; empty where it or the baseline
    has not run."""
    gain = select(gains(found, metric, selection), method=method)
    return gain.pivot(index="seed", columns="shuffle_proportion", values="gain").dropna()


def drawn(rows: pd.DataFrame, y: str, ax: Axes, shared: float = 0.0, most: float = np.inf) -> Axes:
    """Column ``y`` of ``rows`` over the share of shuffled rows, a line per method, in the order of
    `federated.METHODS`; shared, most: of `plotting.curves`."""
    place = {name: n for n, name in enumerate(federated.METHODS)}
    rows = rows.sort_values("method", key=lambda names: names.map(place), kind="stable")
    rows = rows.astype({"shuffle_proportion": float})
    ax = plotting.curves(rows, "shuffle_proportion", y, "method", ax, shared, most)
    ax.set(xlabel="share of rows whose clients are shuffled")
    return ax


def distances_fall(found: pd.DataFrame) -> list[Part]:
    """C5 for one data set: each step of the paper's shuffle proportions lowers Gamma."""
    gamma = found[found["metric"] == federated.GAMMA]
    gamma = gamma.pivot_table("value", "seed", "shuffle_proportion")
    if gamma.empty:
        return []
    none = pd.Series(dtype=float)  # of a proportion that has not run
    return [
        paired(f"{100 * a:g} to {_at(b)}", gamma.get(a, none), gamma.get(b, none), greater)
        for a, b in pairwise(PROPORTIONS)
    ]


def at_each(gain: pd.DataFrame, test: Callable[..., Evidence], **how) -> list[Part]:
    """A comparison for each of the paper's proportions; gain: a column per proportion, in which
    some may be missing."""
    ran = [tested(_at(p), gain[p], test, **how) for p in PROPORTIONS if p in gain]
    return [*ran, *missing(gain.columns)]


def at(
    p: float, name: str, gain: pd.DataFrame, test: Callable[..., Evidence], *how, **more
) -> list[Part]:
    """The comparison ``name``, made at proportion p; none where that is among the `missing`."""
    return [tested(name, gain[p], test, *how, **more)] if p in gain else []


def missing(proportions: Iterable[float]) -> list[Part]:
    """A comparison without runs for each of the paper's proportions that is not there: of what
    holds on some of them alone it is not known whether it holds."""
    some = set(proportions)
    return [Part(_at(p), 0, NO_EVIDENCE) for p in PROPORTIONS if p not in some]


def _at(p: float) -> str:
    return f"{100 * p:g} % shuffled"
