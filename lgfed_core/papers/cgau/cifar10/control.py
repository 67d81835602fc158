"""The control on CIFAR-10: what CGAU gains on clients whose number adds nothing to what the
features say of the class. By itself the number says something of it: it is a region of the plane.

A gain is read at two rounds, that of the least validation loss and the last, and what is said of it
without naming one holds at both. With features of our small CNN the first is picked by rows that
its network was trained on (`cnn`).
"""

import pandas as pd

from lgfed_core.evidence import claims
from lgfed_core.evidence.records import select
from lgfed_core.evidence.verdict import equivalent, greater
from lgfed_core.papers.in_words import kind

from ..federated import GAMMA
from ..gains import have
from . import cnn, run as cifar10
from .claims import BEST, LAST, NO_GAIN, accuracy, gain_table

TOLD, BLIND, ANY = (  # how clients are made; in the last two no label sends a row to a client
    "class by class",
    "all classes together",
    "nearest centroid of any class",
)
MADE = {TOLD: {}, BLIND: dict(within_classes=False), ANY: dict(own_class=False)}
LEAST, END = "least validation loss", "last round"
ROUNDS = {LEAST: BEST, END: LAST}
NAMES = ["features", "clients made", "at"]
WAYS = ("a gain", "a loss", "")


def table(method: str = "cgau_kept", protocol: str = "as_described") -> pd.DataFrame:
    """Recorded gains without shuffling, of clients made in the ways of `MADE`.

    A line per kind of features, of clients, and of `ROUNDS`: distance (Frechet's, of a client to
    all others together, on average), baseline (accuracy, percent), gain (points), low and high
    (95 %), p that there is none (one-sided), p_same that it is `NO_GAIN` or more either way (two
    one-sided tests), repetitions.
    Empty where the control has not been run.
    """
    lines = {}
    for features in cifar10.FEATURES:
        for name, made in MADE.items():
            found = cifar10.stored(features, **made)
            found = select(found, protocol=protocol, shuffle_proportion=0)
            for at, selection in ROUNDS.items():
                if have(found[found["selection"] == selection], method):
                    lines[features, name, at] = _line(found, method, selection)
    index = pd.MultiIndex.from_tuples(lines, names=NAMES) if lines else None
    columns = ["distance", "baseline", "gain", "low", "high", "p", "p_same", "repetitions"]
    return pd.DataFrame(list(lines.values()), index, columns)


def _line(found: pd.DataFrame, method: str, selection: str) -> list[float]:
    gain = gain_table(found, method, selection)[0.0]
    level = accuracy(found, "baseline", selection)[0.0].reindex(gain.index).mean()
    more, same = greater(gain), equivalent(gain, 0.0, NO_GAIN)
    numbers = [more.estimate, more.low, more.high, more.p, same.p]
    return [select(found, metric=GAMMA)["value"].mean(), level, *numbers, len(gain)]


def how_much_is_the_label(found: pd.DataFrame) -> list[str]:
    """What is left of the gain where the client's number adds nothing to what the features say of
    the class, from a `table`, in Markdown: with the paper's features, then with others."""
    paper, *others = cifar10.FEATURES
    said = [_with_the_papers(found, paper)] if _compared(found, paper) else []
    rest = [features for features in others if _compared(found, features)]
    if rest:
        # False if the gain of one of them were as large where the number adds nothing.
        each = [
            f"{features}, {'it shrinks' if _gone(found, features) else 'not shown to shrink'}: "
            f"{_told_and_not(found, features, brief=True)}"
            for features in rest
        ]
        said.append(f"**With other features**, in points: {'; '.join(each)}.")
    # False if the control had been run.
    return said or ["**How much of the gain is the label**: not yet run."]


