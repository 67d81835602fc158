"""What a piece trains, and how far its checkpoints have come; only their heads are read."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from lgfed_core.engine import CPU
from lgfed_core.papers import experiments
from lgfed_core.papers.parts import Part, Piece


@cache
def settings(piece: Piece) -> Any:
    """Those of a run that makes one piece, at paper scale."""
    known = experiments.find(piece.experiment)
    return known.settings("paper", piece.protocol, **dict(piece.changes))


def folder(piece: Piece, seed: int) -> Path:
    """Of the checkpoints of that run."""
    return experiments.find(piece.experiment).folder(settings(piece), [seed])


def parts(piece: Piece, seed: int) -> list[Part]:
    """Those of the run that makes a piece: its own and what they go on from."""
    return list(experiments.find(piece.experiment).parts(settings(piece), [seed], CPU))


def left(piece: Piece, seed: int, starts: Iterable[Piece] = ()) -> float:
    """The share of its rounds, without those of its ``starts``, that a piece has still to train."""
    trained = [part for part in parts(piece, seed) if part.rounds]
    if all(part.left == 1 for part in trained):
        return 1.0
    others = {part.name for start in starts for part in parts(start, seed)}
    lengths = {part: part.rounds or 0 for part in trained if part.name not in others}
    rounds = sum(lengths.values())
    return sum(part.left * lengths[part] for part in lengths) / rounds if rounds else 1.0
