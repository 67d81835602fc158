"""What the page on incomes says in words, from rows; beside each what would make it false."""

from collections.abc import Iterable, Iterator

import pandas as pd

from lgfed_core.papers.in_words import Pair, bullets, sentence

from . import claims, hidden
from .settings import POWERS, Settings, Tuning, in_words, users

_GAMES = [loss for loss in POWERS if loss != "none"]
_USUAL = f"at the usual tuning ({Tuning(lr=Settings.lr).words})"


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown; found: of `claims.stored`, one choice of inputs."""
    return bullets([_kept(found), _gap(found), _price(found), _groups(found)])


def _kept(found: pd.DataFrame) -> str:
    """By which margin F12 is judged, and what has been left out before."""
    head = (
        f"**F12 asks for accuracy within {claims.MARGIN:g} point** of the best tuning without an "
        f"adversary, of tunings that cost at most {claims.COST:g} on validation rows"
    )
    able, gone = claims.screened(found)
    if not able:
        return f"{head}: not yet run."
    costs, lost = claims.left_out(found), claims.broken(found) & {*gone}
    by_loss = ", ".join(f"{sum(c[0] == loss for c in lost)} {loss}" for loss in claims.LOSSES)
    parts = [f"{len(lost)} with a seed that left the finite numbers ({by_loss})"] * bool(lost)
    # False if what is left out on validation rows cost more on test rows than is said here.
    cost = f"{len(costs)} that cost {costs.min():.1f} to {costs.max():.1f} points on test rows"
    parts += [cost] * bool(len(costs))
    why = f": {', '.join(parts)}" * bool(parts)
    return f"{head}; that leaves out {len(gone)} of {len(able) + len(gone)}{why}."


def _gap(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**Delta EO with the game less without**, {_USUAL}"
    return sentence(head, _against_none(found, "delta_eo"), hidden.WORDS, digits=3)


def _price(found: pd.DataFrame) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**Accuracy with the game less without**, {_USUAL}, in points"
    return sentence(head, _against_none(found, "acc"), hidden.WORDS)


def _groups(found: pd.DataFrame) -> str:
    women, men = (claims.wide(found, f"acc_{who}") for who in ("female", "male"))
    pairs = [(_name(c), women[c], men[c]) for c in _ends(women, ["none"]) if c in men]
    # False if men were as easy to get right as women.
    return sentence(
        "**Accuracy on women less on men**, without a game, in points", pairs, hidden.WORDS
    )


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
