"""Claims C3, C4, C6, C7 and C9 of the CGAU paper as tests over repetitions on CIFAR-10."""

import pandas as pd

from lgfed_core import models
from lgfed_core.evidence import stand_ins
from lgfed_core.evidence.verdict import Evidence, equivalent, every, greater, judge, rising
from lgfed_core.models.cgau import Baseline, GatedMLP

from .. import federated
from ..audio.run import distances_fall
from ..gains import gains
from . import run as cifar10, time as cgau_time

METRIC = "test_acc"
SAME = 1.0  # points of accuracy that count as no difference, as for printed accuracies
TIME, TIME_MARGIN = 1.85, 0.25  # seconds of the CGAU over the baseline's, as printed; our margin


def verdicts(
    found: pd.DataFrame,
    itself: pd.DataFrame | None = None,
    times: pd.DataFrame | None = None,
    protocol: str = "as_described",
    method: str = "cgau_kept",
) -> pd.DataFrame:
    """Verdicts by claim, for as many claims as ``found`` has rows for; empty where nothing was run.

    found: rows of `cgau_cifar10.stored`; itself: those with features of a network that was trained
    on CIFAR-10 itself, for C7; times: rows of `cgau_time.stored`, for C9. Where data or features
    stand in for the paper's, verdicts say so.
    """
    mine = found[found["protocol"] == protocol]
    tests, other = {}, ""
    if {method, "baseline"} <= set(mine["method"]):
        tests |= gains_claims(mine, method)
        if itself is not None:
            own = itself[itself["protocol"] == protocol]
            if {method, "baseline"} <= set(own["method"]):
                tests["C7"] = smaller_gain(mine, own, method)
                other = stand_ins.names(own)
    if times is not None and method in set(times["method"]):
        tests["C9"] = time_and_size(times, method)
    if (mine["metric"] == federated.GAMMA).any():
        tests |= distances_fall(mine)
    if not tests:
        return pd.DataFrame(columns=["estimate", "low", "high", "p", "p_against", "verdict"])
    judged = judge(dict(sorted(tests.items())))
    here = stand_ins.names(mine)
    for claim in judged.index:
        names = [here, other if claim == "C7" else ""]
        said = stand_ins.said(judged.loc[claim, "verdict"], ", ".join(filter(None, names)))
        judged.loc[claim, "verdict"] = said
    return judged


def gains_claims(found: pd.DataFrame, method: str = "cgau_kept") -> dict[str, Evidence]:
    """C3, C4 and C6; found: tidy rows of one protocol, scale and kind of features.

    C3: at every proportion there is a gain. C4: the gain falls with the proportion, and is there
    without shuffling. C6: the baseline's accuracy changes by less than `SAME` from proportion 0 to
    1, by the slope of a line, and the CGAU's falls.
    """
    gain = gain_table(found, method)
    p = gain.columns.to_numpy(float)
    tests = {"C3": every([greater(gain[at]) for at in gain])}
    if len(p) > 1:
        tests["C4"] = every([greater(gain[p[0]]), rising(-p, gain.to_numpy())])
        level, tilted = slopes(found, method)
        tests["C6"] = every([level, tilted])
    return tests


def slopes(found: pd.DataFrame, method: str = "cgau_kept") -> tuple[Evidence, Evidence]:
    """C6's two statements: the baseline's slope over the proportion is within `SAME` of zero; minus
    the CGAU's slope is above zero. Points of accuracy from proportion 0 to 1."""
    out = []
    for name in ("baseline", method):
        accuracy = _accuracy(found, name)
        p = accuracy.columns.to_numpy(float)
        slope = accuracy.to_numpy() @ (p - p.mean()) / ((p - p.mean()) @ (p - p.mean()))  # [n]
        out.append(equivalent(slope, 0.0, SAME) if name == "baseline" else greater(-slope))
    return out[0], out[1]


def smaller_gain(found: pd.DataFrame, itself: pd.DataFrame, method: str = "cgau_kept") -> Evidence:
    """C7: the gain, averaged over proportions, is greater in ``found`` than in ``itself``."""
    both = [gain_table(rows, method).mean(axis=1) for rows in (found, itself)]
    a, b = both[0].align(both[1], join="inner")
    return greater(a, b)


def time_and_size(times: pd.DataFrame, method: str = "cgau_kept") -> Evidence:
    """C9: twice the parameters (to 5 %), and `TIME` times the seconds (to `TIME_MARGIN`), where one
    client trains after the other. times: rows of `cgau_time`, of one protocol and scale."""
    ratio = cgau_time.ratios(times[times["way"] == "looped"])
    ratio = ratio[ratio["method"] == method]["ratio"]
    size = size_ratio()
    right = abs(size - 2) < 0.1
    counted = Evidence(size, size, size, float(not right), float(right))
    return every([equivalent(ratio, TIME, TIME_MARGIN), counted])


def size_ratio() -> float:
    """Parameters of the CGAU with ten clients over the baseline's, CIFAR-10's dimensions."""
    dims = 2048, 128, 10
    return models.count(GatedMLP(*dims, clients=10, released=False)) / models.count(Baseline(*dims))


def gain_table(found: pd.DataFrame, method: str = "cgau_kept") -> pd.DataFrame:
    """Gains in points of accuracy: a line per seed, a column per proportion."""
    gain = gains(found, METRIC)
    gain = gain[gain["method"] == method]
    return gain.pivot(index="seed", columns="shuffle_proportion", values="gain").dropna()


def by_number_of_clients(method: str = "cgau_kept", protocol: str = "as_described") -> pd.DataFrame:
    """Recorded gains of more than ten clients, and of ten on the same features: features, clients,
    shuffle_proportion, method, seed, gain."""
    columns = ["features", "clients", "shuffle_proportion", "method", "seed", "gain"]
    parts = []
    for features in cifar10.FEATURES:
        here = []
        for clients in (10, 50, 100):
            found = cifar10.stored(features, clients)
            found = found[found["protocol"] == protocol]
            if {method, "baseline"} <= set(found["method"]):
                gain = gains(found, METRIC)
                gain = gain[gain["method"] == method]
                here.append(gain.assign(clients=clients, features=features))
        if any((part["clients"] > 10).any() for part in here):
            parts += here
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def control(method: str = "cgau_kept", protocol: str = "as_described") -> pd.DataFrame:
    """Recorded gains without shuffling, of clients made class by class and of all classes together.

    A line per kind of features and of clients: baseline (accuracy, percent), gain (points), low and
    high (95 %), repetitions. Empty where the control has not been run.
    """
    lines = {}
    for features in cifar10.FEATURES:
        for within, name in ((True, "class by class"), (False, "all classes together")):
            found = cifar10.stored(features, within_classes=within)
            found = found[(found["protocol"] == protocol) & (found["shuffle_proportion"] == 0)]
            if {method, "baseline"} <= set(found["method"]):
                gain = gain_table(found, method)[0.0]
                level = _accuracy(found, "baseline")[0.0].reindex(gain.index).mean()
                said = greater(gain)
                lines[features, name] = [level, said.estimate, said.low, said.high, len(gain)]
    index = pd.MultiIndex.from_tuples(lines, names=["features", "clients made"]) if lines else None
    columns = ["baseline", "gain", "low", "high", "repetitions"]
    return pd.DataFrame(list(lines.values()), index, columns)


def _accuracy(found: pd.DataFrame, method: str) -> pd.DataFrame:
    mine = found[(found["metric"] == METRIC) & (found["selection"] == "best_val")]
    mine = mine[mine["method"] == method]
    return mine.pivot(index="seed", columns="shuffle_proportion", values="value").dropna()
