"""Every claim and every printed table of the papers: what stored runs say of them, and where.

Claims are those of data/paper/claims.csv. A verdict is the one of the claim's own page, from runs
at paper scale and as described, after Holm's correction over the claims which are judged together;
of what is judged live, as it came out when the page was last told to keep it (`live`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import report, scoreboard, verdict
from lgfed_core.evidence.claims import Claim
from lgfed_core.evidence.display import opened
from lgfed_core.evidence.printed import PAPERS, Table
from lgfed_core.evidence.steps import standing
from lgfed_core.paths import PAPER

from . import artefacts
from .cgau import printed as cgau
from .cgau.audio import claims as audio
from .cgau.cifar10 import claims as cifar10
from .cgau.xor import claims as xor
from .fade import printed as fade
from .fade.digits import claims as digits
from .fade.impairment import claims as impairment
from .fade.income import claims as income
from .fade.objects import claims as objects
from .fade.theory import claims as fade_theory
from .in_short import decided
from .lgfedavg import claims as accuracies, printed as lgfedavg
from .lgfedavg.fairness import claims as fairness
from .lgfedavg.mood import claims as mood
from .lgfedavg.rotated import claims as rotated
from .lgfedavg.theory import claims as theory
from .lgfedavg.vqa import claims as vqa

TABLES: dict[str, Table] = lgfedavg.TABLES | cgau.TABLES | fade.TABLES
STORED = (  # judged on stored runs, together
    accuracies,
    rotated,
    vqa,
    mood,
    fairness,
    audio,
    cifar10,
    digits,
    objects,
    income,
    impairment,
    theory,
    xor,
    fade_theory,
)
CLAIMS: tuple[Claim, ...] = tuple(claim for page in STORED for claim in page.CLAIMS)


def board(paper: Path = PAPER) -> pd.DataFrame:
    """Columns paper, claim (in words), verdict and page ("" where no page does it yet), by id.

    Raises ResultsError where the list of claims is missing.
    """
    path = paper / "claims.csv"
    if not path.exists():
        raise ResultsError(f"{path} is missing; it holds the papers' claims and is part of git")
    out = pd.read_csv(path, index_col="id")[["paper", "claim"]]
    found, pages = verdicts(), {claim.id: claim.page for claim in CLAIMS}
    return out.assign(
        paper=out["paper"].map(PAPERS),
        verdict=[found.get(id, verdict.NOT_RUN) for id in out.index],
        page=[pages.get(id, "") for id in out.index],
    )


def verdicts() -> dict[str, str]:
    """The verdict on every claim that a page judges, in words; of several data sets, on each."""
    found: dict[str, dict[str, str]] = {}
    for page in STORED:
        lines = page.from_stored()
        for claim in page.CLAIMS:
            line = lines.loc[claim.id] if claim.id in lines.index else None
            ran = line is not None and line["ran"] > 0
            said = f"{_where(line)}, {_runs(claim, line)}" if ran else verdict.NOT_RUN
            found.setdefault(claim.id, {})[claim.where] = said
    return {id: _joined(some) for id, some in found.items()}


def _where(line: pd.Series) -> str:
    """The verdict in words; of one that a single comparison refutes, at which."""
    alone = line["said"] == verdict.REFUTED and line["parts"] > 1 and line["at"]
    return f"{line['said']} (at {line['at']})" if alone else line["said"]


def _runs(claim: Claim, line: pd.Series) -> str:
    """On how many runs a verdict stands, in words; one without chance in it needs none."""
    if not claim.live:
        return standing(line["runs"])
    return "exactly" if line["low"] == line["high"] else f"on {line['runs']} live runs"


def _joined(by_data: dict[str, str]) -> str:
    if set(by_data.values()) == {verdict.NOT_RUN}:
        return verdict.NOT_RUN
    return "; ".join(f"{said} ({where})" if where else said for where, said in by_data.items())


_GROUPS = {  # what a verdict begins with -> words over it on the first pages, whether in full
    verdict.CONFIRMED: ("Holds", True),
    verdict.REFUTED: ("Does not hold", True),
    verdict.STAND_IN: (
        "On other data or features than the papers', which these cannot decide",
        False,
    ),
    verdict.INCONCLUSIVE: ("Undecided by the runs so far", False),
    verdict.SUGGESTED: ("Shortened runs that only suggest", False),
    verdict.NOT_RUN: ("Not yet run", False),
}


def in_words(table: pd.DataFrame) -> str:
    """For a reader in a hurry, as Markdown: the largest printed differences that runs decide, for
    and against, table by table, the claims of ``table`` of `board` by verdict, and artefacts."""
    largest = [(spec, said) for spec in TABLES.values() for said in decided(spec)]
    once = {said.partition("*")[2]: (spec, said) for spec, said in largest}
    shown = [f"- {PAPERS[spec.paper]}, {spec.title}: {said}" for spec, said in once.values()]
    head = (
        "Of each table the largest printed difference that our runs reproduce, and the largest "
        "that they do not; in italics ours, with its 95 % interval, the number of seeds in "
        "brackets, and the protocol:"
    )
    head = [head, ""]
    out = [*head, *shown, ""] if shown else []
    letters = ", ".join(f"{letter}: {paper}'s" for letter, paper in _letters(table).items())
    out += [
        f"Of {len(table)} claims ({letters}; each is on the [scoreboard](scoreboard.ipynb)):",
        "",
    ]
    for start, (words, whole) in _GROUPS.items():
        some = table[table["verdict"].str.startswith(start)]
        if some.empty:
            continue
        claims = (
            "; ".join(f"{id} {row['claim']}{_aside(row['verdict'])}" for id, row in some.iterrows())
            if whole
            else ", ".join(some.index)
        )
        out.append(f"- **{words}** ({len(some)}): {claims}.")
    said = artefacts.named()
    out += ["", f"**Artefacts** of released code or of the measuring ({len(said)}): "]
    return "\n".join(out) + "; ".join(said) + "."


def _letters(table: pd.DataFrame) -> dict[str, str]:
    """What claims' names begin with -> the paper."""
    return dict(zip(table.index.str[0], table["paper"], strict=True))


