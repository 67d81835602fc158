"""The papers' tables with our numbers beside them, and the verdicts summed up.

Only runs at paper scale are judged. Each protocol is shown at its own selection (`SELECTION`) and
at the last round; the counts take the protocol that the published numbers stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lgfed_core.errors import ResultsError
from lgfed_core.paths import PAPER, RESULTS

from . import comparison, power, printed, records, verdict
from .display import display as display, text
from .printed import PAPERS, Table
from .rows import DIVERGED, PROTOCOLS, SCALES, plain, refuse_repeated, texts

SELECTION = {"as_released": "best_test", "as_described": "best_val"}


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
    ours, ours_sd (sample), seeds, lost (how many more ran, and diverged), difference, low, high
    (95 %), margin, verdict, why (what kind of inconclusive), rivals (of `power.rivals`), protocol,
    selection, scale, origin (seeds, devices, commits and seconds of its runs). Parameters sent that
    follow from a row's budget need no run (seeds is 0). Where the printed deviation is above 5
    points, difference, interval and margin are those of `collapse`, and why counts collapsed runs.
    Where other data stand in for the paper's, the verdict says so; below paper scale it says that
    nothing is judged. Raises ResultsError for an unknown scale or protocol, and when one seed has
    two values for the same number.

    rows: of `records.load`, where they have been read.
    """
    if scale not in SCALES or protocol not in (None, *PROTOCOLS):
        raise ResultsError(f"scale {scale!r} or protocol {protocol!r} is unknown")
    rows = records.load(spec.experiments, folder) if rows is None else rows
    found = runs_of(spec, rows, scale)
    metrics = {m.name: m for m in spec.metrics}
    lines = []
    for cell in printed.cells(spec, paper).to_dict("records"):
        ids = tuple(plain(cell[c]) for c in spec.ids)
        del cell["runs"]
        for name in [protocol] if protocol else spec.protocols[::-1]:
            for selection in dict.fromkeys([headline(spec, name), "last"]):
                key = *ids, cell["metric"], name, selection
                values, stand_in = found.get(key, (pd.Series(dtype=float), ""))
                ours = values.to_numpy()
                metric, seeds = metrics[cell["metric"]], ours.size
                if not seeds and metric.digit and scale == "paper":
                    ours = _follows(spec, cell)
                sd = ours.std(ddof=1) if ours.size > 1 else np.nan
                if metric.digit:
                    against, why = comparison.compare_exact(cell["paper"], metric.digit, ours), ""
                else:
                    against, why = power.judged(spec, cell, ours, metric.least(cell["paper"]))
                said = against.verdict
                if ours.size and scale != "paper":
                    said = f"{scale} scale, not judged"
                elif ours.size and stand_in:
                    said = f"{verdict.STAND_IN} ({stand_in})"
                lost, origin = (values.attrs.get(known, "") for known in ("lost", "origin"))
                mean = ours.mean() if ours.size else np.nan
                own = {"ours": mean, "ours_sd": sd, "seeds": seeds, "lost": len(lost)}
                place = {"protocol": name, "selection": selection, "scale": scale}
                verdicts = asdict(replace(against, verdict=said)) | {"why": why}
                lines.append(cell | own | verdicts | place | {"origin": origin})
    table = pd.DataFrame(lines)
    return table.assign(rivals=power.rivals(table, spec, found))


def contrasts(spec: Table, *, folder: Path = RESULTS, paper: Path = PAPER) -> pd.DataFrame:
    """`power.contrasts` of one table, at the protocol and selection of its headline."""
    runs = runs_of(spec, records.load(spec.experiments, folder))
    return power.contrasts(spec, runs, *spec.headline, folder=paper)


def at_hand(spec: Table, *, folder: Path = RESULTS) -> pd.DataFrame:
    """`table` at paper scale, with quick-scale lines (not judged) where there is no other."""
    rows = records.load(spec.experiments, folder)
    full, quick = (table(spec, scale, rows=rows) for scale in ("paper", "quick"))
    return full.where(full["ours"].notna() | (quick["seeds"] == 0), quick)


