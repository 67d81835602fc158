"""What the page on objects says in words, from rows; beside each what would make it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.printed import METHODS as WORDS
from lgfed_core.papers.in_words import AHEAD, Pair, bullets, sentence

from . import stored
from .chances import chance
from .settings import METHODS, Settings
from .tables import USERS


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown; found: of `stored.rows`."""
    return bullets(
        [_adapted(found), _few_classes(found), _fair(found), _choice(found), _released(found)]
    )


def _adapted(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**What adaptation adds to the source's model**, averages over tasks, in points"
    return sentence(head, _against_source(found), AHEAD, digits=1)


def _few_classes(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**Users with 20 classes less i.i.d. ones**, averages over tasks, in points"
    few, all_ = (stored.average(stored.accuracy(found, users)) for users in ("noniid", "iid"))
    pairs = [(WORDS[m], few[m], all_[m]) for m in METHODS if m in few and m in all_]
    return sentence(head, pairs, AHEAD, digits=1)


def _fair(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**CDAN less SHOT**, 20 classes, averages over tasks, in points"
    both = {name: some["noniid"] for name, some in chance(found).items()}
    pairs = [(name, m["cdan"], m["shot"]) for name, m in both.items() if {"cdan", "shot"} <= set(m)]
    return sentence(head, pairs, AHEAD, digits=1)


def _choice(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**The round that is best on the target's labels less the last**, 20 classes, in points"
    last, best = (stored.accuracy(found, "noniid", m) for m in ("target_acc", "oracle_acc"))
    last, best = stored.average(last), stored.average(best)
    pairs = [(WORDS[m], best[m], last[m]) for m in METHODS if m in best and m in last]
    return sentence(head, pairs, digits=1)


def _released(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**As released less as described**, averages over tasks after "
    head += f"{Settings.rounds} rounds, in points"
    pairs = []
    for users, words in (("noniid", "non-i.i.d."), ("iid", USERS["iid"])):
        text, code = (
            stored.average(stored.accuracy(found, users, protocol=protocol))
            for protocol in ("as_described", "as_released")
        )
        both = [m for m in METHODS if m in text and m in code]
        pairs += [(f"{words}, {WORDS[m]}", code[m], text[m]) for m in both]
    return sentence(head, pairs, AHEAD, digits=1)


def _against_source(found: pd.DataFrame) -> Iterator[Pair]:
    for users in ("noniid", "iid"):
        mean = stored.average(stored.accuracy(found, users))
        for method in METHODS:
            if method in mean and "source_only" in mean:
                yield f"{USERS[users]}, {WORDS[method]}", mean[method], mean["source_only"]
