"""Every printed table of the papers, and what ``python -m lgfed_core report`` says of them."""

from lgfed_core.evidence import report, scoreboard
from lgfed_core.evidence.printed import Table

from . import command_checks
from .cgau import printed as cgau
from .fade import printed as fade
from .lgfedavg import printed as lgfedavg

TABLES: dict[str, Table] = lgfedavg.TABLES | cgau.TABLES | fade.TABLES  # by file in data/paper


def printout(paper: str | None = None, front: bool = False) -> str:
    """The tables of a paper (of all when None) and the counts; ``front`` renews answers
    and figures on all pages, and says no more unless a paper is named.

    Raises ResultsError for an unknown paper.
    """
    command_checks.paper(paper)
    out = []
    if front:
        from .front import renew  # what claims import takes seconds

        out += [f"renewed {path}" for path in renew()]
    if paper or not front:
        out.append(report.printout(t for t in TABLES.values() if paper in (None, t.paper)))
        out.append("Printed numbers, each once, at the protocol they stand for:\n")
        out.append(scoreboard.scoreboard(TABLES.values()).to_string(index=False))
    return "\n".join(out)
