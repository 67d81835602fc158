"""What the game changes on incomes, at the usual tuning, in tables."""

from collections.abc import Iterable, Iterator

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.papers.differences import Pair, table, tables

from . import claims
from .settings import POWERS, Settings, Tuning, in_words, users

_GAMES = [loss for loss in POWERS if loss != "none"]
_USUAL = f"at the usual tuning ({Tuning(lr=Settings.lr).words})"


def of(found: pd.DataFrame) -> Page:
    """found: of `claims.stored`, one choice of inputs."""
    return tables([_gap(found), _price(found), _groups(found)])


def _gap(found: pd.DataFrame) -> str:
    head = f"What the game changes in ΔEO (0 is fair), {_USUAL}"
    return table(head, _against_none(found, "delta_eo"), digits=3)


def _price(found: pd.DataFrame) -> str:
    head = f"What the game changes in accuracy, {_USUAL}, points"
    return table(head, _against_none(found, "acc"))


def _groups(found: pd.DataFrame) -> str:
    women, men = (claims.wide(found, f"acc_{who}") for who in ("female", "male"))
    pairs = [(_name(c), women[c], men[c]) for c in _ends(women, ["none"]) if c in men]
    return table("Accuracy on women above that on men, without a game, points", pairs)


def _against_none(found: pd.DataFrame, metric: str) -> Iterator[Pair]:
    table = claims.wide(found, metric)
    for loss, males in _ends(table, _GAMES):
        if ("none", males) in table:
            yield _name((loss, males)), table[loss, males], table["none", males]


def _ends(table: pd.DataFrame, losses: Iterable[str]) -> list[tuple[str, float]]:
    """Columns of these losses at the fewest and the most male users."""
    males = table.columns.get_level_values("males")
    return [(loss, m) for loss, m in table if loss in losses and m in (males.min(), males.max())]


def _name(column: tuple[str, float]) -> str:
    return f"{in_words(column[0])}, {users(column[1])}"
