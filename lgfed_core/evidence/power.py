"""What a verdict on a cell is worth: rivals, contrasts, cells out of reach, seeds that would do.

A cell that another method's runs would reproduce as well says little about its own method. The
papers argue with *contrasts*, one method less another at the same setting, and these are judged:

    D printed, its 95 % interval holds zero            the print leaves it open, nothing to judge
    our 95 % interval inside the band from D/2 to 2D   reproduced
    wholly outside                                     differs (so does one of the other sign)
    across an edge of the band, or one run             inconclusive

Where a printed deviation is pooled over runs and devices both of its readings must say the same, as
for cells. Printed means are taken as independent of each other. Ours are paired over the seeds that
both have, and no others count, with variances shared over one setting and measure (`moderated`);
where they share none, the interval is Welch's. No correction is made over cells or contrasts: one
of twenty at an edge is misjudged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import collapse, comparison, moderated, verdict
from .printed import Table, cells, counted, row_name
from .rows import plain
from .seed_steps import STEPS
from .verdict import Evidence

NO_CONTRAST = "the print leaves it open"
VAGUE = "depends on what the paper's deviation is over"  # of `Table.pooled`
SEEDS = (3, 5, 10, 20, 50, 100)  # the numbers of seeds that `why` may name
_OWN = ("method", "fedavg_rounds", "lg_rounds")  # what tells rows of the same setting apart

Runs = Mapping[tuple, tuple[pd.Series, str]]  # of `report`: values by seed, name of a stand-in


def reachable(paper_sd: float, paper_runs: float | None, floor: float) -> bool:
    """Whether runs of ours, up to the last of `STEPS`, could reproduce a cell: those that hit it.

    Not where the 95 % interval is wider than the margin whatever they scatter, as the print's own
    is, of few runs.
    """
    if paper_runs is None or np.isnan(paper_sd) or np.isnan(paper_runs) or paper_runs < 2:
        return True
    least = comparison.least_reach(paper_sd, int(paper_runs), STEPS[-1])
    return least <= comparison.margin_of(paper_sd, floor)


def enough(found: comparison.Compared, sd: float, seeds: int, paper_sd: float, paper_runs) -> int:
    """How many seeds would decide an inconclusive cell with this difference and spread; 0: no
    number of `SEEDS` would, it lies truly between."""
    print_ = comparison.Print.of(found.margin, paper_sd, paper_runs)
    for many in (n for n in SEEDS if n > seeds):
        if any(print_.settle(found.difference, sd / np.sqrt(many), many - 1)):
            return many
    return 0


def why(found: comparison.Compared, sd: float, seeds: int, paper_sd: float, paper_runs) -> str:
    """What kind of inconclusive a cell is, in words; "" for other verdicts."""
    if found.verdict != verdict.INCONCLUSIVE:
        return ""
    if seeds < 2:
        return "one seed"
    many = enough(found, sd, seeds, paper_sd, paper_runs)
    return f"underpowered, {many} seeds would do" if many else "truly between"


def judged(
    spec: Table, cell: Mapping, ours: NDArray, floor: float
) -> tuple[comparison.Compared, str]:
    """Runs [n] against a printed cell, by the rule that its deviation calls for: `collapse`'s, or
    `comparison.compare`, which both readings of a pooled one must bear out. With it why the cell is
    inconclusive, or how many runs have collapsed."""
    if groups := collapse.groups_of(spec, cell):
        return collapse.compare(groups, ours)
    sd, one_run = cell["paper_sd"], ours.size < 2
    print_ = cell["paper"], sd, spec.runs, ours, floor
    found = comparison.compare(*print_)
    said = found.verdict
    reason = why(found, np.nan if one_run else ours.std(ddof=1), ours.size, sd, spec.runs)
    if spec.pooled > 1 and not one_run and len({*comparison.ends(*print_, spec.pooled)}) > 1:
        said, reason = verdict.INCONCLUSIVE, VAGUE
    open_ = said in (verdict.NOT_RUN, verdict.INCONCLUSIVE)
    if open_ and not reachable(sd, spec.runs, floor):
        said, reason = verdict.UNREACHABLE, ""
    return replace(found, verdict=said), reason


def rivals(table: pd.DataFrame, spec: Table, runs: Runs) -> pd.Series:
    """For each line of `report.table`: how many others of its setting have run, and which of these
    would be reproduced in its place -> "2 of 5: FedAvg 800, MTL 1800"; "" unless reproduced."""
    floors = {m.name: m for m in spec.metrics}
    setting = [c for c in spec.ids if c not in _OWN]
    groups: dict[tuple, list[tuple[dict, pd.Series]]] = {}
    for ids, (values, _) in runs.items():
        names = dict(zip(spec.ids, ids, strict=False))
        key = *(names[c] for c in setting), *ids[len(spec.ids) :]
        groups.setdefault(key, []).append((names, values))
    said = []
    for line in table.to_dict("records"):
        metric, mine = floors[line["metric"]], {c: plain(line[c]) for c in spec.ids}
        if line["verdict"] != verdict.REPRODUCED or metric.digit:
            said.append("")
            continue
        place = line["metric"], line["protocol"], line["selection"]
        others = groups.get((*(mine[c] for c in setting), *place), [])
        others = [(names, values) for names, values in others if names != mine]
        least = metric.least(line["paper"])
        alike = [
            row_name({c: v for c, v in names.items() if c in _OWN})
            for names, values in others
            if judged(spec, line, values.to_numpy(), least)[0].verdict == verdict.REPRODUCED
        ]
        said.append(f"{len(alike)} of {len(others)}: {', '.join(alike)}" if others else "")
    return pd.Series(said, table.index, dtype=str)


def contrasts(spec: Table, runs: Runs, protocol: str, selection: str, **where) -> pd.DataFrame:
    """Every contrast of ``spec.contrasts`` that the table supports, printed against ours.

    runs: of `report`; where: more arguments of `printed.cells`. Columns: setting, contrast,
    metric, printed, printed_low, printed_high, ours, low, high, seeds, lost (how many more ran, of
    which one or the other diverged), verdict, and the table's rows that it compares, ``row`` and
    ``less``, and ``origin``, where the runs of both come from.
    """
    if not spec.contrasts:
        return pd.DataFrame({"verdict": []}, dtype=str)
    printed = cells(spec, **where)
    printed = printed[~counted(spec, printed)]
    setting = [c for c in spec.ids if c not in _OWN]
    pairs, by = [], [*setting, "metric"]
    for _, group in printed.groupby(by, sort=False, dropna=False):
        rows = group.to_dict("records")
        pairs += [
            (a, b) for a in rows for b in rows if (a["method"], b["method"]) in spec.contrasts
        ]
    places = [(a["metric"], protocol, selection) for a, _ in pairs]
    both = [_runs_of(spec, runs, *pair, at) for pair, at in zip(pairs, places, strict=True)]
    families = [tuple(plain(a[c]) for c in by) for a, _ in pairs]  # one scale of noise each
    ours = moderated.by_family([_ours(a, b) for a, b, *_ in both], families)
    return pd.DataFrame(_contrast(spec, *found) for found in zip(pairs, both, ours, strict=True))


_Both = tuple[pd.Series, pd.Series, int, str]


def _runs_of(spec: Table, runs: Runs, a: dict, b: dict, place: tuple[str, str, str]) -> _Both:
    """Values of both over the seeds that they share, how many more ran of which one diverged, and
    what stands in."""
    keys = [(*(plain(row[c]) for c in spec.ids), *place) for row in (a, b)]
    (ours, one), (others, other) = (runs.get(key, (pd.Series(dtype=float), "")) for key in keys)
    ran = [values.index.union(sorted(values.attrs.get("lost", ()))) for values in (ours, others)]
    if len(same := ours.index.intersection(others.index)):  # as they are where they share none
        ours, others = ours.reindex(same), others.reindex(same)
    lost = len(ran[0].intersection(ran[1])) - min(len(ours), len(others))
    return ours, others, max(0, lost), one or other


def _contrast(spec: Table, pair: tuple[dict, dict], both: _Both, ours: Evidence) -> dict:
    a, b = pair
    floor = next(m for m in spec.metrics if m.name == a["metric"]).least(0.0)
    low, high = _printed(spec.runs, a, b, floor)
    own = [row | {"paper_sd": row["paper_sd"] / np.sqrt(spec.pooled)} for row in (a, b)]
    prints = (low, high), _printed(spec.runs, own[0], own[1], floor)  # as `comparison.ends`
    x, y, lost, stand_in = both
    where = [(row["row"], runs.attrs.get("origin")) for row, runs in ((a, x), (b, y))]
    origin = "; ".join(f"{row}: {said}" for row, said in where if all(o for _, o in where))
    shift, seeds = a["paper"] - b["paper"], min(len(x), len(y))
    wide, narrow = (_judged(shift, interval, (ours.low, ours.high), seeds) for interval in prints)
    open_ = verdict.INCONCLUSIVE if seeds else verdict.NOT_RUN
    found = wide if wide == narrow else open_
    if stand_in and found not in (NO_CONTRAST, verdict.NOT_RUN):
        found = f"{verdict.STAND_IN} ({stand_in})"
    names = [row_name({c: row[c] for c in spec.ids if c in _OWN}) for row in (a, b)]
    return {
        "setting": row_name({c: a[c] for c in spec.ids if c not in _OWN} | {"method": ""}),
        "contrast": " - ".join(names),
        "metric": a["metric"],
        "printed": shift,
        "printed_low": low,
        "printed_high": high,
        "ours": ours.estimate,
        "low": ours.low,
        "high": ours.high,
        "seeds": seeds,
        "lost": lost,
        "verdict": found,
        "row": a["row"],
        "less": b["row"],
        "origin": origin,
    }


def _printed(runs: int | None, a: dict, b: dict, floor: float) -> tuple[float, float]:
    """The interval of a printed contrast; without deviations the floor to either side."""
    shift = a["paper"] - b["paper"]
    if runs is None or runs < 2 or np.isnan([a["paper_sd"], b["paper_sd"]]).any():
        return shift - floor, shift + floor
    parts = [(row["paper_sd"] ** 2 / (runs - 1), runs - 1) for row in (a, b)]
    low, high = comparison.welch(shift, *parts[0], *parts[1])
    return float(low), float(high)


def _ours(a: pd.Series, b: pd.Series) -> Evidence:
    """Difference and interval: paired over the same seeds, or Welch's, which shares nothing."""
    if not (len(a) and len(b)):
        return verdict.NO_EVIDENCE
    shift = float(a.mean() - b.mean())
    if set(a.index) == set(b.index):
        return verdict.greater(a, b.reindex(a.index))
    if min(len(a), len(b)) < 2:
        return Evidence(shift, np.nan, np.nan)
    parts = [(v.var() / len(v), len(v) - 1) for v in (a, b)]
    low, high = comparison.welch(shift, *parts[0], *parts[1])
    return Evidence(shift, float(low), float(high))


def _judged(printed: float, interval, ours, seeds: int) -> str:
    if interval[0] <= 0 <= interval[1]:
        return NO_CONTRAST
    if not seeds:
        return verdict.NOT_RUN
    if np.isnan(ours[0]) or comparison.by_chance(ours[1] - ours[0], seeds):
        return verdict.INCONCLUSIVE
    return comparison.placed(*ours, *sorted((printed / 2, 2 * printed)))