def _aside(said: str) -> str:
    """What limits a verdict: its first remark in brackets, unless that is what was tried."""
    inside = said.partition("(")[2].partition(")")[0]
    effort = inside.startswith("tried") or inside.endswith("settings tried")
    return f" ({inside})" if inside and not effort else ""


def markdown(
    table: pd.DataFrame, origins: Mapping[str, tuple[str, Sequence[str]]] = MappingProxyType({})
) -> str:
    """``table`` of `board` as Markdown; each verdict links to the claim's page, and opens on its
    runs where ``origins`` (of `origins.of_claims`) know them."""
    lines = ["| | claim | verdict |", "|---|---|---|"]
    for claim, row in table.iterrows():
        said = f"[{row['verdict']}]({row['page']}.ipynb)" if row["page"] else row["verdict"]
        if claim in origins:
            said += opened("its runs", *origins[claim], markdown=True)
        lines.append(f"| {claim} | {row['claim']} | {said} |")
    return "\n".join(lines)


def printout(paper: str | None = None, front: bool = False) -> str:
    """The tables of a paper (of all when None) and the counts; ``front`` renews the first pages,
    and says no more unless a paper is named.

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
    """Renew the counts on the first pages, and the figure there once it has runs."""
    changed: Sequence[Path] = scoreboard.update_front_pages(
        TABLES.values(), words=in_words(board())
    )
    if (report.table(TABLES["lgfedavg_v2_table6_mnist"])["seeds"] > 0).any():
        from .lgfedavg.front import front  # matplotlib takes a while

        changed = [*changed, front()]
    return "\n".join(f"renewed {path}" for path in changed) or "front pages are up to date"
