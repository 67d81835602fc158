"""The live run of the page on the newcomer as a table, and its first answer."""

import pandas as pd

from lgfed_core.evidence.printed import METHODS
from lgfed_core.evidence.records import select

from .run import CURVES, NAME, TABLE
from .settings import SPLITS, named


def words(line: str) -> str:
    """A line as people call it: "LG-FedAvg, C = 0.1"."""
    method, fraction = named(line)
    return f"{METHODS[method]}, C = {fraction:g}"


def live(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per method and C, old devices and newcomer before and after, in percent.

    rows: of `Experiment.run`, one split. "averaged" is one model of the old devices' parameters.
    """
    rows = rows[rows["table"] == TABLE]
    names = _lines(rows)
    metric = rows["metric"].str.partition("_")[2]
    wide = rows.assign(line=names, metric=metric).pivot_table("value", "line", "metric")
    shown = {
        ("old devices", "before"): wide["normal_before"],
        ("old devices", "after"): wide["normal"],
        ("old devices", "averaged"): wide["normal_averaged"],
        ("newcomer", "before"): wide["rotated_before"],
        ("newcomer", "after"): wide["rotated"],
    }
    return pd.DataFrame(shown).loc[list(dict.fromkeys(names))].rename(words).rename_axis(None)


def curves(scale: str = "paper") -> pd.DataFrame:
    """Stored accuracies by round, `from_start`: columns of `Rotated.progress`, and
    classes_per_device."""
    columns = ("classes_per_device", "method", "finetune_fraction_C", "round")
    stored = select(NAME, columns=columns, table=(TABLE, CURVES), scale=scale)
    return from_start(select(stored, table=CURVES), stored)


def from_start(curves: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Curves with a round 0 for the old devices, before the newcomer came: what is forgotten is the
    first step. rows: of the same runs, of `Experiment.run` or stored."""
    before = [f"{split}_normal_before" for split in SPLITS.values()]
    start = select(rows, table=TABLE, metric=before).assign(round=0, metric="normal")
    return pd.concat([start[start.columns.intersection(curves.columns)], curves], ignore_index=True)


def _lines(rows: pd.DataFrame) -> list[str]:
    return [line_of(*ids) for ids in zip(rows["method"], rows["finetune_fraction_C"], strict=True)]


def line_of(method: str, fraction: float) -> str:
    """The line of Table 3 with this method and C: "fedavg_0.1"."""
    return f"{method}_{float(fraction):g}"
