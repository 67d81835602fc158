"""What z still tells about sex, in words, from rows; beside each what would make it false.

A fresh probe learns from few rows, D from all training rows: without a game D may guess better than
the best probe, with one it is driven off. So what a game changes is read twice: by the best probe,
and by the better of that probe and D, seed by seed. A word is said where both readings have it; the
estimate is that of the probe, and the interval spans both.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.verdict import NOT_RUN, Evidence
from lgfed_core.papers.in_words import (
    ALONE,
    NESTED,
    Pair,
    bullets,
    by_word,
    kind,
    less,
    seeds,
    sentence,
)

from . import claims
from .claims import Choice
from .settings import Settings, Tuning, in_words, users

WORDS = ("higher", "lower", "not shown to be higher or lower")
USUAL = Tuning(lr=Settings.lr)


class Change(NamedTuple):
    """What a game changes: the game, the difference by both readings, and of how many seeds."""

    game: Choice
    gain: Evidence
    runs: int


def of(found: pd.DataFrame) -> str:
    """Sentences in Markdown; found: of `claims.stored`, one choice of inputs."""
    return bullets(about(found) for about in (_own_steps, _chosen, _usual, _against_d, _alone))


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


def finding(found: pd.DataFrame) -> str:
    """In how many of the games that were tried z tells less about sex, with steps of D's own and
    without; "" before the first."""
    groups: dict[tuple[int, float], list[Change]] = {}
    for one in games(found):
        own = Tuning.read(one.game.tuning).own_steps
        groups.setdefault((own, one.game.males if own else 0.0), []).append(one)
    parts = [
        f"with {users(males)} and {own} more steps of D a batch {_many(some)} "
        f"({_sizes(found, some)})"
        for (own, males), some in sorted(groups.items(), key=lambda item: (-item[0][0], item[0][1]))
        if own
    ]
    parts += [f"without such steps {_many(some)}" for (own, _), some in groups.items() if not own]
    # False if an interval moved to the other side of zero, or came to hold it.
    head = (
        "**Where z tells less about sex than without the game**, by a fresh probe and by D (least "
        "and most of the games, and between which ends their intervals lie)"
    )
    return "\n".join([f"{head}:", *(f"{NESTED}- {part}." for part in parts)]) if parts else ""


def _many(some: list[Change]) -> str:
    ways = [_way(one) for one in some]
    more = f" (higher in {ways.count(WORDS[0])})" * (WORDS[0] in ways)
    return f"in {ways.count(WORDS[1])} of {len(some)} games{more}"


def _sizes(found: pd.DataFrame, some: list[Change]) -> str:
    """The least and the most that some games change, of AUC, accuracy and delta EO."""
    words = [f"AUC {_span([one.gain for one in some])} points"]
    for metric, name, digits in (("acc", "accuracy", 1), ("delta_eo", "delta EO", 3)):
        table = claims.tried(found, metric)
        known = [one.game for one in some if {one.game, without(one.game)} <= set(table)]
        gains = [less(table[game], table[without(game)])[0] for game in known]
        if gains:
            words.append(f"{name} {_span(gains, digits)}")
    return f"{', '.join(words)}, {seeds(min(one.runs for one in some))}"


def _span(gains: list[Evidence], digits: int = 1) -> str:
    """ "-24.0 to -22.0 [-26.9, -18.6]": estimates, and the ends of all intervals (of one run
    there are none)."""
    sizes = [gain.estimate for gain in gains]
    least, most = (f"{end(sizes):+.{digits}f}" for end in (min, max))
    low, high = np.min([gain.low for gain in gains]), np.max([gain.high for gain in gains])
    inside = "" if np.isnan(low) else f" [{low:+.{digits}f}, {high:+.{digits}f}]"
    return f"{least} to {most}{inside}"


def _own_steps(found: pd.DataFrame) -> str:
    some = [one for one in games(found) if Tuning.read(one.game.tuning).own_steps]
    # False if an interval moved to the other side of zero, or came to hold it.
    head = "**What tells sex from z, with steps of D's own less no game**, in points of AUC"
    return _listed(head, some)


def _chosen(found: pd.DataFrame) -> str:
    """The tunings that F11 and F12 are judged on, against the baseline of F12."""
    known = set(guesses(found)[0])
    pairs = [(c, claims.baseline(found, c.males)) for c in claims.chosen(found)]
    # False if an interval moved to the other side of zero, or came to hold it.
    head = (
        "**What tells sex from z, at the tunings that validation rows choose** (those of F11 and "
        "F12) less no game, in points of AUC"
    )
    return _listed(head, _changes(found, [pair for pair in pairs if {*pair} <= known]))


def _usual(found: pd.DataFrame) -> str:
    mine = [one for one in games(found) if one.game.tuning == str(USUAL)]
    ends = {f([one.game.males for one in mine]) for f in (min, max)} if mine else set()
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**What tells sex from z, at the usual tuning** ({USUAL.words}) less no game, in points"
    return _listed(f"{head} of AUC", [one for one in mine if one.game.males in ends])


def _against_d(found: pd.DataFrame) -> str:
    probe, own = (claims.tried(found, metric) for metric in ("probe_best", "adv_auc"))
    usual = [Choice(*game) for game in probe if game[0] != "none" and game[2] == str(USUAL)]
    ends = {f([game.males for game in usual]) for f in (min, max)} if usual else set()
    some = [*claims.chosen(found), *(game for game in usual if game.males in ends)]
    both = [game for game in dict.fromkeys(some) if game in probe and game in own]
    pairs: list[Pair] = [(_name(game), probe[game], own[game]) for game in both]
    # False if a fresh probe found no more than the discriminator that took part.
    head = "**A fresh probe less the game's own discriminator**, at chosen and usual tunings, in"
    return sentence(f"{head} points of AUC", pairs, WORDS)


def _alone(found: pd.DataFrame) -> str:
    probe, own = (claims.tried(found, metric) for metric in ("probe_best", "adv_auc"))
    pairs: list[Pair] = [
        (users(game[1]), own[game], probe[game])
        for game in probe
        if game[0] == "none" and game[2] == str(USUAL) and game in own
    ]
    half = Settings.probed // 2
    # False if the best of three fresh probes guessed as well as D, or better.
    head = (
        "**D less the best fresh probe, without a game**, in points of AUC (probes are fitted to "
        f"{half:,} test rows and judged on {half:,} others, the best is the largest of three AUCs "
        "on those that judge; D has learnt from all training rows)"
    )
    return sentence(head, pairs, WORDS)


def _changes(found: pd.DataFrame, pairs: Iterable[tuple[Choice, Choice]]) -> list[Change]:
    """Each game against another run, as far as both are there."""
    readings, out = guesses(found), []
    for game, base in pairs:
        if {game, base} <= set(readings[0]):
            (first, runs), (second, _) = (less(table[game], table[base]) for table in readings)
            ends = min(first.low, second.low), max(first.high, second.high)
            out.append(Change(game, replace(first, low=ends[0], high=ends[1]), runs))
    return out


def _way(one: Change) -> str:
    return kind(one.gain, WORDS) if one.runs > 1 else ALONE


def _listed(head: str, some: list[Change]) -> str:
    """`sentence` of changes that are read twice."""
    found = [(_way(x), _name(x.game), said(x.gain, x.runs)) for x in some]
    return by_word(head, found, WORDS) if found else f"{head}: {NOT_RUN}."


def _name(game: Choice) -> str:
    tuning = Tuning.read(game.tuning)
    own = f" ({tuning.words})" * (tuning != USUAL)
    return f"{in_words(game.loss)}, {users(game.males)}{own}"
