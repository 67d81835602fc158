"""What the page on version 1 says in words, from rows; beside each what would make it false."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.printed import METHODS, cells
from lgfed_core.evidence.verdict import NOT_RUN, compare, greater
from lgfed_core.papers.in_words import NESTED, Pair, bullets, seeds, sentence

from ..comparisons import LOCAL, READINGS, SOUND, lg
from ..printed import TABLES
from ..records import PRINTED
from ..stored import by_seed
from .run import BESIDE, PRINTED_ROUNDS, TABLE
from .tables import ALL_WAYS, TESTS, TITLES, WAYS, printed_new_test, values_of

_SENT = "params_communicated"
FITS = ("goes with", "does not go with", "is not told apart from")  # of a print and an average
_SAID = (50, 60)  # "around 50 - 60 %", percent of FedAvg's parameters


def strangers(shares: Mapping[str, Sequence[np.ndarray]]) -> str:
    """Whether the split tests devices on classes that they do not hold, by data set.

    shares: by title, of each split what `tables.strangers` finds, in percent.
    """
    lines = []
    for title, splits in shares.items():
        most, worst = (max((s > 0).sum() for s in splits), max(s.max() for s in splits))
        # False if a split of this data set gave a device a test row of a class it has no row of,
        # where it says none does; or none, where it says some are.
        words = (
            f"up to {most} of {len(splits[0])} devices are, with {worst:.0f} % of their test rows "
            f"at worst and {np.mean([s.mean() for s in splits]):.2f} % on average"
        )
        lines.append(f"{title}: {words if most else 'no device is'}")
    many = len(next(iter(shares.values())))
    return f"**Tested on classes that they do not hold**, in {many} splits: {'; '.join(lines)}."


def meanings(stored: pd.DataFrame) -> str:
    """Which averages of models trained alone lie within a deviation of what each version prints.

    stored: rows of `records.load`.
    """
    numbers, lines, spread = by_seed(stored), [], {}
    for data, title in TITLES.items():
        for key in (LOCAL, lg(PRINTED_ROUNDS[data])):
            for whose, ours in _runs(stored, numbers, data, key):
                if len(ours) < 2:
                    continue
                means = [values.mean() for values in ours.values()]
                spread.setdefault(key[0], []).append(max(means) - min(means))
                if key == LOCAL:
                    lines.append(f"{NESTED}- {title}, {whose}: {_within(data, ours)}.")
    # False if a way of averaging came within a printed deviation that is not named, one that is
    # named left it, or an interval of the difference came to hold zero, or moved off it.
    head = (
        "**One name, two quantities** (local only; within a printed deviation, or told apart by a "
        "95 % interval)"
    )
    text = "\n".join([f"{head}:", *lines]) if lines else f"{head}: {NOT_RUN}."
    if len(spread) == 2:
        alone, common = spread["local_only"], spread["lg_fedavg"]
        # False if the ways lay further apart for LG-FedAvg than for some models trained alone.
        less = "matters less" if max(common) < min(alone) else "is not shown to matter less"
        text += (
            f"\n{NESTED}- **From a common FedAvg start the way {less}**: the ways lie at most "
            f"{max(common):.2f} points apart for LG-FedAvg, and at least {min(alone):.2f} for "
            "models trained alone."
        )
    return text


def short(stored: pd.DataFrame) -> list[str]:
    """What came out, for the box under the title: the three claims, then the two quantities."""
    *three, own_head = _claims(stored)
    return [*three, meanings(stored), own_head]


def claims(stored: pd.DataFrame) -> str:
    """The three claims of section 3.1 and the own head, in Markdown, with our runs' numbers."""
    return bullets(_claims(stored))


def _claims(stored: pd.DataFrame) -> list[str]:
    # False, each, if the interval moved to the other side of zero, or came to hold it.
    tests = [
        sentence(f"**{words}**, in points", _pairs(stored, test))
        for test, words in zip(TESTS, ("Local test", "New test"), strict=True)
    ]
    head = "**What the own head is worth**, version 1 less version 2 on MNIST, in points"
    return [*tests, _share(stored), sentence(head, _own_head(stored))]


