"""What has been run and what it cost, of the stored rows, and how far checkpoints have come."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from lgfed_core.engine import CPU
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import plain, texts
from lgfed_core.papers import experiments
from lgfed_core.papers.parts import Part, Piece

UNKNOWN = 3600.0  # seconds of what has nothing to be compared with


class Ledger:
    """Rows at paper scale as they stand now, and shortened ones for what asks for their price;
    device: as rows name the one that will work."""

    def __init__(self, pieces: Iterable[Piece], device: str = ""):
        self.pieces, self.device = tuple(pieces), device
        names = dict.fromkeys(piece.experiment for piece in self.pieces)
        self._rows = {name: select(name, scale=("paper", "short")) for name in names}
        self.seeds, self.seconds = cache(self._seeds), cache(self._seconds)
        self._has = cache(self._having)

    def _seeds(self, piece: Piece) -> frozenset[int]:
        """The seeds that a piece has rows of (those which diverged among them)."""
        return frozenset(self._of(piece, piece.cell, piece.protocol)["seed"].astype(int))

    def _seconds(self, piece: Piece) -> float:
        """What one seed takes, without what it goes on from: the median of what such pieces took.

        Those of this device count where there are any, otherwise those of its kind (a CPU, a GPU);
        where the same has not run there, what resembles it (`Piece.like`), then either under the
        other protocol, which has its own number of rounds and stops by its own rule. What another
        kind took comes last of all.
        """
        kind = self.device.partition(":")[0]
        for where, protocol in ((k, p) for k in (kind, "") for p in (piece.protocol, "")):
            for ids, share in ((piece.cell, 1.0), (piece.like, piece.share)):
                found = self._of(piece, ids, protocol)
                found = found[found["device"].str.startswith(where)]
                if ids and len(found):
                    here = found[found["device"] == self.device]
                    return share * _typical(here if len(here) else found, whole=not piece.name)
        return UNKNOWN

    def _of(self, piece: Piece, ids, protocol: str) -> pd.DataFrame:
        """Its rows, in the columns that count here."""
        rows = self._rows[piece.experiment]
        fits = pd.Series(True, rows.index)
        asked = dict(scale="paper") | dict(ids) | (dict(protocol=protocol) if protocol else {})
        for column, value in asked.items():
            fits &= self._has(piece.experiment, column, plain(value))
        return rows.loc[fits, ["seed", "seconds", "device"]]

    def _having(self, experiment: str, column: str, text: str) -> pd.Series:
        """Whether a column of each row has this value, by `select`'s rule."""
        rows = self._rows[experiment]
        return texts(rows.get(column, pd.Series("", rows.index))) == text


def _typical(rows: pd.DataFrame, whole: bool) -> float:
    """Seconds of a part, or of all parts of a run together: by seed, then the median."""
    times = rows.drop_duplicates(["seed", "seconds"]).groupby("seed")["seconds"]
    return float((times.sum() if whole else times.median()).median())


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
