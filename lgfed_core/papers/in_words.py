"""Sentences from runs, in which the word for a difference follows its interval.

An interval that holds zero is called neither more nor less; one run has none, and shows nothing.
What would make a sentence false stands beside it in the source, as a comment "False if ...", or,
for one that is written in a notebook, in its cell's metadata as ``false_if``: tests/test_prose.py.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.verdict import NOT_RUN, Evidence, greater

KINDS = ("more", "less", "not shown to be more or less")
AHEAD = ("ahead", "behind", "not shown to be ahead or behind")  # of a method and another
ALONE = "one seed alone"
FEW = 2  # comparisons that one line takes
NESTED = "   "  # indents a list below an item of another, be that one numbered or not
Pair = tuple[str, pd.Series, pd.Series]  # a name, and two numbers by seed


def less(a: pd.Series, b: pd.Series, shared: float = 0.0) -> tuple[Evidence, int]:
    """a less b over the seeds that both have, and how many those are; shared: of `greater`."""
    a, b = a.dropna().align(b.dropna(), join="inner")
    return greater(a, b, shared=shared), len(a)


def kind(gain, words: tuple[str, str, str] = KINDS) -> str:
    """The first word above zero, the second below, the third where the interval holds zero.

    gain: anything with ``low`` and ``high``, the ends of a 95 % interval.
    """
    if gain.low > 0:
        return words[0]
    return words[1] if gain.high < 0 else words[2]


def sentence(
    head: str,
    pairs: Iterable[Pair],
    words: tuple[str, str, str] = KINDS,
    fewest: int = 1,
    shared: float = 0.0,
    digits: int = 2,
) -> str:
    """What a less b is, pair by pair, in Markdown: `FEW` pairs on a line, more as a list by word.

    "head: name, more: +1.23 [+0.45, +2.01] (3); ..." or, of many, "head:" and an item for each
    word, "**more**: name +1.23 [+0.45, +2.01] (3); ...". fewest: seeds that a comparison needs to
    be said. "head: not yet run." where there is none.
    """
    found: list[tuple[str, str, str]] = []
    for name, a, b in pairs:
        gain, runs = less(a, b, shared)
        if runs >= fewest:
            way = ALONE if runs == 1 else kind(gain, words)
            found.append((way, name, said(gain, runs, digits=digits)))
    if len(found) <= FEW:
        line = "; ".join(f"{name}, {way}: {value}" for way, name, value in found)
        return f"{head}: {line or NOT_RUN}."
    return by_word(head, found, words)


def by_word(
    head: str, found: Iterable[tuple[str, str, str]], words: tuple[str, str, str] = KINDS
) -> str:
    """The list of `sentence`, an item for each word; found: (word, name, value), already judged."""
    found, items = tuple(found), []
    for word in (*words, ALONE):
        # False if one of the intervals moved to the other side of zero, or came to hold it.
        mine = [f"{name} {value}" for way, name, value in found if way == word]
        if mine:
            items.append(f"{NESTED}- **{word}**: {'; '.join(mine)}.")
    return "\n".join([f"{head}:", *items])


def seeds(n: int) -> str:
    """ "1 seed", "3 seeds"."""
    return f"{n} seed{'s' * (n != 1)}"


def bullets(sentences: Iterable[str]) -> str:
    """A list in Markdown, of the sentences that say anything."""
    return "\n".join(f"- {words}" for words in sentences if words)


def mean(values: pd.Series, digits: int = 1) -> str:
    """The mean over seeds; "not yet run" of none."""
    values = values.dropna()
    return f"{np.mean(values):.{digits}f}" if len(values) else NOT_RUN
