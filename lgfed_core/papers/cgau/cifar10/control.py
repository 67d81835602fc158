"""The control on CIFAR-10: what CGAU gains on clients whose number adds nothing to what the
features say of the class. By itself the number says something of it: it is a region of the plane.
"""

import pandas as pd

from lgfed_core.evidence import claims
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import equivalent, greater
from lgfed_core.papers.in_words import kind

from ..federated import GAMMA
from ..gains import have
from . import run as cifar10
from .claims import NO_GAIN, accuracy, gain_table

TOLD, BLIND, ANY = (  # how clients are made; in the last two no label sends a row to a client
    "class by class",
    "all classes together",
    "nearest centroid of any class",
)
MADE = {TOLD: {}, BLIND: dict(within_classes=False), ANY: dict(own_class=False)}


def table(method: str = "cgau_kept", protocol: str = "as_described") -> pd.DataFrame:
    """Recorded gains without shuffling, of clients made in the ways of `MADE`.

    A line per kind of features and of clients: distance (Frechet's, of a client to all others
    together, on average), baseline (accuracy, percent), gain (points), low and high (95 %), p that
    there is none (one-sided), p_same that it is `NO_GAIN` or more either way (two one-sided tests),
    repetitions.
    Empty where the control has not been run.
    """
    lines = {}
    for features in cifar10.FEATURES:
        for name, made in MADE.items():
            found = cifar10.stored(features, **made)
            found = select(found, protocol=protocol, shuffle_proportion=0)
            if have(found, method):
                gain = gain_table(found, method)[0.0]
                level = accuracy(found, "baseline")[0.0].reindex(gain.index).mean()
                apart = select(found, metric=GAMMA)["value"].mean()
                more = greater(gain)
                ends = [apart, level, more.estimate, more.low, more.high]
                same = equivalent(gain, 0.0, NO_GAIN)
                lines[features, name] = [*ends, more.p, same.p, len(gain)]
    index = pd.MultiIndex.from_tuples(lines, names=["features", "clients made"]) if lines else None
    columns = ["distance", "baseline", "gain", "low", "high", "p", "p_same", "repetitions"]
    return pd.DataFrame(list(lines.values()), index, columns)


def how_much_is_the_label(found: pd.DataFrame) -> str:
    """What is left of the gain where the client's number adds nothing to what the features say of
    the class, from a `table`, as a sentence in Markdown."""
    said, gone = [], True
    for features, mine in found.groupby(level="features", sort=False) if len(found) else ():
        lines = mine.droplevel("features").rename(columns={"gain": "estimate"})
        others = [name for name in (BLIND, ANY) if name in lines.index]
        if TOLD in lines.index and others:
            each = {name: _with_interval(lines.loc[name]) for name in (TOLD, *others)}
            against = " and ".join(f"{each[name]} ({name})" for name in others)
            said.append(f"{features}, {each[TOLD]} against {against}")
            most = max(lines.loc[others, "high"].max(), 0)
            gone &= bool(lines.loc[TOLD, "low"] > most)
    # False if the gain were as large where the number adds nothing.
    head = (
        "**How much of the gain is the label**: CGAU's gain in points on clients made class by "
        "class, against clients whose number adds nothing to what the features say of the class"
    )
    # False for the same reason: then nothing is gone that could be either.
    more = "; what is gone is the label, or a shift of the label given the inputs" if gone else ""
    return f"{head}: {'; '.join(said)}{more}." if said else f"{head}: not yet run."


def _with_interval(line: pd.Series) -> str:
    word = kind(line, ("a gain", "a loss", "no gain shown"))
    return f"{word} {claims.said(line, int(line['repetitions']))}"


def what_it_says(found: pd.DataFrame) -> str:
    """A Markdown line per kind of features and of clients of `table` whose number adds nothing."""
    said = []
    blind = found.drop(TOLD, level="clients made", errors="ignore") if len(found) else found
    for (features, name), line in blind.iterrows():
        # False if more repetitions moved the interval to the other side of zero or of `NO_GAIN`.
        way = kind(line, ("a gain", "a loss", ""))
        words = way or f"neither a gain nor one below {NO_GAIN:g} points is shown"
        if line["p_same"] < 0.05:
            words = (
                f"{way or 'any gain'}{', and it' * bool(way)} is smaller than {NO_GAIN:g} points"
            )
        said.append(
            f"- **{features}**, {name}: {claims.said(line.rename({'gain': 'estimate'}))} points "
            f"({line['repetitions']:.0f} repetitions): {words}."
        )
    there = {*found.index} if len(found) else set()
    paper = cifar10.FEATURES[0]
    missing = [name for name in (BLIND, ANY) if (paper, name) not in there]
    said += [f"- **{paper}**, the paper's features, {name}: not yet run." for name in missing]
    return "\n".join(said)
