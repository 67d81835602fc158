"""The whole board at once: what kind of verdict a line has, lists that can be filtered, errata."""

import html
import json
import tomllib
from typing import Any

import pandas as pd

from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.display import Page, folded
from lgfed_core.evidence.printed import PAPERS
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.paths import PAPER

KINDS = {  # from the best known to the least: how verdicts begin; of several the longest fits
    "holds": (verdict.REPRODUCED, verdict.CONFIRMED, answers.HOLDS),
    "holds in part": (answers.IN_PART,),
    "fails": (verdict.DIFFERS, verdict.REFUTED, answers.FAILS),
    "undecided": (verdict.INCONCLUSIVE, verdict.SUGGESTED, verdict.UNREACHABLE, answers.OPEN),
    "on other data": (verdict.STAND_IN,),
    "not yet run": (verdict.NOT_RUN,),
}


def claims(board: pd.DataFrame) -> pd.DataFrame:
    """The claims of `board.board`, with their kind: on several data sets that of the first; those
    on stand-in data alone are by themselves."""
    lines = board.rename(columns={"paper": "paper_name"})
    first = lines["verdict"].str.replace(r"^\w[\w -]*: ", "", regex=True)
    aside = [all("stand-in data" in one for one in said.split("; ")) for said in lines["verdict"]]
    first = first.mask(pd.Series(aside, lines.index), verdict.STAND_IN)
    return lines.assign(kind=with_kind(lines.assign(verdict=first))["kind"])


def filters() -> Page:
    """Where book/_static/filters.js puts the choices of paper, verdict and protocol; it shows and
    hides lines in lists of class ``judged``, and unfolds them where a verdict is asked for. Nothing
    is seen here without it."""
    protocols = {name: name.replace("_", " ") for name in PROTOCOLS}
    choices = json.dumps({"papers": PAPERS, "kinds": KINDS, "protocols": protocols})
    return Page(f"<div id='verdict-filters' data-choices='{html.escape(choices)}'></div>")


def judged(paper: str, title: str, verdicts: pd.Series, table: str) -> Page:
    """A folded list that `filters` apply to, its verdicts counted by kind in its title.

    paper: key of `PAPERS`; verdicts: one of each line or cell that is counted; table: HTML.
    """
    many = with_kind(verdicts.to_frame("verdict"))["kind"].value_counts()
    counts = ", ".join(f"{kind} {many[kind]}" for kind in KINDS if kind in many)
    head = ": ".join(filter(None, [f"{PAPERS[paper]}, {title}", counts]))
    return folded(head, table, f"judged paper-{paper}")


def errata() -> list[dict[str, Any]]:
    """Those of data/paper/errata.toml. ``artefact`` marks what comes from released code or from the
    measuring, and not from a method; ``behind`` the printed numbers that one explains."""
    return tomllib.loads((PAPER / "errata.toml").read_text(encoding="utf-8"))["erratum"]


def numbers_behind(erratum: dict) -> list[dict]:
    """The printed numbers that an erratum is behind, each with its table and what narrows it."""
    found = erratum.get("behind", [])
    return found if isinstance(found, list) else [found]


def with_kind(lines: pd.DataFrame) -> pd.DataFrame:
    """``lines`` with the ``kind`` of each verdict, one of `KINDS`; None of a verdict of none."""

    def of(said: str) -> str | None:
        known = [(len(w), kind) for kind, some in KINDS.items() for w in some if said.startswith(w)]
        return max(known)[1] if known else None

    return lines.assign(kind=lines["verdict"].map(of))
