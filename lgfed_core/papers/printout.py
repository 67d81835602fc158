"""What ``python -m lgfed_core report`` says."""

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import report, scoreboard
from lgfed_core.evidence.printed import PAPERS

from .printed import TABLES


def printout(paper: str | None = None, front: bool = False) -> str:
    """The tables of a paper (of all when None) and the counts; ``front`` renews answers
    and figures on all pages, and says no more unless a paper is named.

    Raises ResultsError for an unknown paper.
    """
    if paper not in (None, *PAPERS):
        raise ResultsError(f"no paper is called {paper!r}; there are: {', '.join(PAPERS)}")
    out = [_renewed()] if front else []
    if paper or not front:
        out.append(report.printout(t for t in TABLES.values() if paper in (None, t.paper)))
        out.append("Printed numbers, each once, at the protocol they stand for:\n")
        out.append(scoreboard.scoreboard(TABLES.values()).to_string(index=False))
    return "\n".join(out)


def _renewed() -> str:
    from .front import renew  # what claims import takes seconds

    return "\n".join(f"renewed {path}" for path in renew())
