"""What can be run of FADE on digits: Figure 2 and opting out at full length, and what is beside."""

from collections.abc import Iterator
from typing import Any

from lgfed_core.papers.parts import Piece

from .settings import CENTRAL, OPT_OUT, STATISTICS, TABLE, Settings

ENDS = (0.05, 0.5, 0.95)  # the probabilities that claims are about
SHORT = 500  # rounds of recorded runs from which the time of longer ones is told
NOTHING: dict[str, Any] = dict(losses=(), opt_outs=(), statistics=(), central=False)


def of(experiment: str, protocol: str) -> list[Piece]:
    """By direction: Figure 2's middle and ends, and every rate of opting out. Aside stand other
    running statistics and the central game, which no claim is about."""
    full, found = Settings(), []
    for direction in full.directions:
        for name, changes, ids, aside in _each(full):
            ids = dict(table=TABLE, direction=direction) | ids
            one = dict(directions=(direction,)) | NOTHING | changes
            games = (f"{direction}:losses",) if name.startswith("opt_out") else ()
            found.append(
                Piece(
                    *(experiment, protocol, f"{direction}:{name}"),
                    changes=tuple(one.items()),
                    cell=tuple((ids | dict(rounds=full.rounds)).items()),
                    after=(f"{direction}:pretraining", *games),
                    like=tuple((ids | dict(rounds=SHORT, scale="short")).items()),
                    share=full.rounds / SHORT,
                    aside=aside,
                )
            )
    return found


def _each(full: Settings) -> Iterator[tuple[str, dict, dict, bool]]:
    """(part, what picks it, ids of its rows, whether it is aside) within a direction."""
    games = dict(losses=full.losses, probabilities=ENDS)
    yield "losses", games, dict(loss=full.losses[-1]), False  # both train together
    for rate in full.opt_outs:
        ids = dict(table=OPT_OUT, opt_out=rate)
        yield f"opt_out:{rate:g}", games | dict(opt_outs=(rate,)), ids, False
    for kind in full.statistics:
        ids = dict(table=STATISTICS, statistics=kind)
        lanes = dict(probabilities=ENDS, statistics=(kind,))
        yield f"statistics:{kind}", lanes, ids, True
    yield CENTRAL, dict(central=True), dict(loss=CENTRAL, statistics=""), True
