"""The commands that repeat stored runs, and no others, as people type them."""

import shlex
from collections.abc import Collection, Iterable

import pandas as pd

from lgfed_core.evidence.records import select

from .experiment import Experiment
from .parts import Piece

Change = tuple[str, object]


def of_rows(experiment: Experiment, rows: pd.DataFrame) -> list[str]:
    """The commands that repeat stored ``rows`` of an experiment; *short* rows with fewer rounds
    have their own, and rows that no piece makes have none."""
    found = []
    for protocol in experiment.protocols:
        mine = select(rows, columns=["rounds"], protocol=protocol)
        pieces = experiment.pieces(protocol)
        fewer = select(mine, scale="short")["rounds"].dropna().unique()
        for rounds in (None, *sorted(fewer)):
            some = select(mine, scale="paper" if rounds is None else "short")
            some = some if rounds is None else some[some["rounds"] == rounds]
            seeds = {piece: _seeds(some, piece, rounds is None) for piece in pieces}
            more = () if rounds is None else (("rounds", int(rounds)),)
            for group in grouped((piece for piece in pieces if seeds[piece]), experiment.one_value):
                changes = [*experiment.joined(group).items(), *more]
                most = max(seeds[piece] for piece in group)
                found.append(again(experiment.name, protocol, changes, most, least=1))
    return found


def _seeds(rows: pd.DataFrame, piece: Piece, whole: bool) -> int:
    """How many seeds a piece has among ``rows``; unless ``whole``, with any number of rounds."""
    cell = {name: value for name, value in piece.cell if whole or name != "rounds"}
    return select(rows, **cell)["seed"].nunique()


def grouped(pieces: Iterable[Piece], alone: Collection[str] = frozenset()) -> Iterable[list[Piece]]:
    """Pieces grouped by run: those of one group have the same value of each setting that takes one
    value at a time, or that is one of ``alone``."""
    found: dict[tuple, list[Piece]] = {}
    for piece in pieces:
        single = tuple(
            c for c in piece.changes if c[0] in alone or not isinstance(c[1], tuple | bool)
        )
        found.setdefault(single, []).append(piece)
    return found.values()


def again(
    experiment: str, protocol: str, changes: Iterable[Change], seeds: int, least: int = 3
) -> str:
    """The command for a run with its first ``seeds`` seeds, at least ``least``."""
    changed = " ".join(shlex.quote(chosen([change])) for change in changes)
    last = max(seeds, least) - 1
    return (
        f"python -m lgfed_core run {experiment} --scale paper --protocol {protocol} "
        f"--seeds {f'0-{last}' if last else 0}" + (f" --set {changed}" if changed else "")
    )


def run(experiment: str, protocol: str, changes: Iterable[Change], seeds: tuple[int, ...]) -> str:
    """A run in words: experiment, protocol, what is chosen (as for ``run --set``), seeds."""
    numbers = f"seed{'s' * (len(seeds) > 1)} {text(seeds)}"
    return " ".join(filter(None, [experiment, protocol, chosen(changes), numbers]))


def chosen(changes: Iterable[Change]) -> str:
    """Changed settings as ``run --set`` takes them: "classes=2 starts=1200,1800"."""
    return " ".join(f"{name}={text(value)}" for name, value in changes)


def text(value: object) -> str:
    """One value as ``--set`` and ``--seeds`` take it."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