def lacking(lines: pd.DataFrame) -> str:
    """The rows of `table` that have not run, in words, protocol by protocol."""
    runs = lines.groupby(["protocol", "row"], sort=False)["seeds"].max()
    said = [
        f"not yet run {str(protocol).replace('_', ' ')}: {'; '.join(rows)}"
        for protocol, rows in runs[runs == 0].reset_index().groupby("protocol")["row"]
    ]
    return "\n".join(said) or "all rows have run, under each protocol"


def printout(tables: Iterable[Table]) -> Iterator[str]:
    """Each table for a terminal, with the commands that fill it."""
    for spec in tables:
        out = [f"== {PAPERS[spec.paper]}, {spec.title} ==\n{spec.note}".strip()]
        out.append(f"\n{text(at_hand(spec))}")
        for experiment in spec.experiments:
            for some in spec.sets:
                out.append(
                    f"fill with: python -m lgfed_core run {experiment} --scale paper "
                    f"--seeds 0-9{some and f' --set {some}'}"
                )
            out.append("")
        yield "\n".join(out)


def headline(spec: Table, protocol: str) -> str:
    """A table that stands for the last round has no other selection."""
    return "last" if spec.headline[1] == "last" else SELECTION[protocol]


def measured(spec: Table, lines: pd.DataFrame) -> pd.DataFrame:
    """Those of `table` that were measured, under each protocol at its own selection."""
    own = lines["selection"] == [headline(spec, protocol) for protocol in lines["protocol"]]
    exact = printed.counted(spec, lines)
    return lines[own & ~exact]


def _follows(spec: Table, cell: dict) -> np.ndarray:
    """[1] what the row's budget alone says it sends; [0] where it says nothing."""
    row = (cell.get(c) for c in ("method", "fedavg_rounds", "lg_rounds"))
    count = spec.counts and spec.counts(*row)
    return np.array([] if count is None else [float(count)])


def runs_of(
    spec: Table, rows: pd.DataFrame, scale: str = "paper"
) -> dict[tuple, tuple[pd.Series, str]]:
    """(ids..., metric, protocol, selection) -> (values by seed, name of the stand-in or "").

    The values' attrs have their ``origin`` and ``lost``, seeds that diverged and have none.
    """
    found = records.select(rows, table=spec.name, scale=scale)
    if spec.source:
        other, where = spec.source
        others = records.select(rows, table=other, scale=scale, **where)
        found = pd.concat([found, others]).sort_index()
    if found.empty:
        return {}
    key = [*spec.ids, "metric", "protocol", "selection"]
    rows = found.reindex(columns=[*key, "stand_in", "seed", "value", "device", "commit", "seconds"])
    for column in (*spec.ids, "stand_in"):
        rows[column] = texts(rows[column])
    ended = rows["metric"] == DIVERGED
    lost = {
        names: frozenset(some["seed"])
        for names, some in rows[ended].groupby([c for c in key if c != "metric"])
    }
    rows = rows[~ended]
    stand_in, seeds, values = (rows[c].to_numpy() for c in ("stand_in", "seed", "value"))
    whence = [rows[c].to_numpy() for c in ("seed", "device", "commit", "seconds")]
    out, place = {}, len(spec.ids)
    for names, at in rows.groupby(key, sort=False).indices.items():
        own = at[stand_in[at] == ""]  # the paper's data, as soon as there are rows on them
        at = np.sort(own if own.size else at)
        runs = pd.Series(values[at], pd.Index(seeds[at], name="seed"), name="value")
        refuse_repeated(runs, spec.name, names)
        runs.attrs["origin"] = _origin(*(cells[at] for cells in whence))
        runs.attrs["lost"] = lost.get((*names[:place], *names[place + 1 :]), frozenset())
        out[names] = runs, ", ".join(sorted({*stand_in[at]} - {""}))
    return out


def origin(rows: pd.DataFrame) -> str:
    """Where rows come from: seeds, devices, commits, and the time of their runs."""
    whole = rows.drop_duplicates(["seed", "seconds"])["seconds"]
    return _origin(np.unique(rows["seed"]), rows["device"], rows["commit"], whole)


def _origin(seeds: NDArray, devices: Iterable, commits: Iterable, seconds: NDArray) -> str:
    who = ", ".join(map(str, sorted(seeds)))
    device, commit = (", ".join(dict.fromkeys(map(str, each))) for each in (devices, commits))
    return f"seeds {who}; {device}; commit {commit}; {seconds.sum():,.0f} s"
