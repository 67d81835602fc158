"""Every verdict with what it stands on, for a page on which a reader moves the rule itself.

The page's table is whole without a script. book/_static/judge.js states the rule of `evidence`
again and judges `data` anew in the browser; tests/test_judge.py holds it against the stored cells.
"""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from lgfed_core.evidence import records, report, verdict
from lgfed_core.evidence.collapse import groups_of
from lgfed_core.evidence.display import spread
from lgfed_core.evidence.printed import METRICS, PAPERS, Table
from lgfed_core.evidence.rows import plain

from .board import STORED
from .printed import TABLES

SEEDS = range(2, 10)  # that a reader can ask for, beside all


def data() -> dict[str, list[dict[str, Any]]]:
    """What has run: ``cells``, ``contrasts`` of two cells each (by their place) with the
    ``family`` that shares a variance, ``claims``.

    A cell has ``print`` (mean, deviation and runs, None where there are none), ``least`` (the
    margin's floor), ``seeds`` and their ``values``; a claim has ``p``, its two p-values (for and
    against it) after Holm's correction, and ``first``, the same had we stopped at 2, 3, ... seeds.
    ``verdict`` is the book's; ``fixed`` has it where no rule moves it (stand-in data, shortened
    runs, a rule of its own as of `collapse`). The others are words for the page.
    """
    rows = records.load()
    cells: list[dict] = []
    contrasts: list[dict] = []
    for spec in TABLES.values():
        mine = list(_cells(spec, rows))
        places = {cell["key"]: len(cells) + i for i, cell in enumerate(mine)}
        cells += mine
        if spec.contrasts:
            contrasts += _contrasts(spec, report.contrasts(spec), places)
    return {"cells": cells, "contrasts": contrasts, "claims": list(_claims())}


def _cells(spec: Table, rows: pd.DataFrame) -> Iterable[dict]:
    runs, metrics = report.runs_of(spec, rows), {metric.name: metric for metric in spec.metrics}
    lines = report.measured(spec, report.table(spec, rows=rows))
    for line in lines[lines["seeds"] > 0].to_dict("records"):
        ids = (plain(line[name]) for name in spec.ids)
        values, stand_in = runs[*ids, line["metric"], line["protocol"], line["selection"]]
        values = values.sort_index()
        known, why = not np.isnan(line["paper_sd"]), "" if stand_in else line["why"]
        said = line["verdict"] + (f" ({why})" if why else "")
        cell = {
            "paper": spec.paper,
            "title": spec.title,
            "key": (line["row"], line["metric"], line["protocol"]),
            "words": f"{line['row']}, {METRICS.get(line['metric'], line['metric'])}",
            "protocol": line["protocol"],
            "print": [line["paper"], line["paper_sd"] if known else None, spec.runs],
            "least": metrics[line["metric"]].least(line["paper"]),
            "seeds": values.index.tolist(),
            "values": values.tolist(),
            "verdict": said,
            "printed": spread(line["paper"], line["paper_sd"]),
            "ours": f"{spread(line['ours'], line['ours_sd'])} ({line['seeds']})",
        }
        cell |= {"pooled": spec.pooled} if spec.pooled > 1 else {}
        cell |= {"fixed": said} if said and (stand_in or groups_of(spec, line)) else {}
        yield cell


def _contrasts(spec: Table, found: pd.DataFrame, places: dict[tuple, int]) -> Iterable[dict]:
    metrics = {metric.name: metric for metric in spec.metrics}
    for line in found[found["seeds"] > 0].to_dict("records"):
        keys = ((line[name], line["metric"], spec.headline[0]) for name in ("row", "less"))
        stand_in = line["verdict"].startswith(verdict.STAND_IN)
        where = METRICS.get(line["metric"], line["metric"])
        yield {
            "paper": spec.paper,
            "title": spec.title,
            "words": ", ".join(filter(None, [line["setting"], line["contrast"], where])),
            "of": [places[key] for key in keys],
            "family": f"{spec.name}, {line['setting']}, {line['metric']}",
            "floor": metrics[line["metric"]].least(0.0),
            "verdict": line["verdict"],
            "printed": f"{line['printed']:+.2f}",
            "ours": f"{line['ours']:+.2f} ({line['seeds']})",
        } | ({"fixed": line["verdict"]} if stand_in else {})


def _claims() -> Iterable[dict]:
    for page in STORED:
        lines = page.from_stored()
        lines = lines[lines["ran"] > 0]
        aside = lines["said"].astype(str).str.startswith((verdict.STAND_IN, verdict.SUGGESTED))
        earlier = [] if aside.all() else list(_earlier(page))
        for claim in page.CLAIMS:
            if claim.id not in lines.index:
                continue
            fixed, line = aside[claim.id], lines.loc[claim.id]
            said = line["said"] if fixed else line["verdict"]
            where = f" ({claim.where})" if claim.where else ""
            yield {
                "paper": next(key for key in PAPERS if claim.page.startswith(f"{key}/")),
                "words": f"{claim.id}{where}: {claim.words}",
                "p": _both(lines, claim.id),
                "first": [] if fixed else [_both(some, claim.id) for some in earlier],
                "verdict": said,
            } | ({"fixed": said} if fixed else {})


def _earlier(page: ModuleType) -> Iterable[pd.DataFrame]:
    """The lines of a page's claims had we stopped at each of `SEEDS`, as long as there are more."""
    for most in SEEDS:
        with records.stopped_at(most) as cut:
            lines = page.from_stored()
        if not cut.dropped:
            return
        yield lines


def _both(lines: pd.DataFrame, id: str) -> list[float]:
    """The p-values for a claim and against it; 1 where nothing has run that it needs."""
    if id not in lines.index or not lines.loc[id, "ran"]:
        return [1.0, 1.0]
    return [float(lines.loc[id, name]) for name in ("p", "p_against")]
