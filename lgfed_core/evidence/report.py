"""The papers' tables with our numbers beside them, and the verdicts summed up.

``table`` compares, ``printout`` says it to a terminal, ``scoreboard`` counts, and
``update_front_pages`` writes the counts into the README and the book's first page.

Only runs at paper scale are judged. Each protocol is shown at its own selection (`SELECTION`) and
at the last round; the counts take the protocol that the published numbers stand for.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.files import replacing
from lgfed_core.paths import PAPER, RESULTS, ROOT

from . import printed, records, verdict
from .display import display as display, text
from .printed import PAPERS, Table
from .records import PROTOCOLS, plain

SELECTION = {"as_released": "best_test", "as_described": "best_val"}
FRONT_PAGES = (ROOT / "README.md", ROOT / "book" / "intro.md")
_BEGIN, _END = "<!-- scoreboard -->", "<!-- /scoreboard -->"


def table(
    spec: Table,
    scale: str = "paper",
    protocol: str | None = None,
    *,
    folder: Path = RESULTS,
    paper: Path = PAPER,
    rows: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One line per printed number, protocol (both when None) and selection.

    Columns: the table's ids, row (their words), metric, paper, paper_sd (population, as printed),
    ours, ours_sd (sample), seeds, difference, low, high (95 %), margin, verdict, protocol,
    selection, scale. Parameters sent that follow from a row's budget need no run (seeds is 0).
    Where other data stand in for the paper's, the verdict says so; below paper scale it says that
    nothing is judged. Raises ResultsError for an unknown scale or protocol, and when one seed has
    two values for the same number.

    rows: of `records.load`, where they have been read.
    """
    if scale not in records.SCALES or protocol not in (None, *PROTOCOLS):
        raise ResultsError(f"scale {scale!r} or protocol {protocol!r} is unknown")
    rows = records.load(folder=folder) if rows is None else rows
    return _table(spec, scale, protocol, rows, paper)


def _table(
    spec: Table, scale: str, protocol: str | None, rows: pd.DataFrame, paper: Path
) -> pd.DataFrame:
    found = _runs(spec, rows, scale)
    metrics = {m.name: m for m in spec.metrics}
    lines = []
    for cell in printed.cells(spec, paper).to_dict("records"):
        ids = tuple(plain(cell[c]) for c in spec.ids)
        runs = cell.pop("runs")
        for name in [protocol] if protocol else spec.protocols[::-1]:
            for selection in _selections(spec, name):
                ours, stand_in = found.get((*ids, cell["metric"], name, selection), (_NONE, ""))
                metric, seeds = metrics[cell["metric"]], ours.size
                if not seeds and metric.digit and scale == "paper":
                    ours = _follows(spec, cell)
                against = _compare(cell, runs, ours, metric)
                said = against.verdict
                if ours.size and scale != "paper":
                    said = f"{scale} scale, not judged"
                elif ours.size and stand_in:
                    said = f"{verdict.STAND_IN} ({stand_in})"
                lines.append(
                    cell
                    | {
                        "ours": ours.mean() if ours.size else np.nan,
                        "ours_sd": ours.std(ddof=1) if ours.size > 1 else np.nan,
                        "seeds": seeds,
                        "difference": against.difference,
                        "low": against.low,
                        "high": against.high,
                        "margin": against.margin,
                        "verdict": said,
                        "protocol": name,
                        "selection": selection,
                        "scale": scale,
                    }
                )
    return pd.DataFrame(lines)


def at_hand(spec: Table, *, folder: Path = RESULTS, paper: Path = PAPER) -> pd.DataFrame:
    """`table` at paper scale, with quick-scale lines (not judged) where there is no other."""
    return _at_hand(spec, records.load(folder=folder), paper)


def _at_hand(spec: Table, rows: pd.DataFrame, paper: Path = PAPER) -> pd.DataFrame:
    full, quick = (_table(spec, scale, None, rows, paper) for scale in ("paper", "quick"))
    return full.where(full["ours"].notna() | (quick["seeds"] == 0), quick)


def scoreboard(
    tables: Iterable[Table], folder: Path = RESULTS, paper: Path = PAPER
) -> pd.DataFrame:
    """Printed numbers by paper and verdict, each counted once, at its table's headline protocol.

    Two lines for a paper that also prints numbers which follow from the settings (parameters
    sent). Columns: paper, numbers, printed, reproduced, differs, inconclusive, on stand-in data,
    not yet run.
    """
    rows, lines = records.load(folder=folder), []
    for spec in tables:
        protocol, selection = spec.headline
        cells = _table(spec, "paper", protocol, rows, paper)
        sums = cells["metric"].isin([m.name for m in spec.metrics if m.digit])
        lines.append(cells[cells["selection"] == selection].assign(paper=spec.paper, sums=sums))
    cells = pd.concat(lines)
    stand_in = cells["verdict"].str.startswith(verdict.STAND_IN)
    cells.loc[stand_in, "verdict"] = verdict.STAND_IN
    kinds = [
        verdict.REPRODUCED,
        verdict.DIFFERS,
        verdict.INCONCLUSIVE,
        verdict.STAND_IN,
        verdict.NOT_RUN,
    ]
    return pd.DataFrame(
        {
            "paper": PAPERS[name],
            "numbers": "parameters sent" if sums else "measured",
            "printed": len(group),
            **{kind: int(group["verdict"].eq(kind).sum()) for kind in kinds},
        }
        for (name, sums), group in sorted(
            cells.groupby(["paper", "sums"]), key=lambda g: (list(PAPERS).index(g[0][0]), g[0][1])
        )
    )


