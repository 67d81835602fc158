"""What losses, probabilities, opting out and statistics change on digits, in tables."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.evidence.records import select
from lgfed_core.papers.differences import Pair, table, tables

from . import claims, run as digits

NO_PROTECTION = 1000.0  # an epsilon above it promises nothing
TWO = "epsilon, any two"  # column of `privacy`: between two changes of the clip's length


def of(found: pd.DataFrame) -> Page:
    """Each of the longest games there are; found: of `claims.stored`."""
    games, declined = (
        claims.each_longest(found, table) for table in (digits.TABLE, digits.OPT_OUT)
    )
    first = [_ends(games), _squared(games), _losses(games), _against_source(games)]
    return tables([*first, _opting_out(declined), statistics(found)])


def _ends(found: pd.DataFrame) -> str:
    head = "A rare or frequent target against one half, vanilla loss, points of target accuracy"
    pairs = [
        (f"{direction}, at {p:g}", mine["vanilla", p], mine["vanilla", 0.5])
        for direction, mine in _by_direction(found, "target_acc")
        for p in mine.get("vanilla", pd.DataFrame())
        if p != 0.5
    ]
    return table(head, pairs)


def _squared(found: pd.DataFrame) -> str:
    head = "The squared loss ahead of the vanilla one, points of target accuracy"
    pairs = [
        (f"{direction}, at {p:g}", mine["squared", p], mine["vanilla", p])
        for direction, mine in _by_direction(found, "target_acc")
        for p in mine.get("squared", pd.DataFrame())
    ]
    return table(head, pairs)


def _losses(found: pd.DataFrame) -> str:
    """Both halves of F3, with the levels that are compared."""
    pairs = []
    for direction, words, vanilla, squared in claims.rare_losses(found):
        rounds = select(found, table=digits.TABLE, direction=direction, loss="vanilla")["rounds"]
        name = f"{direction}, {words}, {rounds.max():,.0f} rounds, vanilla {vanilla.mean():.2f}"
        pairs.append((name, squared, vanilla))
    head = (
        "Losses of the rarest target, squared above vanilla (adversarial: at the end; task: on the "
    )
    head += "way), nats"
    return table(head, pairs)


def _against_source(found: pd.DataFrame) -> str:
    """What the game adds to the model before it, which the source has trained alone."""
    alone = select(found, table=digits.TABLE, metric="target_acc", loss="pretraining")
    pairs = []
    for direction, mine in _by_direction(found, "target_acc"):
        start = select(alone, direction=direction).set_index("seed")["value"]
        words = f"{direction}, source alone {start.mean():.1f} %"
        pairs += [(words, mine["vanilla", 0.5], start)] * bool(len(start))
    head = "What the game adds to the source alone, vanilla loss at one half, points"
    return table(head, pairs)


def _opting_out(found: pd.DataFrame) -> str:
    pairs = []
    for who in ("source", "target"):
        for direction, mine in claims.opting_out(found, f"{who}_acc").groupby("direction"):
            ran = mine.droplevel("direction").dropna(axis=1, how="all")
            rates = [rate for rate in ran if rate > 0 and 0.0 in ran]
            pairs += [(f"{direction}, {who} at {rate:g}", ran[rate], ran[0.0]) for rate in rates]
    return table("Opting out against never, points of accuracy", pairs)


def statistics(found: pd.DataFrame) -> str:
    """What running statistics that are not frozen change, at the ends of the probabilities."""
    head = "Other running statistics against frozen ones, points of target accuracy"
    return table(head, _statistics(claims.each_longest(found, digits.STATISTICS)))


def epsilon(value: float) -> str:
    """ "24.4"; "none" above `NO_PROTECTION`, where it promises nothing."""
    return f"{value:,.1f}" if value <= NO_PROTECTION else "none"


def _by_direction(found: pd.DataFrame, metric: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for direction, mine in claims.wide(found, metric).groupby("direction"):
        mine = mine.droplevel("direction")
        if ("vanilla", 0.5) in mine:
            yield direction, mine


def _statistics(found: pd.DataFrame) -> Iterator[Pair]:
    rows = select(found, table=digits.STATISTICS, metric="target_acc")
    for direction, frozen in _by_direction(found, "target_acc"):
        mine = select(rows, direction=direction)
        for kind, group in mine.groupby("statistics"):
            wide = group.pivot_table("value", "seed", "probability")
            for p in wide:
                if ("vanilla", p) in frozen:
                    yield f"{direction}, {kind} at {p:g}", wide[p], frozen["vanilla", p]
