"""Where a verdict comes from: seeds, devices, commits, time; what runs a claim or a cell again."""

from collections.abc import Iterable

import pandas as pd

from lgfed_core.evidence import records
from lgfed_core.evidence.claims import Line
from lgfed_core.evidence.printed import Table
from lgfed_core.evidence.report import origin
from lgfed_core.evidence.rows import plain

from . import commands, experiments
from .board import STORED
from .parts import Piece, line_of


def of_claims() -> dict[str, tuple[str, list[str]]]:
    """By id: the origin of the runs that a claim compares, and the commands that make them.

    Only of claims that name the lines they compare, and of those judged live; of these the page.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for page in STORED:
        lines = page.from_stored()
        for claim in (c for c in page.CLAIMS if c.id in lines.index and lines.loc[c.id, "ran"]):
            name = claim.page.replace("/", ".")
            of = (Line(name, (("claim", claim.id),)),) if claim.live else lines.loc[claim.id, "of"]
            rows = pd.concat([_rows(line) for line in of]) if of else pd.DataFrame()
            if len(rows):
                again = _commands(of, len(set(rows["seed"])))
                found[claim.id] = origin(rows), [_live(claim.page)] if claim.live else list(again)
    return found


def _rows(line: Line) -> pd.DataFrame:
    """All of a line, at paper scale or shortened, and as described where there are such."""
    rows = records.select(line.experiment, scale=("paper", "short"), **dict(line.ids))
    described = rows[rows["protocol"] == "as_described"]
    return described if len(described) else rows


def _commands(of: Iterable[Line], seeds: int) -> Iterable[str]:
    for name in dict.fromkeys(line.experiment for line in of):
        if name not in experiments.ALL:
            continue
        experiment = experiments.find(name)
        wanted = [set(line.ids) for line in of if line.experiment == name]
        pieces = [
            piece
            for piece in experiment.pieces("as_described")
            if any(ids <= {(key, plain(value)) for key, value in piece.cell} for ids in wanted)
        ]
        for some in commands.grouped(pieces):
            yield commands.again(name, "as_described", experiment.joined(some).items(), seeds)


def _live(page: str) -> str:
    return f"python book/build.py --only {page} --scale paper --keep"


def with_commands(table: pd.DataFrame, spec: Table) -> pd.DataFrame:
    """``table`` of `report.table` with a column ``command``; "" where a run makes whole tables."""
    pieces = {protocol: _pieces(spec, protocol) for protocol in table["protocol"].unique()}
    said = []
    for line in table.to_dict("records"):
        ids = tuple(plain(line[name]) for name in spec.ids)
        piece = pieces[line["protocol"]].get(ids)
        said.append(_command(piece, line) if piece else "")
    return table.assign(command=said)


def _command(piece: Piece, line: dict) -> str:
    return commands.again(piece.experiment, piece.protocol, piece.changes, int(line["seeds"]))


def _pieces(spec: Table, protocol: str) -> dict[tuple[str, ...], Piece]:
    """The piece that leaves a line, by the line's ids."""
    found: dict[tuple[str, ...], Piece] = {}
    for experiment in map(experiments.find, spec.experiments):
        for piece in experiment.pieces(protocol) if protocol in experiment.protocols else ():
            if line := line_of(piece, spec):
                found.setdefault(line, piece)
    return found
