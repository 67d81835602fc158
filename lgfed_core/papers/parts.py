"""The parts of an experiment: what one is before it runs, and what is said of it and its outcome.

A part trains once, from the beginning or from where an earlier one ended, and has a checkpoint of
its own. A piece is what a run leaves for one line of a table; one part may leave many.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open

from lgfed_core.engine import Outcome
from lgfed_core.errors import ResultsError
from lgfed_core.evidence.printed import Table
from lgfed_core.evidence.rows import plain

NOT_SHARES = ("round", "goal_round", "restart", "megabytes")  # metrics that are no shares


@dataclass(frozen=True)
class Part:
    """One part of an experiment, before it runs: how long it trains, and where it is saved."""

    name: str
    rounds: int | None = None  # None: it does not train
    saved: Path | None = None  # None: it always runs
    seeds: tuple[int, ...] = ()  # those that train together

    @property
    def complete(self) -> bool:
        """Whether its checkpoint has all rounds, so that it is read instead of run."""
        facts = self._facts()
        return facts is not None and facts.get("round") == self.rounds

    @property
    def left(self) -> float:
        """The share of its rounds that its checkpoint lacks; 1 without one that can be read."""
        done = (self._facts() or {}).get("round") or 0
        return 1 - min(done / self.rounds, 1.0) if self.rounds else float(not self.complete)

    def _facts(self) -> dict[str, Any] | None:
        """What the head of its checkpoint says."""
        if not (self.saved and self.saved.exists()):
            return None
        try:
            with safe_open(self.saved, framework="pt") as file:
                return json.loads((file.metadata() or {}).get("facts", "{}"))
        except (OSError, SafetensorError, ValueError):
            return None  # running it will say what is wrong


def saved_at(folder: Path | None, name: str) -> Path | None:
    """The checkpoint of the part called ``name``; None without a folder.

    >>> saved_at(Path("runs"), "A->D:dann").name
    'A-D_dann.safetensors'
    """
    name = name.replace("->", "-").replace(":", "_")
    return folder / f"{name}.safetensors" if folder else None


@dataclass(frozen=True)
class Piece:
    """What a run leaves for one line of a table: it can be asked for, and its rows found again.

    changes: settings that pick it (of `Experiment.chooses`); those of several are joined. cell: the
    ids of its rows, the table among them. after: the parts it goes on from, which run before it.
    like: ids of rows which took about as long as it would, for its ``share``. aside: no printed
    number and no claim asks for it; where its rows come from is said, and it is never planned.
    """

    experiment: str
    protocol: str
    name: str  # of its part, or "" for all parts of a run
    changes: tuple[tuple[str, Any], ...] = ()
    cell: tuple[tuple[str, Any], ...] = ()
    after: tuple[str, ...] = ()
    like: tuple[tuple[str, Any], ...] = ()
    share: float = 1.0
    aside: bool = False


def line_of(piece: Piece, table: Table) -> tuple[str, ...] | None:
    """The ids of the line of a printed ``table`` that a piece leaves; () where it leaves all of
    them, None where none."""
    ids = {name: plain(value) for name, value in piece.cell}
    name = ids.pop("table", "")
    if name != table.name:
        source, where = table.source or ("", {})
        if name != source or any(ids.get(k) != plain(v) for k, v in where.items()):
            return None
    return tuple(ids.get(name, "") for name in table.ids) if piece.name else ()


def said(plan: list[Part]) -> str:
    """A plan in lines for people: each part with its rounds, and how much of it is complete."""
    lines = []
    for name in dict.fromkeys(part.name for part in plan):
        mine = [part for part in plan if part.name == name]
        seeds, done = (sum(len(p.seeds) for p in mine if p.complete or n) for n in (1, 0))
        rounds = f"{mine[0].rounds:,} rounds" if mine[0].rounds else "no training"
        left = f"complete for {done} of {seeds}" if done < seeds else "complete"
        lines.append(f"  {name}: {rounds}{f', {left}' if done else ''}")
    return "\n".join(lines)


def following(before: Outcome, after: Outcome, rounds: int | None = None) -> Outcome:
    """``after``, in which seeds count as diverged of which ``before``, its start, had diverged.

    rounds: of ``before`` until that start; None: all.
    """
    lost = [s for s, t in before.diverged.items() if rounds is None or t <= rounds]
    return replace(after, diverged=dict.fromkeys(lost, 1) | after.diverged)


def readable(outcome: Outcome, lost: dict[int, int]) -> Outcome:
    """``outcome`` with zeros for what diverged seeds have no number of: only names are read."""
    if not lost:
        return outcome
    final, history = outcome.final.copy(), outcome.history.copy()
    own = final.index.isin(lost)
    final.loc[own] = final.loc[own].fillna(0)
    own = history["seed"].isin(lost)
    history.loc[own] = history.loc[own].fillna(0)
    return replace(outcome, final=final, history=history)


def refuse_missing(rows: pd.DataFrame, outcome: Outcome, what: str) -> None:
    """Raise ResultsError for a row without a value, of a seed whose own numbers are all finite."""
    missing = rows[rows["value"].isna() & rows["seed"].isin(_sound(outcome))]
    if len(missing):
        seed, metric = missing[["seed", "metric"]].iloc[0]
        raise ResultsError(
            f"{what}: `measured` gives NaN as {metric} of seed {seed}, and nothing has diverged; "
            "leave such rows out"
        )


def _sound(outcome: Outcome) -> set[int]:
    """The seeds that have not diverged, and of which every number in an outcome is finite."""
    frames = [outcome.final]
    if len(outcome.history):
        frames.append(outcome.history.set_index("seed"))
    finite = [np.isfinite(frame.select_dtypes("number")).all(axis=1) for frame in frames]
    broken = {seed for fine in finite for seed in fine.index[~fine]}
    return {*outcome.final.index} - broken - outcome.diverged.keys()


def last_round(outcome: Outcome) -> int:
    """The round at which an outcome was measured."""
    return int(outcome.history["round"].max()) if len(outcome.history) else 1


def percent(wide: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """A line per metric of ``wide`` (all but ``keys``), shares in percent.

    Raises ResultsError for a metric that is no share, nor one of `NOT_SHARES`.
    """
    found = wide.melt(keys, var_name="metric")
    shares = ~found["metric"].isin(NOT_SHARES)
    if len(wrong := found[shares & (found["value"].abs() > 1 + 1e-6)]):
        raise ResultsError(
            f"{wrong['metric'].iloc[0]} is {wrong['value'].iloc[0]:g}, and a share is at most 1: "
            "name it among NOT_SHARES of papers/parts.py, or divide it"
        )
    return found.assign(value=found["value"].where(~shares, 100 * found["value"]))


def who(seeds: Sequence[int]) -> str:
    """The seeds of a run in words, for its progress bar."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
