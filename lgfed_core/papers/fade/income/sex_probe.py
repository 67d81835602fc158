"""What z still tells about sex, in words, from rows; beside each what would make it false.

A fresh probe learns from few rows, D from all training rows: without a game D may guess better than
the best probe, with one it is driven off. So what a game changes is read twice: by the best probe,
and by the better of that probe and D, seed by seed. A word is said where both readings have it; the
estimate is that of the probe, and the interval spans both.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from lgfed_core.evidence.display import Page
from lgfed_core.evidence.verdict import Evidence
from lgfed_core.papers.differences import Pair, less, lines, table, tables

from . import claims
from .claims import Choice
from .settings import Settings, Tuning, in_words, users

USUAL = Tuning(lr=Settings.lr)


class Change(NamedTuple):
    """What a game changes: the game, the difference by both readings, and of how many seeds."""

    game: Choice
    gain: Evidence
    runs: int


def of(found: pd.DataFrame) -> Page:
    """In tables; found: of `claims.stored`, one choice of inputs."""
    return tables(about(found) for about in (_own_steps, _chosen, _usual, _against_d, _alone))


def guesses(found: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """AUC for sex in %, as `claims.tried`: of the best probe, and of the better of it and D."""
    probe, own = (claims.tried(found, metric) for metric in ("probe_best", "adv_auc"))
    own = own.reindex(index=probe.index, columns=probe.columns)
    return probe, probe.where(probe >= own, own)


def without(game: Choice) -> Choice:
    """The run without a game at the same rate, where lambda and own steps change nothing."""
    return Choice("none", game.males, str(Tuning(lr=Tuning.read(game.tuning).lr)))


def games(found: pd.DataFrame) -> list[Change]:
    """All games that were tried, each against the run without a game at its rate."""
    tried = [Choice(*game) for game in guesses(found)[0] if game[0] != "none"]
    return _changes(found, [(game, without(game)) for game in tried])


def _own_steps(found: pd.DataFrame) -> str:
    some = [one for one in games(found) if Tuning.read(one.game.tuning).own_steps]
    head = "What the game changes, with more steps of D's own, points of AUC for sex"
    return _listed(head, some)


def _chosen(found: pd.DataFrame) -> str:
    """The tunings that F11 and F12 are judged on, against the baseline of F12."""
    known = set(guesses(found)[0])
    pairs = [(c, claims.baseline(found, c.males)) for c in claims.chosen(found)]
    head = (
        "What the game changes, at the tunings that validation rows choose, points of AUC for sex"
    )
    return _listed(head, _changes(found, [pair for pair in pairs if {*pair} <= known]))


def _usual(found: pd.DataFrame) -> str:
    mine = [one for one in games(found) if one.game.tuning == str(USUAL)]
    ends = {f([one.game.males for one in mine]) for f in (min, max)} if mine else set()
    head = f"What the game changes, at the usual tuning ({USUAL.words}), points of AUC for sex"
    return _listed(head, [one for one in mine if one.game.males in ends])


def _against_d(found: pd.DataFrame) -> str:
    probe, own = (claims.tried(found, metric) for metric in ("probe_best", "adv_auc"))
    usual = [Choice(*game) for game in probe if game[0] != "none" and game[2] == str(USUAL)]
    ends = {f([game.males for game in usual]) for f in (min, max)} if usual else set()
    some = [*claims.chosen(found), *(game for game in usual if game.males in ends)]
    both = [game for game in dict.fromkeys(some) if game in probe and game in own]
    pairs: list[Pair] = [(_name(game), probe[game], own[game]) for game in both]
    head = "A fresh probe ahead of the game's own discriminator, points of AUC for sex"
    return table(head, pairs)


def _alone(found: pd.DataFrame) -> str:
    probe, own = (claims.tried(found, metric) for metric in ("probe_best", "adv_auc"))
    pairs: list[Pair] = [
        (users(game[1]), own[game], probe[game])
        for game in probe
        if game[0] == "none" and game[2] == str(USUAL) and game in own
    ]
    half = Settings.probed // 2
    head = (
        "D ahead of the best fresh probe, without a game, points of AUC (probes are fitted to "
        f"{half:,} test rows and judged on {half:,} others, the best is the largest of three AUCs "
        "on those that judge; D has learnt from all training rows)"
    )
    return table(head, pairs)


def _changes(found: pd.DataFrame, pairs: Iterable[tuple[Choice, Choice]]) -> list[Change]:
    """Each game against another run, as far as both are there."""
    readings, out = guesses(found), []
    for game, base in pairs:
        if {game, base} <= set(readings[0]):
            (first, runs), (second, _) = (less(table[game], table[base]) for table in readings)
            ends = min(first.low, second.low), max(first.high, second.high)
            out.append(Change(game, replace(first, low=ends[0], high=ends[1]), runs))
    return out


def _listed(head: str, some: list[Change]) -> str:
    """`table` of changes that are read twice."""
    return lines(head, ((_name(one.game), one.gain, one.runs) for one in some))


def _name(game: Choice) -> str:
    tuning = Tuning.read(game.tuning)
    own = f" ({tuning.words})" * (tuning != USUAL)
    return f"{in_words(game.loss)}, {users(game.males)}{own}"
