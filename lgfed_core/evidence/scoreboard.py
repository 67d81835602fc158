"""The verdicts of `report` summed up.

Each printed number counts at the one protocol and selection that its table stands for.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from lgfed_core.paths import PAPER, RESULTS

from . import power, records, verdict
from .printed import PAPERS, Table, counted
from .report import contrasts, table
from .seed_steps import STEPS

DIFFERENT = "different"  # reproduced, where one print beside the same runs counts once
TOLD = "told apart"  # of these: no other row's runs would be in its place, `power.rivals`
EARLY = f"before {STEPS[0]} seeds"  # reproduced so far, at fewer than the first step
COUNTED = "counted"  # what follows from the settings: parameters sent, and a printed zero of rounds


def scoreboard(
    tables: Iterable[Table], folder: Path = RESULTS, paper: Path = PAPER
) -> pd.DataFrame:
    """Printed numbers by paper and verdict, each counted once, at its table's headline protocol.

    Two lines for a paper that also prints numbers which follow from the settings (`COUNTED`).
    Columns: paper, numbers, printed, reproduced, different (a number that is printed again, beside
    the same runs, counts once there), told apart (those of the different ones that no other row's
    runs would reproduce as well), before 3 seeds (reproduced as well, by fewer than the first of
    `steps.STEPS`), differs, inconclusive, out of reach, on stand-in data, not yet run.
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
    cells = cells.assign(early=_early(cells) & ~cells["sums"], different=different, alone=alone)
    own = {DIFFERENT: "different", TOLD: "alone", EARLY: "early"}
    return pd.DataFrame(
        {"paper": paper, "numbers": COUNTED if sums else "measured", "printed": len(group)}
        | _many(group, [verdict.REPRODUCED])
        | {name: "" if sums else int(group[column].sum()) for name, column in own.items()}
        | _many(group, kinds)
        for paper, sums, group in _by_paper(cells, "sums")
    )


def contrast_board(
    tables: Iterable[Table], folder: Path = RESULTS, paper: Path = PAPER
) -> pd.DataFrame:
    """Contrasts by paper and verdict; columns as of `scoreboard`, and those without a print."""
    rows, lines = records.load(folder=folder), []
    for spec in tables:
        lines.append(contrasts(spec, rows=rows, paper=paper).assign(paper=spec.paper))
    kinds = [verdict.DIFFERS, verdict.INCONCLUSIVE, verdict.STAND_IN]
    kinds += [verdict.NOT_RUN, power.NO_CONTRAST]
    return pd.DataFrame(
        {"paper": paper, "contrasts": len(group)}
        | _many(group, [verdict.REPRODUCED])
        | {EARLY: int(_early(group).sum())}
        | _many(group, kinds)
        for paper, group in _by_paper(pd.concat(lines))
    )


def _by_paper(lines: pd.DataFrame, *more: str) -> Iterator[tuple]:
    """Each paper's name, values of ``more`` columns, and its lines, in the order of `PAPERS`."""
    groups = lines.groupby(["paper", *more])
    for (name, *own), some in sorted(groups, key=lambda g: (list(PAPERS).index(g[0][0]), g[0][1:])):
        yield PAPERS[name], *own, some


def _many(lines: pd.DataFrame, kinds: Iterable[str]) -> dict[str, int]:
    """How many have each verdict; `verdict.STAND_IN` whatever stands in."""
    found = lines["verdict"]
    found = found.where(~found.str.startswith(verdict.STAND_IN), verdict.STAND_IN)
    return {kind: int(found.eq(kind).sum()) for kind in kinds}


def _early(lines: pd.DataFrame) -> pd.Series:
    """Which lines are reproduced by fewer seeds than the first step has."""
    return (lines["verdict"] == verdict.REPRODUCED) & (lines["seeds"] + lines["lost"] < STEPS[0])


def scoreboard_markdown(
    tables: Iterable[Table], folder: Path = RESULTS, paper: Path = PAPER
) -> str:
    """`scoreboard` as a Markdown table: a column for each of its lines, which a phone has room for;
    with stand-in data as soon as there are some."""
    counts = scoreboard(tables, folder, paper).rename(
        columns={name: f"of these {name}" for name in (DIFFERENT, TOLD, EARLY)}
    )
    names = counts.pop("paper") + ", " + counts.pop("numbers")
    return _markdown(counts.set_index(names), "numbers")


def contrasts_markdown(tables: Iterable[Table], folder: Path = RESULTS, paper: Path = PAPER) -> str:
    """`contrast_board` as a Markdown table, in the same way."""
    names = {"contrasts": "printed", EARLY: f"of these {EARLY}"}
    counts = contrast_board(tables, folder, paper).rename(columns=names)
    return _markdown(counts.set_index("paper"), "contrasts")


def _markdown(counts: pd.DataFrame, title: str) -> str:
    if not counts[verdict.STAND_IN].any():
        counts = counts.drop(columns=verdict.STAND_IN)
    rule = ["---"] + ["---:"] * len(counts)
    lines = [[name, *map(str, values)] for name, values in counts.items()]
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in [[title, *counts.index], rule, *lines]
    )
