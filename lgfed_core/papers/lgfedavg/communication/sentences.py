"""Sentences to take home from the page on accounting, each made from the counts; beside each what
would make it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.printed import METRICS
from lgfed_core.papers.in_words import Pair, sentence

from ..comparisons import READINGS, SOUND, WORDS, lg
from ..stored import by_seed
from .audit import billions, readable
from .bytes_sent import TESTS

BUDGETS = (("mnist", 400, 800), ("cifar10", 1200, 1800))  # data set, FedAvg rounds of either method
_NAMED = 3  # misfits; more are only counted
_AS = {"mtl": ", counted as FedAvg"}  # a method that shares no part
_SAID = {"v1": (50, 60), "v2": (45, 55)}  # percent: "around 50 - 60 %", "around 50 %" (+- 5)


def of(counts: pd.DataFrame, ratio: pd.DataFrame) -> list[str]:
    """Four of them.

    counts: of `counts.recompute_tables`; ratio: of `audit.ratios`, in percent.
    """
    return [_convention(counts), _half(ratio), _saving(ratio), _once(ratio)]


def short(counts: pd.DataFrame, ratio: pd.DataFrame, stored: pd.DataFrame) -> list[str]:
    """The same, for the box under the title: what is sent and what it buys first."""
    convention, half, *rest = of(counts, ratio)
    return [half, bought(stored), convention, *rest]


def bought(stored: pd.DataFrame) -> str:
    """What LG-FedAvg from the smaller headline budgets has over FedAvg, at two classes, in points.

    stored: rows of `records.load`; as described, chosen on validation rows.
    """
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**What it buys** on these parts of the bytes, LG-FedAvg less FedAvg, in points"
    return sentence(head, _bought(stored), fewest=2)


def _bought(stored: pd.DataFrame) -> Iterator[Pair]:
    values, none = by_seed(stored), pd.Series(dtype=float)
    for data, few, full in BUDGETS:
        for test in TESTS:
            where = ((data, 2, who, test, READINGS[SOUND]) for who in (lg(few), ("fedavg", full)))
            both = (values.get(key, none) for key in where)
            yield (f"{WORDS[data]}, {METRICS[test]}", *both)


def _misfits(counts: pd.DataFrame) -> str:
    """ " (MNIST: LG-FedAvg 400+50, 28.0 billion printed, 28.4 counted; ...)"; "" of many."""
    some = counts[~counts["matches"]]
    if not 0 < len(some) <= _NAMED:
        return ""
    names = readable(some.assign(lines=1, row=some["row"] + some["method"].map(_AS).fillna("")))
    computed = map(billions, some["computed"], some["digit"])
    told = zip(names["row"], names["printed"], computed, strict=True)
    lines = (f"{row}, {one} billion printed, {two} counted" for row, one, two in told)
    return f" ({'; '.join(lines)})"


def _convention(counts: pd.DataFrame) -> str:
    # False if another way to count gave the rows that do not follow, and the others as well.
    fit, m, K = int(counts["matches"].sum()), 10, 100
    return (
        f"**One convention explains {fit} of {len(counts)} counts**, and not "
        f"{len(counts) - fit}{_misfits(counts)}: m uploads and K downloads in every round, which "
        f"neither version writes down: {(m + K) / (2 * m):g} times what the participants alone "
        "would need, for both methods alike."
    )


def _half(ratio: pd.DataFrame) -> str:
    # False if a ratio by the formula lay on the other side of what its version says.
    said: dict[bool, list[str]] = {True: [], False: []}
    for name, value in ratio["formula"].items():
        low, high = _SAID[str(name)[:2]]
        said[low <= round(value) <= high].append(f"{name} ({value:.0f} %)")
    kept, broken = ("; ".join(names) or "none" for names in said.values())
    return (
        '**"Around 50 - 60 %" of FedAvg\'s parameters, says version 1, "around 50 %" version 2** '
        f"(read as 45 to 55): so it is for {kept}; not for {broken}."
    )


def _saving(ratio: pd.DataFrame) -> str:
    # False if the LG rounds were a large part of what is sent.
    more = (ratio["formula"] - ratio["rounds"]).max()
    return (
        "**The saving is in the FedAvg rounds not run**: an LG phase that sent nothing would save "
        f"at most {more:.1f} percent of FedAvg's parameters more."
    )


def _once(ratio: pd.DataFrame) -> str:
    # False if a transfer once per device mattered in a long run as it does in the short one.
    once = (ratio["deployed"] - ratio["formula"]).sort_values()
    return (
        "**What is sent once counts when rounds are few**: it adds "
        f"{once.iloc[0]:.1f} to {once.iloc[-2]:.1f} points to the other ratios, and "
        f"{once.iloc[-1]:.1f} to that of {once.index[-1]}."
    )
