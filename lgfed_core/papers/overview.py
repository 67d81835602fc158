"""The whole board at once: each number, contrast and claim, counted, and as HTML."""

import html
import json
import tomllib
from collections.abc import Mapping

import pandas as pd

from lgfed_core.evidence import answers, records, report, verdict
from lgfed_core.evidence.display import Page, number, opened
from lgfed_core.evidence.printed import METRICS, PAPERS, Table
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.evidence.seed_steps import marked
from lgfed_core.paths import PAPER

from .printed import TABLES

KINDS = {  # from the best known to the least: how verdicts begin; of several the longest fits
    "holds": (verdict.REPRODUCED, verdict.CONFIRMED, answers.HOLDS),
    "holds in part": (answers.IN_PART,),
    "fails": (verdict.DIFFERS, verdict.REFUTED, answers.FAILS),
    "undecided": (verdict.INCONCLUSIVE, verdict.SUGGESTED, verdict.UNREACHABLE, answers.OPEN),
    "on other data": (verdict.STAND_IN,),
    "not yet run": (verdict.NOT_RUN,),
}


def cells() -> pd.DataFrame:
    """Every measured number that is printed, under each protocol at its own selection.

    Columns as of `report.table`, and ``paper_name``, ``table``, ``kind`` (of `KINDS`).
    """
    found, rows = [], records.load()
    for name, spec in TABLES.items():
        lines = report.measured(spec, report.table(spec, rows=rows))
        found.append(lines.assign(paper_name=PAPERS[spec.paper], table=name))
    return _with_kind(pd.concat(found, ignore_index=True))


def contrasts() -> pd.DataFrame:
    """Every contrast that a table supports and its print decides, as of `report.contrasts`."""
    lines = [
        report.contrasts(spec).assign(paper_name=PAPERS[spec.paper], table=name)
        for name, spec in TABLES.items()
        if spec.contrasts
    ]
    return _with_kind(pd.concat(lines, ignore_index=True)).dropna(subset="kind")


def claims(board: pd.DataFrame) -> pd.DataFrame:
    """The claims of `board.board`, with their kind: on several data sets that of the first; those
    on stand-in data alone are by themselves."""
    lines = board.rename(columns={"paper": "paper_name"})
    first = lines["verdict"].str.replace(r"^\w[\w -]*: ", "", regex=True)
    aside = [all("stand-in data" in one for one in said.split("; ")) for said in lines["verdict"]]
    first = first.mask(pd.Series(aside, lines.index), verdict.STAND_IN)
    return lines.assign(kind=_with_kind(lines.assign(verdict=first))["kind"])


def shares(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How many of each kind: a line for each paper and part, columns `KINDS`; parts: words ->
    lines with ``kind``."""
    counts = {
        f"{paper}: {words}": lines.loc[lines["paper_name"] == paper, "kind"].value_counts()
        for words, lines in parts.items()
        for paper in dict.fromkeys(lines["paper_name"])
    }
    table = pd.DataFrame(counts).T.reindex(columns=list(KINDS)).fillna(0)
    return table.loc[sorted(table.index, key=lambda name: name.split(":")[0], reverse=True)]


def filters() -> Page:
    """Where book/_static/filters.js puts the choices of paper, verdict and protocol; it shows and
    hides what lies in elements of class ``judged``. Nothing is seen here without it."""
    protocols = {name: name.replace("_", " ") for name in PROTOCOLS}
    choices = json.dumps({"papers": PAPERS, "kinds": KINDS, "protocols": protocols})
    return Page(f"<div id='verdict-filters' data-choices='{html.escape(choices)}'></div>")


def judged(paper: str, title: str, table: str) -> Page:
    """A list that `filters` apply to; paper: key of `PAPERS`, table: HTML."""
    head = f"<p><strong>{html.escape(f'{PAPERS[paper]}, {title}')}</strong></p>"
    return Page(f'<section class="judged paper-{paper}">{head}{table}</section>')


def contrasted(found: pd.DataFrame, spec: Table) -> str:
    """Contrasts of one table as an HTML table; ours opens on its runs, and beside a verdict stands
    the erratum that is behind it. found: of `contrasts`."""
    names = ("setting", "contrast", "metric", "printed", "ours", "95 %", "verdict")
    rows = []
    for line in found.to_dict("records"):
        words = [line["setting"], line["contrast"], METRICS.get(line["metric"], line["metric"])]
        ours = f"{number(line['ours'], '+')} ({marked(line['seeds'], line['lost'])})"
        interval = " to ".join(number(line[end], "+") for end in ("low", "high"))
        tds = [*map(html.escape, words), number(line["printed"], "+"), opened(ours, line["origin"])]
        released = spec.headline[0] == "as_released"
        behind = errata_beside(spec.name, line["metric"], line["contrast"], released)
        said = "; ".join([line["verdict"], *behind])
        tds += [interval, html.escape(said, quote=False)]
        pairs = zip(names, tds, strict=True)
        rows.append("".join(f'<td data-name="{name}">{td}</td>' for name, td in pairs))
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div style="overflow-x:auto"><table class="lgfed lines"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def artefacts() -> list[str]:
    """What comes from released code or from the measuring, and not from a method, each in a line:
    those errata of data/paper/errata.toml that say so."""
    return [one["moves"] for one in _errata() if one.get("artefact")]


def errata_beside(table: str, metric: str, contrast: str, released: bool) -> list[str]:
    """What is to be said beside a ``contrast`` ("row - row") of a printed table, each in a line.

    released: whether it is one as released, which alone an artefact can be behind.
    """
    less = contrast.partition(" - ")[2]
    here = {"table": table, "metric": metric, "less": less}
    return [
        one.get("aside") or f"an artefact: {one['moves']}"
        for one in _errata()
        if (released or not one.get("artefact"))
        and any(all(case.get(n, v) == v for n, v in here.items()) for case in numbers_behind(one))
    ]


def numbers_behind(erratum: dict) -> list[dict]:
    """The printed numbers that an erratum is behind, each with its table and what narrows it."""
    found = erratum.get("behind", [])
    return found if isinstance(found, list) else [found]


def _errata() -> list[dict]:
    return tomllib.loads((PAPER / "errata.toml").read_text(encoding="utf-8"))["erratum"]


def _with_kind(lines: pd.DataFrame) -> pd.DataFrame:
    def of(said: str) -> str | None:
        known = [(len(w), kind) for kind, some in KINDS.items() for w in some if said.startswith(w)]
        return max(known)[1] if known else None

    return lines.assign(kind=lines["verdict"].map(of))
