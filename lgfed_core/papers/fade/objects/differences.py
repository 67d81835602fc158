"""What methods, users and settings differ by on objects, averages over tasks, in tables."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.evidence.printed import METHODS as WORDS
from lgfed_core.papers.differences import Pair, table, tables

from . import stored
from .fair_chance import chance
from .settings import METHODS, Settings, bottleneck
from .tables import USERS


def of(found: pd.DataFrame) -> Page:
    """found: of `stored.rows`."""
    about = (_adapted, _fair, _shot_released, _few_classes, _told, _choice, _released)
    return tables(each(found) for each in about)


def _adapted(found: pd.DataFrame) -> str:
    head = "What adaptation adds to the source's model, points of target accuracy"
    return table(head, _against_source(found), digits=1)


def _few_classes(found: pd.DataFrame) -> str:
    head = "Fewer classes for each user, points of target accuracy"
    means = {users: stored.average(stored.accuracy(found, users)) for users in USERS}
    pairs = []
    for few, many in (("noniid", "iid"), ("noniid15", "noniid")):
        a, b = means[few], means[many]
        words = (
            f"{USERS[few].removesuffix(' classes')} against {USERS[many].removesuffix(' classes')}"
        )
        pairs += [(f"{words}, {WORDS[m]}", a[m], b[m]) for m in METHODS if m in a and m in b]
    return table(head, pairs, digits=1)


def _fair(found: pd.DataFrame) -> str:
    head = "CDAN ahead of SHOT, points of target accuracy"
    ways = {f"{USERS['noniid']}, {name}": some["noniid"] for name, some in chance(found).items()}
    for protocol, means in _by_protocol(found, "noniid15").items():
        words = ", as released" * (protocol == "as_released")
        ways[f"{USERS['noniid15']}, {Settings.rounds} rounds{words}"] = means
    pairs = [(name, m["cdan"], m["shot"]) for name, m in ways.items() if {"cdan", "shot"} <= set(m)]
    return table(head, pairs)


def _shot_released(found: pd.DataFrame) -> str:
    head = f"SHOT ahead of others, as released, {Settings.rounds} rounds, points of target accuracy"
    means = {users: _by_protocol(found, users)["as_released"] for users in ("noniid15", "iid")}
    pairs = [
        (f"{USERS[users]}, {WORDS[m]}", some["shot"], some[m])
        for users, some in means.items()
        for m in ("dann", "cdan")
        if {m, "shot"} <= set(some)
    ]
    return table(head, pairs)


def _told(found: pd.DataFrame) -> str:
    head = "Information in CDAN's predictions within users, more than in others', 20 classes, nats"
    told = stored.average(stored.accuracy(found, metric="information"))
    others = {"dann": WORDS["dann"], stored.BEFORE["relu"]: "the model before the game"}
    some = [(words, m) for m, words in others.items() if {m, "cdan"} <= set(told)]
    pairs = [(words, told["cdan"], told[m]) for words, m in some]
    return table(head, pairs, digits=3)


def _choice(found: pd.DataFrame) -> str:
    head = "What choosing the round on the target's labels adds, 20 classes, points"
    last, best = (stored.accuracy(found, "noniid", m) for m in ("target_acc", "oracle_acc"))
    last, best = stored.average(last), stored.average(best)
    pairs = [(WORDS[m], best[m], last[m]) for m in METHODS if m in best and m in last]
    return table(head, pairs, digits=1)


def _released(found: pd.DataFrame) -> str:
    head = f"As released against as described, {Settings.rounds} rounds, points of target accuracy"
    pairs = []
    for users in ("noniid15", "iid"):  # non-i.i.d. ones have 15 classes as released
        text, code = _by_protocol(found, users).values()
        both = [m for m in METHODS if m in text and m in code]
        pairs += [(f"{USERS[users]}, {WORDS[m]}", code[m], text[m]) for m in both]
    return table(head, pairs, digits=1)


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
