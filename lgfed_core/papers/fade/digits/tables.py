"""What the page of FADE on digits shows in tables, from rows of `claims.stored`."""

from collections.abc import Iterator

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import plain
from lgfed_core.papers import differences as paired
from lgfed_core.papers.differences import Pair

from . import claims
from .settings import CENTRAL, OPT_OUT, STATISTICS, TABLE

# Transfer-Learning-Library (Tsinghua), its table "Digits accuracy", DANN on a LeNet: 20 epochs of
# 2,500 batches of 128 rows of each domain, from scratch, batch normalisation over both domains'
# rows together, the best epoch on the target's test rows. Its loss is the task's and the mean of
# both domains' adversarial ones, each at its full rate: 0.01 from MNIST, 0.1 from USPS.
LIBRARY = {"mnist-usps": 91.7, "usps-mnist": 95.2}
NO_PROTECTION = 1000.0  # an epsilon above it promises nothing


def central(found: pd.DataFrame) -> pd.DataFrame:
    """DANN with both domains in one place: a line per direction, length and kind of statistics.

    Columns: ours and sd (target accuracy, percent), seeds, library, difference; federated, the
    vanilla game of the same length with groups equally often there (NaN where it has not run).
    """
    rows, by = select(found, table=TABLE, metric="target_acc"), ["direction", "rounds"]
    rows = rows.assign(statistics=rows["statistics"].map(plain).replace("", "frozen"))
    mine = select(rows, loss=CENTRAL).groupby([*by, "statistics"])["value"]
    lines = mine.agg(ours="mean", sd="std", seeds="size")
    lines["library"] = lines.index.get_level_values("direction").map(LIBRARY)
    lines["difference"] = lines["ours"] - lines["library"]
    game = select(rows, loss="vanilla", probability=0.5).groupby(by)["value"].mean()
    return lines.join(game.rename("federated"), on=by)


def differences(found: pd.DataFrame) -> Page:
    """What losses, probabilities, opting out and statistics change in the longest games there are,
    paired by seed."""
    games = claims.each_longest(found)
    points = "points of target accuracy"
    parts = {
        f"A rare or frequent target against one half, vanilla loss, {points}": _ends(games),
        f"The squared loss ahead of the vanilla one, {points}": _squared(games),
        "Losses of the rarest target, squared above vanilla (adversarial: at the end; task: on the "
        "way), nats": _losses(games),
        "What the game adds to the source alone, vanilla loss at one half, points": _added(games),
        "Opting out against never, points of accuracy": _opting_out(found),
        f"Other running statistics against frozen ones, {points}": _statistics(found),
    }
    return paired.tables(paired.table(title, pairs) for title, pairs in parts.items())


def epsilon(value: float) -> str:
    """ "24.4"; "none" above `NO_PROTECTION`, where it promises nothing."""
    return f"{value:,.1f}" if value <= NO_PROTECTION else "none"


def _by_direction(games: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(direction, target accuracy by seed and (loss, probability))."""
    for direction, mine in claims.wide(games, "target_acc").groupby("direction"):
        if ("vanilla", 0.5) in mine:
            yield direction, mine.droplevel("direction")


def _ends(games: pd.DataFrame) -> Iterator[Pair]:
    for direction, mine in _by_direction(games):
        for p, end in mine["vanilla"].drop(columns=0.5).items():
            yield f"{direction}, at {p:g}", end, mine["vanilla", 0.5]


def _squared(games: pd.DataFrame) -> Iterator[Pair]:
    for direction, mine in _by_direction(games):
        for p, squared in mine.get("squared", pd.DataFrame()).items():
            yield f"{direction}, at {p:g}", squared, mine["vanilla", p]


def _losses(games: pd.DataFrame) -> Iterator[Pair]:
    """Both halves of F3, with the levels that are compared."""
    for direction, words, vanilla, squared in claims.rare_losses(games):
        mine = select(games, table=TABLE, direction=direction, loss="vanilla")
        rounds = f"{mine['rounds'].max():,.0f} rounds"
        yield f"{direction}, {words}, {rounds}, vanilla {vanilla.mean():.2f}", squared, vanilla


def _added(games: pd.DataFrame) -> Iterator[Pair]:
    """What the game adds to the model before it, which the source has trained alone."""
    alone = select(games, table=TABLE, metric="target_acc", loss="pretraining")
    for direction, mine in _by_direction(games):
        start = select(alone, direction=direction).set_index("seed")["value"]
        if len(start):
            yield f"{direction}, source alone {start.mean():.1f} %", mine["vanilla", 0.5], start


def _opting_out(found: pd.DataFrame) -> Iterator[Pair]:
    games = claims.each_longest(found, OPT_OUT)
    for who in ("source", "target"):
        for direction, mine in claims.opting_out(games, f"{who}_acc").groupby("direction"):
            ran = mine.droplevel("direction").dropna(axis=1, how="all")
            for rate in ran.columns[ran.columns > 0] if 0.0 in ran else ():
                yield f"{direction}, {who} at {rate:g}", ran[rate], ran[0.0]


def _statistics(found: pd.DataFrame) -> Iterator[Pair]:
    """What running statistics that are not frozen change, at the ends of the probabilities."""
    games = claims.each_longest(found, STATISTICS)
    rows = select(games, table=STATISTICS, metric="target_acc")
    for direction, frozen in _by_direction(games):
        for kind, some in select(rows, direction=direction).groupby("statistics"):
            for p, other in some.pivot_table("value", "seed", "probability").items():
                if ("vanilla", p) in frozen:
                    yield f"{direction}, {kind} at {p:g}", other, frozen["vanilla", p]
