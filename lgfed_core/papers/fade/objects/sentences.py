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
        said(found) for said in (_adapted, _few_classes, _fair, _told, _choice, _released)
    )


def _adapted(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**What adaptation adds to the source's model**, averages over tasks, in points"
    return sentence(head, _against_source(found), AHEAD, digits=1)


def _few_classes(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**Users with 20 classes less i.i.d. ones, and with 15 less 20**, averages over tasks"
    means = {users: stored.average(stored.accuracy(found, users)) for users in USERS}
    pairs = []
    for few, many in (("noniid", "iid"), ("noniid15", "noniid")):
        a, b = means[few], means[many]
        words = f"{USERS[few].removesuffix(' classes')} less {USERS[many].removesuffix(' classes')}"
        pairs += [(f"{words}, {WORDS[m]}", a[m], b[m]) for m in METHODS if m in a and m in b]
    return sentence(f"{head}, in points", pairs, AHEAD, digits=1)


def _fair(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**CDAN less SHOT**, 20 classes, averages over tasks, in points"
    both = {name: some["noniid"] for name, some in chance(found).items()}
    pairs = [(name, m["cdan"], m["shot"]) for name, m in both.items() if {"cdan", "shot"} <= set(m)]
    return sentence(head, pairs, AHEAD, digits=1)


def _told(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**What CDAN's predictions tell within users, less others**, 20 classes, in nats"
    told = stored.average(stored.accuracy(found, metric="information"))
    others = {"dann": WORDS["dann"], stored.BEFORE["relu"]: "the model before the game"}
    some = [(words, m) for m, words in others.items() if {m, "cdan"} <= set(told)]
    pairs = [(words, told["cdan"], told[m]) for words, m in some]
    return sentence(head, pairs, digits=3)


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
    for users in ("noniid15", "iid"):  # non-i.i.d. ones have 15 classes as released
        text, code = (
            stored.average(stored.accuracy(found, users, protocol=protocol))
            for protocol in ("as_described", "as_released")
        )
        both = [m for m in METHODS if m in text and m in code]
        pairs += [(f"{USERS[users]}, {WORDS[m]}", code[m], text[m]) for m in both]
    return sentence(head, pairs, AHEAD, digits=1)


def _against_source(found: pd.DataFrame) -> Iterator[Pair]:
    for users in ("noniid", "iid"):
        mean = stored.average(stored.accuracy(found, users))
        for method in METHODS:
            if method in mean and "source_only" in mean:
                yield f"{USERS[users]}, {WORDS[method]}", mean[method], mean["source_only"]
