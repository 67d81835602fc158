"""What there is to decide: the papers' printed numbers and claims, each with the runs it needs.

A goal's chance at a number of seeds is that of a verdict there, from the seeds at hand
(`evidence.seed_steps`); a claim's is the share of its open comparisons that come to be told.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lgfed_core.evidence import collapse, comparison, records, report, verdict
from lgfed_core.evidence.answers import ALONE, UNTOLD, Told
from lgfed_core.evidence.claims import Line
from lgfed_core.evidence.comparison import Print
from lgfed_core.evidence.printed import METRICS, Table
from lgfed_core.evidence.rows import PROTOCOLS, plain
from lgfed_core.evidence.seed_steps import STEPS, cell_chance, comparison_chance, next_step
from lgfed_core.papers import board, experiments, printed
from lgfed_core.papers.parts import Piece, line_of

from .ledger import Ledger

TOGETHER = 0.5  # that a comparison of which nothing is known comes to be told
OPEN = verdict.NOT_RUN, verdict.INCONCLUSIVE, verdict.UNREACHABLE  # more seeds may tell it apart


@dataclass(frozen=True)
class Goal:
    """A verdict to be had. name: in words. at: how it stands, by `verdict`.

    pieces: what has to run. chances: by step, of a verdict there; none where it has one already.
    begun: the step that is between its seeds, which is finished whatever its chance.
    """

    name: str
    claim: bool
    at: str
    pieces: frozenset[Piece]
    chances: dict[int, float]
    begun: int = 0


def pieces(only: str = "") -> list[Piece]:
    """Everything that can be run at paper scale, or of one experiment, and may serve a goal."""
    known = [experiments.find(only)] if only else map(experiments.find, experiments.PLACES)
    found = (one.pieces(p) for one in known for p in PROTOCOLS if p in one.protocols)
    return [piece for some in found for piece in some if not piece.aside]


def every(ledger: Ledger) -> list[Goal]:
    """All goals that the pieces of ``ledger`` can serve."""
    rows = records.load()
    cells = (goal for table in printed.TABLES.values() for goal in of_table(table, rows, ledger))
    return [*cells, *of_claims(ledger)]


def of_table(table: Table, rows: pd.DataFrame, ledger: Ledger) -> Iterator[Goal]:
    """The measured numbers of a table, under each protocol at its own selection."""
    if not table.experiments:
        return
    lines = report.table(table, rows=rows)
    if lines["verdict"].str.startswith(verdict.STAND_IN).any():  # never judged
        return
    lines = report.measured(table, lines)
    by_line: dict[tuple, set[Piece]] = {}
    for piece in ledger.pieces:
        if (line := line_of(piece, table)) is not None:
            by_line.setdefault((piece.protocol, line), set()).add(piece)
    for line in lines.itertuples():
        ids = tuple(plain(getattr(line, name)) for name in table.ids)
        served = by_line.get((line.protocol, ids), set()) | by_line.get((line.protocol, ()), set())
        if served:
            where = METRICS.get(line.metric, line.metric), line.protocol.replace("_", " ")
            name = ", ".join([f"{table.title}: {line.row}", *where])
            usual = _usual(lines, line)
            done = _done(served, ledger)
            chances = {n: _cell(table, line, done, n, usual) for n in STEPS}
            open_ = {} if done in STEPS and line.verdict not in OPEN else chances
            yield Goal(name, False, line.verdict, frozenset(served), open_, _begun(done))


def _done(served: Iterable[Piece], ledger: Ledger) -> int:
    """How many seeds all of these have run, with those that diverged."""
    return min(len(ledger.seeds(piece)) for piece in served)


def _usual(lines: pd.DataFrame, line) -> float:
    """The deviation of a run: its own, that of its like, the paper's, or half the margin."""
    like = lines.loc[lines["metric"] == line.metric, "ours_sd"].median()
    return next(v for v in (line.ours_sd, like, line.paper_sd, line.margin / 2) if not np.isnan(v))


def _begun(seeds: int) -> int:
    """The step that so many seeds are on their way to; none after a first look."""
    return 0 if seeds in (0, 1, *STEPS) else next_step(seeds) or 0


def _cell(table: Table, line, done: int, step: int, sd: float) -> float:
    """Its chance at a step, where those of the ``done`` seeds that diverged are lost to it."""
    runs = step - max(0, done - line.seeds)
    if step <= done or runs <= max(1, line.seeds):
        return 0.0
    if line.seeds and np.isnan(line.difference):  # all have collapsed: what if further ones do?
        groups = collapse.groups_of(table, line._asdict())
        if groups is None:
            return 0.0
        said = collapse.compare(groups, np.full(runs, groups.guess))[0].verdict
        return float(said == verdict.DIFFERS)
    return cell_chance(line.difference, sd, line.seeds, runs, *_prints(table, line))


def _prints(table: Table, line) -> list[Print]:
    """What a line is compared with; where its deviation is pooled, both ends of what that says."""
    if groups := collapse.groups_of(table, line._asdict()):
        return [Print.of(line.margin, groups.sd, groups.others)]
    if table.pooled == 1:
        return [Print.of(line.margin, line.paper_sd, table.runs)]
    least = next(m.least(line.paper) for m in table.metrics if m.name == line.metric)
    sds = line.paper_sd, line.paper_sd / np.sqrt(table.pooled)
    return [Print.of(comparison.margin_of(sd, least), sd, table.runs) for sd in sds]


def of_claims(ledger: Ledger) -> Iterator[Goal]:
    """The claims that stored runs decide, as described, by what is open of each (`answers`)."""
    described = [piece for piece in ledger.pieces if piece.protocol == "as_described"]
    facts = {piece: {(id, plain(value)) for id, value in piece.cell} for piece in described}
    for page in board.STORED:
        for told in page.told().values():
            claim = told.claim
            if claim.live or told.lines.empty:
                continue
            left = told.lines[told.lines["outcome"] == UNTOLD]
            of = list(left["of"])  # of comparisons; nothing is left out where one does not say
            of = of if of and all(of) else list(told.lines["of"])
            wanted = list(dict.fromkeys(line for some in of for line in some))
            wanted = wanted or [Line(claim.page.replace("/", "."), ())]
            served = {
                piece
                for piece in described
                for of in wanted
                if of.experiment == piece.experiment and set(of.ids) <= facts[piece]
            }
            if served:
                done = _done(served, ledger)
                chances = {n: _claim(told, done, n) for n in STEPS if n > done}
                decided = not told.counts[2] and done in STEPS
                found = {} if decided or told.tags else chances
                name, at = f"{claim.id}: {claim.words}", ", ".join([told.words, *told.tags])
                yield Goal(name, True, at, frozenset(served), found, _begun(done))


def _claim(told: Told, done: int, step: int) -> float:
    """The share of a claim's open comparisons that so many seeds are expected to tell, for it or
    against it, at the level that Holm asks of the first of them; by Student's t, so that what a
    family shares is left out."""
    left = told.lines[told.lines["outcome"] == UNTOLD]
    level = verdict.ALPHA / max(1, told.counts[2])
    ran = left[left["runs"] > 1] if done > 1 else left.iloc[:0]
    sides = [
        comparison_chance(p, done, step, level) for name in ALONE for p in ran[name]
    ]  # of a comparison either may come out, not both
    lacking = told.counts[2] - len(ran)
    return min(1.0, (sum(sides) + TOGETHER * lacking) / max(1, told.counts[2]))
