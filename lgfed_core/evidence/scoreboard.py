"""The verdicts of `report` summed up.

Each printed number counts at the one protocol and selection that its table stands for.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from lgfed_core.paths import PAPER, RESULTS

from . import records, verdict
from .printed import PAPERS, Table, counted
from .report import table
from .seed_steps import STEPS

DIFFERENT = "distinct"  # reproduced, where one print beside the same runs counts once
TOLD = "told apart"  # of these: no other row's runs would be in its place, `power.rivals`
EARLY = f"before {STEPS[0]} seeds"  # reproduced so far, at fewer than the first step
COUNTED = "counted"  # what follows from the settings: parameters sent, and a printed zero of rounds


def scoreboard(
    tables: Iterable[Table], folder: Path = RESULTS, paper: Path = PAPER
) -> pd.DataFrame:
    """Printed numbers by paper and verdict, each counted once, at its table's headline protocol.

    Two lines for a paper that also prints numbers which follow from the settings (`COUNTED`).
    Columns: paper, numbers, printed, reproduced, distinct (a number that is printed again, beside
    the same runs, counts once there), told apart (those of the distinct ones that no other row's
    runs would reproduce as well), before 3 seeds (reproduced as well, by fewer than the first of
    `seed_steps.STEPS`), differs, inconclusive, out of reach, on stand-in data, not yet run.
    """
    rows, lines = records.load(folder=folder), []
    for spec in tables:
        protocol, selection = spec.headline
        cells = table(spec, "paper", protocol, rows=rows, paper=paper)
        sums = counted(spec, cells)
        cells = cells.rename(columns={"paper": "print"}).assign(paper=spec.paper, sums=sums)
        lines.append(cells[cells["selection"] == selection])
    cells = pd.concat(lines, ignore_index=True)
    held = cells[(cells["verdict"] == verdict.REPRODUCED) & ~cells["sums"]]
    once = ~held.sort_values("rivals").duplicated(["paper", "print", "ours", "ours_sd", "seeds"])
    different = once.reindex(cells.index, fill_value=False)
    alone = different & cells["rivals"].str.startswith("0 of")
    kinds = [verdict.DIFFERS, verdict.INCONCLUSIVE, verdict.UNREACHABLE]
    kinds += [verdict.STAND_IN, verdict.NOT_RUN]
    cells = cells.assign(early=early(cells) & ~cells["sums"], different=different, alone=alone)
    own = {DIFFERENT: "different", TOLD: "alone", EARLY: "early"}
    return pd.DataFrame(
        {"paper": paper, "numbers": COUNTED if sums else "measured", "printed": len(group)}
        | many(group, [verdict.REPRODUCED])
        | {name: "" if sums else int(group[column].sum()) for name, column in own.items()}
        | many(group, kinds)
        for paper, sums, group in by_paper(cells, "sums")
    )


def by_paper(lines: pd.DataFrame, *more: str) -> Iterator[tuple]:
    """Each paper's name, values of ``more`` columns, and its lines, in the order of `PAPERS`."""
    groups = lines.groupby(["paper", *more])
    for (name, *own), some in sorted(groups, key=lambda g: (list(PAPERS).index(g[0][0]), g[0][1:])):
        yield PAPERS[name], *own, some


def many(lines: pd.DataFrame, kinds: Iterable[str]) -> dict[str, int]:
    """How many have each verdict; `verdict.STAND_IN` whatever stands in."""
    found = lines["verdict"]
    found = found.where(~found.str.startswith(verdict.STAND_IN), verdict.STAND_IN)
    return {kind: int(found.eq(kind).sum()) for kind in kinds}


def early(lines: pd.DataFrame) -> pd.Series:
    """Which lines are reproduced by fewer seeds than the first step has."""
    return (lines["verdict"] == verdict.REPRODUCED) & (lines["seeds"] + lines["lost"] < STEPS[0])
