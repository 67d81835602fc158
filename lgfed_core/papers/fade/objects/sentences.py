"""What the page on objects says in words, from rows; beside each what would make it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.printed import METHODS as WORDS
from lgfed_core.papers.in_words import AHEAD, Pair, bullets, sentence

from . import stored
from .chances import chance
from .settings import METHODS, Settings, bottleneck
from .tables import USERS


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown; found: of `stored.rows`."""
    about = (_adapted, _fair, _shot_released, _few_classes, _told, _choice, _released)
    return bullets(said(found) for said in about)


def _adapted(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = (
        "**What adaptation adds to the source's model that it starts from**, averages over tasks,"
    )
    head += " in points"
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
    head = "**CDAN less SHOT**, averages over tasks, in points"
    ways = {f"{USERS['noniid']}, {name}": some["noniid"] for name, some in chance(found).items()}
    for protocol, means in _by_protocol(found, "noniid15").items():
        words = ", as released" * (protocol == "as_released")
        ways[f"{USERS['noniid15']}, {Settings.rounds} rounds{words}"] = means
    pairs = [(name, m["cdan"], m["shot"]) for name, m in ways.items() if {"cdan", "shot"} <= set(m)]
    return sentence(head, pairs, AHEAD)


def _shot_released(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = (
        f"**SHOT less the others as released**, averages over tasks after {Settings.rounds} rounds"
    )
    means = {users: _by_protocol(found, users)["as_released"] for users in ("noniid15", "iid")}
    pairs = [
        (f"{USERS[users]}, {WORDS[m]}", some["shot"], some[m])
        for users, some in means.items()
        for m in ("dann", "cdan")
        if {m, "shot"} <= set(some)
    ]
    return sentence(f"{head}, in points", pairs, AHEAD)


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
        text, code = _by_protocol(found, users).values()
        both = [m for m in METHODS if m in text and m in code]
        pairs += [(f"{USERS[users]}, {WORDS[m]}", code[m], text[m]) for m in both]
    return sentence(head, pairs, AHEAD, digits=1)


def _by_protocol(found: pd.DataFrame, users: str) -> dict[str, pd.DataFrame]:
    """Averages over tasks as described, then as released, a line per seed."""
    return {
        protocol: stored.average(stored.accuracy(found, users, protocol=protocol))
        for protocol in ("as_described", "as_released")
    }


def _against_source(found: pd.DataFrame) -> Iterator[Pair]:
    """Each method less the source's model with its own bottleneck, from which it starts."""
    for users in ("noniid", "noniid15", "iid"):
        mean = stored.average(stored.accuracy(found, users))
        for method in METHODS:
            start = stored.BEFORE[bottleneck(method)]
            if method in mean and start in mean:
                yield f"{USERS[users]}, {WORDS[method]}", mean[method], mean[start]
