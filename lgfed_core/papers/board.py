"""Every claim of the papers: what stored runs say of it, where, and what runs them again.

Claims are those of data/paper/claims.csv. A verdict is the one by setting (`evidence.answers`),
from runs at paper scale and as described; beside it stands the strict one, of its own page; of
what is judged live, as it came out when the page was last told to keep it (`live_claims`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import records, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Line
from lgfed_core.evidence.display import opened
from lgfed_core.evidence.printed import PAPERS, Table
from lgfed_core.evidence.report import origin
from lgfed_core.evidence.rows import plain
from lgfed_core.evidence.seed_steps import standing
from lgfed_core.paths import PAPER

from . import commands, experiments
from .cgau.audio import claims as audio
from .cgau.cifar10 import claims as cifar10
from .cgau.xor import claims as xor
from .fade.digits import claims as digits
from .fade.impairment import claims as impairment
from .fade.income import claims as income
from .fade.objects import claims as objects
from .fade.theory import claims as fade_theory
from .lgfedavg import claims as accuracies
from .lgfedavg.fairness import claims as fairness
from .lgfedavg.mood import claims as mood
from .lgfedavg.rotated import claims as rotated
from .lgfedavg.theory import claims as theory
from .lgfedavg.vqa import claims as vqa
from .parts import Piece, line_of
from .questions import answered

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


def told() -> dict[str, Told]:
    """Every claim by setting, with its answer, by `answers.key`, in the order of the pages."""
    return {name: one for page in STORED for name, one in page.told().items()}


def board(paper: Path = PAPER) -> pd.DataFrame:
    """Columns paper, claim (in words), question, answer, verdict, strict (by the joint rule that
    was fixed before the runs) and page, by id; of a claim on two data sets both.

    Raises ResultsError where the list of claims is missing.
    """
    path = paper / "claims.csv"
    if not path.exists():
        raise ResultsError(f"{path} is missing; it holds the papers' claims and is part of git")
    out = pd.read_csv(path, index_col="id")[["paper", "claim"]]
    by_id: dict[str, list[Told]] = {}
    for one in told().values():
        by_id.setdefault(one.claim.id, []).append(one)
    strict = verdicts()
    return out.assign(
        paper=out["paper"].map(PAPERS),
        question=[by_id[id][0].claim.question for id in out.index],
        answer=[_each(by_id[id], answered) for id in out.index],
        verdict=[
            _each(by_id[id], lambda one: ", ".join([one.words, *one.tags])) for id in out.index
        ],
        strict=[strict.get(id, verdict.NOT_RUN) for id in out.index],
        page=[by_id[id][0].claim.page for id in out.index],
    )


def _each(some: Sequence[Told], words: Callable[[Told], str]) -> str:
    """The words of one, or of several each with its data."""
    if len(some) == 1:
        return words(some[0])
    return "; ".join(f"{one.claim.where}: {words(one)}" for one in some)


def verdicts() -> dict[str, str]:
    """The strict verdict on every claim, in words; of several data sets, on each."""
    found: dict[str, dict[str, str]] = {}
    for page in STORED:
        lines = page.from_stored()
        for claim in page.CLAIMS:
            line = lines.loc[claim.id] if claim.id in lines.index else None
            ran = line is not None and line["ran"] > 0
            said = f"{line['said']}, {_runs(claim, line)}" if ran else verdict.NOT_RUN
            found.setdefault(claim.id, {})[claim.where] = said
    return {
        id: "; ".join(f"{said} ({where})" if where else said for where, said in some.items())
        if {*some.values()} != {verdict.NOT_RUN}
        else verdict.NOT_RUN
        for id, some in found.items()
    }


def _runs(claim: Claim, line: pd.Series) -> str:
    """On how many runs a verdict stands, in words; one without chance in it needs none."""
    if not claim.live:
        return standing(line["runs"])
    return "exactly" if line["low"] == line["high"] else f"on {line['runs']} live runs"


def markdown(table: pd.DataFrame, origins: Mapping[str, tuple[str, Sequence[str]]]) -> str:
    """``table`` of `board` as Markdown: the question with the paper's words, the answer, the
    verdict, and in small letters the strict one; a verdict links to the claim's page, and opens on
    its runs where ``origins`` (of `of_claims`) know them."""
    lines = ["| | question, and what the paper says | answer | verdict |", "|---|---|---|---|"]
    for claim, row in table.iterrows():
        said = f"[{row['verdict']}]({row['page']}.ipynb) <small>{row['strict']}</small>"
        if claim in origins:
            said += opened("its runs", *origins[claim], markdown=True)
        asked = f"{row['question']} <small>{row['claim']}</small>"
        lines.append(f'| <span id="{claim}"></span>{claim} | {asked} | {row["answer"]} | {said} |')
    return "\n".join(lines)


def of_claims() -> dict[str, tuple[str, list[str]]]:
    """By id: the origin of the runs that a claim compares, and the commands that make them.

    Only of claims that name the lines they compare, and of those judged live; of these the page.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for page in STORED:
        lines = page.from_stored()
        for claim in (c for c in page.CLAIMS if c.id in lines.index and lines.loc[c.id, "ran"]):
            own = Line(claim.page.replace("/", "."), (("claim", claim.id),))
            of = (own,) if claim.live else lines.loc[claim.id, "of"]
            rows = pd.concat([_rows(line) for line in of]) if of else pd.DataFrame()
            if len(rows):
                again = [f"python book/build.py --only {claim.page} --scale paper --keep"]
                again = again if claim.live else list(_commands(of, len(set(rows["seed"]))))
                found[claim.id] = origin(rows), again
    return found


def _rows(line: Line) -> pd.DataFrame:
    """All of a line, at paper scale or shortened, and as described where there are such."""
    rows = records.select(line.experiment, scale=("paper", "short"), **dict(line.ids))
    described = rows[rows["protocol"] == "as_described"]
    return described if len(described) else rows


def _commands(of: Iterable[Line], seeds: int) -> Iterable[str]:
    for name in dict.fromkeys(line.experiment for line in of):
        experiment = experiments.find(name)
        wanted = [set(line.ids) for line in of if line.experiment == name]
        pieces = [
            piece
            for piece in experiment.pieces("as_described")
            if any(ids <= {(key, plain(value)) for key, value in piece.cell} for ids in wanted)
        ]
        for some in commands.grouped(pieces):
            yield commands.again(name, "as_described", experiment.joined(some).items(), seeds)


def with_commands(table: pd.DataFrame, spec: Table) -> pd.DataFrame:
    """``table`` of `report.table` with a column ``command``; "" where a run makes whole tables."""
    pieces = {protocol: _pieces(spec, protocol) for protocol in table["protocol"].unique()}
    said = []
    for line in table.to_dict("records"):
        piece = pieces[line["protocol"]].get(tuple(plain(line[name]) for name in spec.ids))
        own = piece and (piece.experiment, piece.protocol, piece.changes, int(line["seeds"]))
        said.append(commands.again(*own) if own else "")
    return table.assign(command=said)


def _pieces(spec: Table, protocol: str) -> dict[tuple[str, ...], Piece]:
    """The piece that leaves a line, by the line's ids."""
    found: dict[tuple[str, ...], Piece] = {}
    for experiment in map(experiments.find, spec.experiments):
        for piece in experiment.pieces(protocol) if protocol in experiment.protocols else ():
            if line := line_of(piece, spec):
                found.setdefault(line, piece)
    return found
