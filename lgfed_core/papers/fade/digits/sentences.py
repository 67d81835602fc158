"""What the page on digits says in words, from rows and its live run; beside each what would make
it false."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.records import select
from lgfed_core.papers.in_words import Pair, bullets, mean, seeds, sentence

from . import claims, run as digits

NO_PROTECTION = 1000.0  # an epsilon above it promises nothing
TWO = "epsilon, any two"  # column of `privacy`: between two changes of the clip's length


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown; found: of `claims.stored`. Each is of the longest games there are."""
    games, declined = (
        claims.each_longest(found, table) for table in (digits.TABLE, digits.OPT_OUT)
    )
    first = [_ends(games), _squared(games), _losses(games), _against_source(games)]
    return bullets([*first, _opting_out(declined), statistics(found)])


def _ends(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**Target accuracy with the vanilla loss, a rare or frequent target less one half**"
    pairs = [
        (f"{direction}, at {p:g}", mine["vanilla", p], mine["vanilla", 0.5])
        for direction, mine in _by_direction(found, "target_acc")
        for p in mine.get("vanilla", pd.DataFrame())
        if p != 0.5
    ]
    return sentence(f"{head}, in points", pairs)


def _squared(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**Target accuracy, the squared loss less the vanilla one**, in points"
    pairs = [
        (f"{direction}, at {p:g}", mine["squared", p], mine["vanilla", p])
        for direction, mine in _by_direction(found, "target_acc")
        for p in mine.get("squared", pd.DataFrame())
    ]
    return sentence(head, pairs)


def _losses(found: pd.DataFrame) -> str:
    """Both halves of F3, with the levels that are compared."""
    pairs = []
    for direction, words, vanilla, squared in claims.rare_losses(found):
        rounds = select(found, table=digits.TABLE, direction=direction, loss="vanilla")["rounds"]
        levels = f"{mean(vanilla, 2)} with the vanilla one and {mean(squared, 2)} with the squared"
        name = f"{direction}, {words}, {rounds.max():,.0f} rounds ({levels})"
        pairs.append((name, squared, vanilla))
    # False if an interval moved to the other side of zero, or came to hold it.
    head = (
        "**Losses of the rarest target, the squared loss less the vanilla one** (F3: adversarial "
        "at the end, task on the way), in nats"
    )
    return sentence(head, pairs)


def _against_source(found: pd.DataFrame) -> str:
    """What the game adds to the model before it, which the source has trained alone."""
    alone = select(found, table=digits.TABLE, metric="target_acc", loss="pretraining")
    pairs = []
    for direction, mine in _by_direction(found, "target_acc"):
        start = select(alone, direction=direction).set_index("seed")["value"]
        words = f"{direction} (source alone {mean(start)} %)"
        pairs += [(words, mine["vanilla", 0.5], start)] * bool(len(start))
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**Target accuracy, the vanilla loss at one half less the source alone**, in points"
    return sentence(head, pairs)


def _opting_out(found: pd.DataFrame) -> str:
    pairs = []
    for who in ("source", "target"):
        for direction, mine in claims.opting_out(found, f"{who}_acc").groupby("direction"):
            ran = mine.droplevel("direction").dropna(axis=1, how="all")
            rates = [rate for rate in ran if rate > 0 and 0.0 in ran]
            pairs += [(f"{direction}, {who} at {rate:g}", ran[rate], ran[0.0]) for rate in rates]
    # False if an interval moved to the other side of zero, or came to hold it.
    return sentence("**Accuracy, opting out at a rate less never**, in points", pairs)


def statistics(found: pd.DataFrame) -> str:
    """What running statistics that are not frozen change, at the ends of the probabilities."""
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**Target accuracy, other running statistics less frozen ones**, in points"
    return sentence(head, _statistics(claims.each_longest(found, digits.STATISTICS)))


def epsilon(value: float) -> str:
    """ "24.4"; "none" above `NO_PROTECTION`, where it promises nothing."""
    return f"{value:,.1f}" if value <= NO_PROTECTION else "none"


def privacy(found: pd.DataFrame, runs: int, scale: str) -> str:
    """What noise leaves of the game that the page has just played, with so many runs at a scale.

    found: a line per sigma, the first without noise, with columns "messages", as planned, of all
    these "epsilon" against no change at all and `TWO` between any two changes, and "target, %" (NaN
    where the run left the finite numbers).
    """
    clear, lines = found["target, %"].iloc[0], []
    for sigma, line in found.iloc[1:].iterrows():
        left = line["target, %"]
        end = "it diverges" if pd.isna(left) else f"{left - clear:+.1f} points of target accuracy"
        spent, messages = epsilon(line["epsilon"]), f"{line['messages']:.0f} messages"
        said = f"epsilon {spent} for {messages} ({epsilon(line[TWO])} between any two changes)"
        if spent == "none":
            said = f"no protection (epsilon for {messages} above {NO_PROTECTION:,.0f})"
        lines.append(f"sigma {sigma:g}, {said}: {end}")
    # False if other noise came out in this run. A live run: it suggests, and no more.
    head = f"**What noise on the upload does**, live, {seeds(runs)} at scale {scale}, against none"
    return f"{head}: {'; '.join(lines)}."


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
