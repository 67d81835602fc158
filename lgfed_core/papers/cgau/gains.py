"""What knowing the client is worth: gains of CGAUs over the baseline, paired by repetition; and, an
observation of ours, what the client says about the class."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lgfed_core.errors import PartitionError
from lgfed_core.evidence.claims import Comparison, paired, tested
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import Evidence, greater
from lgfed_core.partition.feature_clusters import TEST, Clients

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


def distances_fall(found: pd.DataFrame) -> list[Comparison]:
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


def at_each(gain: pd.DataFrame, **how) -> list[Comparison]:
    """At each proportion that is there, whether there is a gain; how: as of `greater`."""
    return [tested(_at(p), gain[p], greater, **how) for p in gain]


def at(
    p: float, name: str, gain: pd.DataFrame, test: Callable[..., Evidence], *how, **more
) -> list[Comparison]:
    """The comparison ``name``, made at proportion p; none where that is not there."""
    return [tested(name, gain[p], test, *how, **more)] if p in gain else []


def whole(gain: pd.DataFrame) -> bool:
    """Whether all of the paper's proportions are there: of what holds on some of them alone it is
    not known whether it holds."""
    return set(PROPORTIONS) <= set(gain)


def _at(p: float) -> str:
    return f"{100 * p:g} % shuffled"


def leaked(who: Clients, y: NDArray) -> dict[str, float]:
    """What a simulated client's number says about the class of its rows: percent of test rows right
    by two principal components alone, and by these and the client.

    `feature_clusters.simulate` sends a row to the client of the nearest centroid *of its class*.
    So the client's number, which a CGAU is given and a baseline is not, speaks of the label of
    training and of test rows, and shuffling silences it.

    Each class counts alike, however many rows it has (balanced accuracy). Both ways take the class
    of the nearest centroid of ``who``, among all of them or among those of the row's client. y [n]
    are the labels; ``who`` may be shuffled. NaN where test rows are of a class that was dealt at
    random, as it has no centroids. Raises PartitionError for clients that were not made class by
    class.
    """
    if not (who.within_classes and who.own_class):
        raise PartitionError(
            "these clients were not made class by class, or rows went to the nearest centroid of "
            "any: no label sent a row to a client, and nothing can leak"
        )
    test = who.part == TEST
    y, labels = np.asarray(y), np.unique(y)
    if np.isin(who.random, y[test]).any():
        return dict.fromkeys(("plane", "plane and client"), float("nan"))
    y, at, client = y[test], who.plane[test], who.client[test]
    far = ((who.means[:, :, None] - at) ** 2).sum(-1)  # [C, K, n]
    far = np.where(np.isnan(far), np.inf, far)  # a class without centroids
    own = np.take_along_axis(far, client[None, None], 1)[:, 0]  # [C, n]
    said = {"plane": far.min(1).argmin(0), "plane and client": own.argmin(0)}
    right = {name: labels[c] == y for name, c in said.items()}
    return {
        name: 100 * float(np.mean([hit[y == label].mean() for label in np.unique(y)]))
        for name, hit in right.items()
    }