def scoreboard_markdown(
    tables: Iterable[Table], folder: Path = RESULTS, paper: Path = PAPER
) -> str:
    """`scoreboard` as a Markdown table; with stand-in data as a column once there are some."""
    counts = scoreboard(tables, folder, paper)
    if not counts[verdict.STAND_IN].any():
        counts = counts.drop(columns=verdict.STAND_IN)
    head, body = counts.columns.tolist(), counts.astype(str).to_numpy().tolist()
    rule = ["---", "---", *["---:"] * (len(head) - 2)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *body])


def update_front_pages(
    tables: Iterable[Table],
    paths: Sequence[Path] = FRONT_PAGES,
    folder: Path = RESULTS,
    paper: Path = PAPER,
) -> list[Path]:
    """Write the counts between the scoreboard marks of each page; the pages that changed.

    Raises ResultsError, before any page is touched, for a page without the two marks.
    """
    fresh = _pages(tables, paths, folder, paper)
    for path, (_, after) in fresh.items():
        with replacing(path) as part:
            part.write_text(after, encoding="utf-8")
    return [path for path, (before, after) in fresh.items() if before != after]


def front_pages_up_to_date(
    tables: Iterable[Table],
    paths: Sequence[Path] = FRONT_PAGES,
    folder: Path = RESULTS,
    paper: Path = PAPER,
) -> bool:
    """Whether `update_front_pages` would change nothing."""
    fresh = _pages(tables, paths, folder, paper)
    return all(before == after for before, after in fresh.values())


def printout(tables: Iterable[Table]) -> str:
    """Each table for a terminal, and the commands that fill it."""
    rows, out = records.load(), []
    for spec in tables:
        out.append(f"== {PAPERS[spec.paper]}, {spec.title} ==\n{spec.note}".strip())
        out.append(f"\n{text(_at_hand(spec, rows))}")
        for experiment in spec.experiments:
            for some in spec.sets:
                out.append(
                    f"fill with: python -m lgfed_core run {experiment} --scale paper "
                    f"--seeds 0-9{some and f' --set {some}'}"
                )
            out.append("")
    return "\n".join(out)


_NONE = np.empty(0)


def _selections(spec: Table, protocol: str) -> list[str]:
    return list(dict.fromkeys([headline(spec, protocol), "last"]))


def headline(spec: Table, protocol: str) -> str:
    """A table that stands for the last round has no other selection."""
    return "last" if spec.headline[1] == "last" else SELECTION[protocol]


def _follows(spec: Table, cell: dict) -> np.ndarray:
    """[1] what the row's budget alone says it sends; [0] where it says nothing."""
    row = (cell.get(c) for c in ("method", "fedavg_rounds", "lg_rounds"))
    count = spec.counts and spec.counts(*row)
    return _NONE if count is None else np.array([float(count)])


def _compare(cell: dict, runs: int | None, ours: np.ndarray, metric: printed.Metric):
    if metric.digit:
        return verdict.compare_exact(cell["paper"], metric.digit, ours)
    least = metric.least(cell["paper"])
    return verdict.compare(cell["paper"], cell["paper_sd"], runs, ours, least)


def _runs(spec: Table, rows: pd.DataFrame, scale: str) -> dict[tuple, tuple]:
    """(ids..., metric, protocol, selection) -> (values [seeds], name of the stand-in or "")."""
    rows = records.select(rows, scale=scale)
    found = records.select(rows, table=spec.name)
    if spec.source:
        other, where = spec.source
        found = pd.concat([found, records.select(rows, table=other, **where)]).sort_index()
    if found.empty:
        return {}
    rows = found.reindex(columns=list(dict.fromkeys([*found, *spec.ids, "stand_in"])))
    for column in (*spec.ids, "stand_in"):
        rows[column] = rows[column].map(plain)
    key = [*spec.ids, "metric", "protocol", "selection"]
    out = {}
    for names, group in rows.groupby(key, sort=False):
        group = records.select(group, own=True)
        twice = group["seed"].duplicated()
        if twice.any():
            seed = group.loc[twice, "seed"].iloc[0]
            raise ResultsError(
                f"{spec.name}: seed {seed} has several values for {', '.join(map(str, names))}; "
                "rows that are no rows of the paper's table need a table name of their own"
            )
        out[names] = group["value"].to_numpy(), records.stand_in(group)
    return out


def _pages(tables, paths: Sequence[Path], folder: Path, paper: Path) -> dict[Path, tuple[str, str]]:
    """Each page as it is and as it should be."""
    counts = scoreboard_markdown(tables, folder, paper)
    out = {}
    for path in paths:
        before = path.read_text(encoding="utf-8")
        head, begin, rest = before.partition(_BEGIN)
        _, end, tail = rest.partition(_END)
        if not (begin and end):
            raise ResultsError(f"{path} has no lines {_BEGIN} and {_END}")
        out[path] = before, f"{head}{_BEGIN}\n\n{counts}\n\n{_END}{tail}"
    return out