def what_it_says(found: pd.DataFrame) -> str:
    """A Markdown line per kind of features and of clients of `table` whose number adds nothing."""
    blind = found.drop(TOLD, level="clients made", errors="ignore") if len(found) else found
    there = list(dict.fromkeys(blind.index.droplevel("at"))) if len(blind) else []
    # False if more repetitions moved an interval to the other side of zero or of `NO_GAIN`.
    said = [
        f"- **{features}**, {name}: {_both(lines)} points: {_word(lines)}."
        for features, name in there
        for lines in [_of(blind, features, name)]
    ]
    paper = cifar10.FEATURES[0]
    missing = [name for name in (BLIND, ANY) if (paper, name) not in there]
    said += [f"- **{paper}**, the paper's features, {name}: not yet run." for name in missing]
    if any(features == cnn.NAME for features, _ in there):
        # False if `cnn.load` kept the validation rows from its network.
        said.append(
            f"- **The network of {cnn.NAME} was trained on the validation rows**, too, with their "
            "labels: their loss picks a round by features that know them. The last round is "
            "picked by nothing."
        )
    return "\n".join(said)


def _with_the_papers(found: pd.DataFrame, features: str) -> str:
    gone = _gone(found, features)
    # False if the gain were as large where the number adds nothing, or not shown to be so small.
    fate = "is not shown to shrink"
    if gone:
        fate = f"shrinks to less than {NO_GAIN:g} points" if _small(found, features) else "shrinks"
    more = " What is gone is the label, or a shift of the label given the inputs."
    return (
        f"**CGAU's gain with the paper's features, {features}, {fate} where a client's number "
        "adds nothing to what the features say of the class**: "
        f"{_told_and_not(found, features)}, in points.{more * gone}"
    )


def _of(found: pd.DataFrame, features: str, name: str) -> pd.DataFrame:
    """Lines of a `table` by round, of one kind of features and of clients."""
    return found.xs(features, level="features").xs(name, level="clients made")


def _compared(found: pd.DataFrame, features: str) -> list[str]:
    """The ways of `MADE` that have run, if the first and another have."""
    there = {*found.index.droplevel("at")} if len(found) else set()
    ran = [name for name in MADE if (features, name) in there]
    return ran if TOLD in ran and len(ran) > 1 else []


def _others(found: pd.DataFrame, features: str) -> pd.DataFrame:
    """Lines of a `table` of the clients whose number adds nothing."""
    return found.xs(features, level="features").drop(TOLD, level="clients made")


def _gone(found: pd.DataFrame, features: str) -> bool:
    """Whether the gain of clients made class by class is above all others', at both rounds."""
    mine, most = _of(found, features, TOLD), _others(found, features)["high"].groupby("at").max()
    return bool((mine["low"] > most.clip(lower=0).reindex(mine.index)).all())


def _small(found: pd.DataFrame, features: str) -> bool:
    """Whether the gains of all other clients are shown to be below `NO_GAIN`, at both rounds."""
    return bool((_others(found, features)["p_same"] < 0.05).all())


def _told_and_not(found: pd.DataFrame, features: str, brief: bool = False) -> str:
    each = [
        f"{_both(_of(found, features, name), brief)} ({name})"
        for name in _compared(found, features)
    ]
    return f"{each[0]} against {' and '.join(each[1:])}"


def _both(lines: pd.DataFrame, brief: bool = False) -> str:
    """The gain at both rounds, as far as they are there; brief: at the last alone where another
    word is right for it. lines: by round."""
    best, *last = (
        (claims.said(line.rename({"gain": "estimate"})), kind(line, WAYS))
        for _, line in lines.iterrows()
    )
    out = f"{best[0]} ({lines['repetitions'].iloc[0]:.0f})"
    for value, way in last:
        if not brief:
            out += f", last round {value}"
        elif way != best[1]:
            out += f", last round {way or 'no gain shown'}: {value}"
    return out


def _word(lines: pd.DataFrame) -> str:
    """What the intervals of a gain allow to say; lines: by round."""
    ways = [kind(line, WAYS) for _, line in lines.iterrows()]
    alone = [f"{way} at the {at} alone" for way, at in zip(ways, lines.index, strict=True) if way]
    way = ways[0] if len({*ways}) == 1 else ", ".join(alone)
    less = f"{'it' if way else 'any gain'} is smaller than {NO_GAIN:g} points"
    at = lines.index[lines["p_same"] < 0.05]
    if not len(at):
        return way or f"neither a gain nor one below {NO_GAIN:g} points is shown"
    less = less if len(at) == len(lines) else f"that {less} is shown at the {at[0]} alone"
    return f"{way}, and {less}" if way else less