def _share(stored: pd.DataFrame) -> str:
    """The share of FedAvg's parameters that LG-FedAvg sends, printed and ours, in percent."""
    printed, lines, low, high = cells(TABLES[TABLE]), [], *_SAID
    for data, title in TITLES.items():
        mine = printed[(printed["dataset"] == data) & (printed["metric"] == _SENT)]
        paper = mine.set_index("method")["paper"]
        share = 100 * paper["lg_fedavg"] / paper["fedavg"]
        lg_sent, fed_sent = (
            values_of(stored, TABLE, data, _SENT, m) for m in ("lg_fedavg", "fedavg")
        )
        ours = (100 * lg_sent / fed_sent).dropna()
        # False if the quotient of the printed column lay on the other side of what the text says.
        where = "as the text says" if low <= round(share) <= high else "not as the text says"
        mine = said(greater(ours), len(ours), "", digits=1)
        lines.append(f"{title}: {share:.0f} % in print, {where}; ours, in percent, {mine}")
    head = f"**Parameters sent, \"{low} to {high} %\" of FedAvg's**, FedAvg's rounds by our rule"
    return f"{head}: {'; '.join(lines)}."


def _pairs(stored: pd.DataFrame, test: str) -> Iterator[Pair]:
    for data, title in TITLES.items():
        mine = values_of(stored, TABLE, data, test, "lg_fedavg")
        for other in ("fedavg", "local_only"):
            theirs = values_of(stored, TABLE, data, test, other)
            yield f"{title}, LG-FedAvg less {METHODS[other]}", mine, theirs


def _own_head(stored: pd.DataFrame) -> Iterator[Pair]:
    tests = {"local test": TESTS[0]}
    tests |= {f"new test, {words}": f"new_test_acc_{way}" for way, words in WAYS.items()}
    for words, metric in tests.items():
        both = (values_of(stored, t, "mnist", metric, "lg_fedavg") for t in (TABLE, BESIDE))
        yield words, *both


def _runs(stored, numbers, data: str, key: tuple) -> Iterator[tuple[str, dict[str, pd.Series]]]:
    """Whose runs, and their new test by seed and way of averaging, of the ways that have run."""
    first = {w: values_of(stored, TABLE, data, f"new_test_acc_{w}", key[0]) for w in ALL_WAYS}
    at = {w: (data, 2, key, f"new_test_acc_{w}", READINGS[SOUND]) for w in ALL_WAYS}
    second = {w: numbers.get(k, pd.Series(dtype=float)) for w, k in at.items()}
    for version, found in (("version 1", first), ("version 2", second)):
        ran = {w: v for w, v in found.items() if len(v)}
        many = max((len(v) for v in ran.values()), default=0)
        yield f"our runs of {version} ({seeds(many)})", ran


def _within(data: str, ours: dict[str, pd.Series]) -> str:
    """ "version 1's 84.01 ± 7.42 goes with averaged outputs (84.60), does not go with
    averaged weights (30.41)", by version."""
    lines = []
    for version, table in (("version 1", TABLE), ("version 2", PRINTED[data][0])):
        printed = printed_new_test(table, data, *LOCAL)
        paper, deviation = float(printed["paper"]), float(printed["paper_sd"])
        ways: dict[str, list[str]] = {word: [] for word in FITS}
        for way, values in ours.items():
            found = compare(paper, deviation, TABLES[table].runs, values, 0.0)
            off = found.low > 0 or found.high < 0
            word = FITS[0] if abs(found.difference) <= deviation else FITS[1 if off else 2]
            ways[word].append(f"{ALL_WAYS[way]} ({values.mean():.2f})")
        words = (f"{word} {' or '.join(some)}" for word, some in ways.items() if some)
        lines.append(f"{version}'s {paper:.2f} ± {deviation:.2f} {', '.join(words)}")
    return "; ".join(lines)
