"""Every verdict with what it stands on, for a page on which a reader moves the rule itself.

The page's table is whole without a script. book/_static/judge.js states the rule of `evidence`
again and judges `data` anew in the browser; tests/test_judge.py holds it against the stored cells.
"""

import html
import json
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from lgfed_core.evidence import records, report, verdict
from lgfed_core.evidence.collapse import groups_of
from lgfed_core.evidence.display import Page, spread
from lgfed_core.evidence.power import NO_CONTRAST
from lgfed_core.evidence.printed import METRICS, PAPERS, Table
from lgfed_core.evidence.rows import plain

from .board import STORED
from .printed import TABLES

_SENT = {  # what the script needs of each
    "cells": ("print", "least", "pooled", "seeds", "values", "fixed"),
    "contrasts": ("of", "family", "floor", "fixed"),
    "claims": ("p", "first", "fixed"),
}
_COUNTED = {  # lines of the counts: verdict of a number or contrast, of a claim
    "reproduced, or confirmed": (verdict.REPRODUCED, verdict.CONFIRMED),
    "differs, or refuted": (verdict.DIFFERS, verdict.REFUTED),
    "inconclusive": (verdict.INCONCLUSIVE, verdict.INCONCLUSIVE),
    "out of reach": (verdict.UNREACHABLE, ""),
    NO_CONTRAST: (NO_CONTRAST, ""),
    "on stand-in data": (verdict.STAND_IN, verdict.STAND_IN),
    "suggested": ("", verdict.SUGGESTED),
}
SEEDS = range(2, 10)  # that a reader can ask for, beside all
_PARTS = ("numbers, as described", "numbers, as released", "contrasts", "claims")


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


def page(found: dict[str, list[dict]]) -> Page:
    """Counts, then all lines of `data` with the book's verdicts, and what the script needs."""
    sent = {
        part: [{name: line[name] for name in names if name in line} for line in found[part]]
        for part, names in _SENT.items()
    }
    text = json.dumps(sent, separators=(",", ":")).replace("<", "\\u003c")
    return Page(
        f'<div id="judge-knobs"></div>{_counts(found)}{"".join(_lists(found))}'
        f'<script type="application/json" id="judge-data">{text}</script>'
    )


def _counts(found: dict[str, list[dict]]) -> str:
    lines = [line for part in found.values() for line in part]
    named = zip(_parts(found), lines, strict=True)
    many = pd.Series([f"{part}: {_kind(line['verdict'])}" for part, line in named]).value_counts()
    head = "".join(f"<th>{name}</th>" for name in ("verdict", *_PARTS))
    body = []
    for words, (of_number, of_claim) in _COUNTED.items():
        kinds = [of_claim if part == "claims" else of_number for part in _PARTS]
        keys = [f"{part}: {kind}" if kind else "" for part, kind in zip(_PARTS, kinds, strict=True)]
        cells = "".join(
            f'<td data-counts="{key}">{many.get(key, 0)}</td>' if key else "<td></td>"
            for key in keys
        )
        body.append(f'<tr><th scope="row">{words}</th>{cells}</tr>')
    return _table("How many have which verdict", head, body)


def _lists(found: dict[str, list[dict]]) -> Iterable[str]:
    """A list for each printed table, for its contrasts, and for the claims of each paper."""
    groups: dict[tuple[str, str], list[str]] = {}
    numbers = {"cells": "cell", "contrasts": "contrast", "claims": "claim"}
    places = ((part, i, line) for part in numbers for i, line in enumerate(found[part]))
    for (part, i, line), counted in zip(places, _parts(found), strict=True):
        protocol = line.get("protocol", "")
        aside = f", {protocol.replace('_', ' ')}" if protocol else ""
        cells = [line["printed"], line["ours"]] if part != "claims" else []
        pairs = zip(_HEAD[-len(cells) - 1 :], [*cells, line["verdict"]], strict=True)
        tds = "".join(f'<td data-name="{n}">{html.escape(str(text))}</td>' for n, text in pairs)
        row = (
            f'<tr data-{numbers[part]}="{i}" data-count="{counted}"'
            + (f' data-protocol="{protocol}"' if protocol else "")
            + f'><th scope="row">{html.escape(line["words"] + aside)}</th>{tds}</tr>'
        )
        title = f"{PAPERS[line['paper']]}, {line.get('title', 'claims')}"
        title += ": contrasts" * (part == "contrasts")
        groups.setdefault((line["paper"], title), []).append(row)
    for (paper, title), rows in groups.items():
        names = ("claim", "verdict") if title.endswith("claims") else _HEAD
        head = "".join(f"<th>{name}</th>" for name in names)
        yield f'<section class="judged paper-{paper}">{_table(title, head, rows)}</section>'


_HEAD = ("", "printed", "ours (seeds)", "verdict")


def _parts(found: dict[str, list[dict]]) -> Iterable[str]:
    """Of each line in order, the part of the counts that it belongs to."""
    yield from (f"numbers, {cell['protocol'].replace('_', ' ')}" for cell in found["cells"])
    yield from ("contrasts" for _ in found["contrasts"])
    yield from ("claims" for _ in found["claims"])


def _kind(said: str) -> str:
    kind = said.partition(" (")[0]
    return verdict.SUGGESTED if kind.startswith(verdict.SUGGESTED) else kind


def _table(caption: str, head: str, rows: list[str]) -> str:
    return (
        f'<div style="overflow-x:auto"><table class="lgfed"><caption>{html.escape(caption)}'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
