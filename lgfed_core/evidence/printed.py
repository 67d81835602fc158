"""The papers' printed numbers: one small declaration per table, and its cells in long form.

The numbers themselves are in data/paper/<table>.csv. A `Table`, declared by its paper, says which
columns identify a row, which hold a number, which its standard deviation, and what margin a
comparison allows at least.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.files import version
from lgfed_core.paths import PAPER

from .comparison import margin_of
from .rows import PROTOCOLS, plain
from .vocabulary import PAPERS as PAPERS


@dataclass(frozen=True)
class Metric:
    """A column of numbers."""

    name: str
    sd: str | None = None  # column of its standard deviation
    floor: float = 0.0  # in the unit of the number
    relative: float = 0.0
    digit: float | None = None  # last printed digit of a number without chance in it

    def least(self, printed: float) -> float:
        """The smallest margin that a comparison with this number allows."""
        return self.floor + self.relative * abs(printed)


@dataclass(frozen=True)
class Table:
    """How to read one file of data/paper, and what fills it.

    runs: how many runs a printed mean is over; None where no spread is printed.
    headline: the protocol and selection that the published numbers stand for.
    experiments: what `python -m lgfed_core run` takes to fill it; empty while no chapter does.
    sets: the settings (of ``--set``) with which it has to run, one after the other.
    pooled: of how many devices of a run the printed deviations hold numbers as well; 1: they are
        over runs alone. How much of them is between runs is then unknown: a verdict is one
        only if it is the same whether all is or none (`report.table`).
    source: (table, cells): rows of ours that serve this table too, as the same runs fill both.
    contrasts: pairs of methods (a, b) whose difference a - b, at the same setting, the paper argues
        with; `power.contrasts` judges them.
    guess: accuracy of guessing, in %, near which collapsed runs end, or a function of a row's ids
        that gives it; `collapse` needs it where a deviation above 5 points is printed.
    counts: from (method, fedavg_rounds, lg_rounds) of a row to the parameters that it sends, where
        these follow from its budget alone; None where they do not.
    """

    name: str
    paper: str  # key of PAPERS
    title: str
    ids: tuple[str, ...]
    metrics: tuple[Metric, ...]
    runs: int | None = None
    headline: tuple[str, str] = ("as_released", "best_test")
    experiments: tuple[str, ...] = ()
    sets: tuple[str, ...] = ("",)
    pooled: int = 1
    source: tuple[str, dict[str, Any]] | None = None
    protocols: tuple[str, ...] = PROTOCOLS  # those that can be run
    guess: float | Callable[[Mapping[str, Any]], float] | None = None
    counts: Callable[..., int | None] | None = None
    note: str = ""
    contrasts: tuple[tuple[str, str], ...] = ()

    @property
    def accuracies(self) -> frozenset[str]:
        """Those metrics whose margin has a floor in points."""
        return frozenset(metric.name for metric in self.metrics if metric.floor)


def accuracy(name: str, sd: str | None = None) -> Metric:
    """A number whose margin is 1 point at least."""
    return Metric(name, sd, floor=1.0)


def auc(name: str, sd: str | None = None) -> Metric:
    """A number whose margin is 2 points at least."""
    return Metric(name, sd, floor=2.0)


def other(name: str, sd: str | None = None) -> Metric:
    """Neither accuracy nor AUC: at least 2 % of what is printed."""
    return Metric(name, sd, relative=0.02)


COUNTS = ("params_communicated", "fedavg_rounds", "lg_rounds")  # 0 of them is no measurement
DONE = ("as_described", "last")  # the headline of numbers that nothing is chosen for


METHODS = {
    "fedavg": "FedAvg",
    "local_only": "local only",
    "lg_fedavg": "LG-FedAvg",
    "mtl": "MTL",
    "fedprox": "FedProx",
    "lg_fedavg_adv": "LG-FedAvg with adversary",
    "source_only": "source only",
    "fade_dann": "FADE-DANN",
    "fade_cdan": "FADE-CDAN",
    "fedavg_shot": "FedAvg-SHOT",
    "resnet": "ResNet",
    "dann": "DANN",
    "cdan": "CDAN",
    "shot": "SHOT",
    "dann+shot": "DANN+SHOT",
    "cdan+shot": "CDAN+SHOT",
    "baseline": "baseline",
    "cgau": "CGAU",
    "cgau_kept": "CGAU, rows kept",
    "cgau_averaged": "CGAU, rows averaged",
}
METRICS = {
    "local_test_acc": "local test",
    "new_test_acc": "new test",
    "params_communicated": "parameters sent",
    "fedavg_rounds": "FedAvg rounds",
    "lg_rounds": "LG rounds",
    "iid_normal": "i.i.d., normal",
    "iid_rotated": "i.i.d., rotated",
    "noniid_normal": "non-i.i.d., normal",
    "noniid_rotated": "non-i.i.d., rotated",
    "class_acc": "accuracy",
    "class_auc": "AUC",
    "adv_auc": "adversary's AUC",
    "adv_auc_race": "adversary, race",
    "adv_auc_sex": "adversary, sex",
    "probe_logistic": "logistic probe",
    "probe_trees": "trees",
    "probe_network": "network probe",
    "probe_best": "best probe",
    "probe_best_race": "best probe, race",
    "probe_best_sex": "best probe, sex",
    "eo_race": "odds gap, race",
    "eo_sex": "odds gap, sex",
    "dp_race": "parity gap, race",
    "dp_sex": "parity gap, sex",
    "average_client_frechet_distance": "Fréchet distance",
    "target_acc": "target accuracy",
    "test_auc": "AUC on test rows",
    "test_loss": "loss on test rows",
    "test_acc": "accuracy",
}


def cells(table: Table, folder: Path = PAPER) -> pd.DataFrame:
    """Every printed number of ``table``: its ids, then row, metric, paper, paper_sd, runs.

    ``row`` is the line's name in words. ``paper_sd`` is NaN where none is printed. Raises
    ResultsError when the file is missing or has not the columns declared.
    """
    path = folder / f"{table.name}.csv"
    if not path.exists():
        raise ResultsError(f"{path} is missing; it holds the paper's numbers and is part of git")
    return _cells(version(path), table.ids, table.metrics, table.runs).copy()


@lru_cache(maxsize=64)
def _cells(
    file: tuple, ids_of: tuple, metrics: tuple[Metric, ...], runs: int | None
) -> pd.DataFrame:
    """`cells` of a file, read once while it stays as it is."""
    path = file[0]
    try:
        printed = pd.read_csv(path, index_col=False)
    except ValueError as error:  # empty, or no text
        raise ResultsError(f"{path} cannot be read: {error}; `git checkout` restores it") from error
    numbers = [c for m in metrics for c in (m.name, m.sd) if c]
    if missing := [c for c in [*ids_of, *numbers] if c not in printed]:
        raise ResultsError(f"{path} has no column {', '.join(missing)}")
    for column in numbers:
        values = pd.to_numeric(printed[column], errors="coerce")
        wrong = values.isna() & printed[column].notna() | (values < 0) | np.isinf(values)
        if any(m.floor and column in (m.name, m.sd) for m in metrics):
            wrong |= values > 100
        if wrong.any():
            raise ResultsError(
                f"{path}: {column} is {printed[column][wrong].iloc[0]} in line "
                f"{int(wrong.to_numpy().argmax()) + 2}; no such number can be printed"
            )
    ids = printed[list(ids_of)]
    if (twice := ids.duplicated()).any():
        raise ResultsError(f"{path}: line {int(twice.to_numpy().argmax()) + 2} is there twice")
    names = [row_name(row) for row in ids.to_dict("records")]
    parts = [
        ids.assign(
            row=names,
            metric=m.name,
            paper=printed[m.name].astype(float),
            paper_sd=printed[m.sd].astype(float) if m.sd else float("nan"),
            runs=runs,
        )
        for m in metrics
    ]
    out = pd.concat(parts).sort_index(kind="stable")  # line by line, metrics as declared
    return out.dropna(subset="paper").reset_index(drop=True)


def margin(table: Table, metric: str, **row: object) -> float:
    """How far from one printed number counts as reproduced; row: ids of its line, enough of them.

    Raises ResultsError unless exactly one number is meant.
    """
    found = cells(table)
    if unknown := row.keys() - set(table.ids):
        raise ResultsError(f"{table.name} has no ids {', '.join(sorted(unknown))}")
    found = found[(found[list(row)] == pd.Series(row)).all(axis=1) & (found["metric"] == metric)]
    if len(found) != 1:
        raise ResultsError(
            f"{table.name} has {len(found)} numbers {metric!r} in rows {row}, not one"
        )
    cell, metrics = found.iloc[0], {m.name: m for m in table.metrics}
    return margin_of(cell["paper_sd"], metrics[metric].least(cell["paper"]))


def counted(spec: Table, lines: pd.DataFrame) -> pd.Series:
    """Which ``lines`` (columns metric, paper) follow from the settings: parameters sent, and what a
    method has none of, printed as 0."""
    exact = lines["metric"].isin([metric.name for metric in spec.metrics if metric.digit])
    return exact | lines["metric"].isin(COUNTS) & (lines["paper"] == 0)


def row_name(ids: dict[str, object]) -> str:
    """The words for one line of a table: "2 classes, LG-FedAvg, 400 + 100 rounds"."""
    left = {k: plain(v) for k, v in ids.items()}
    words = []
    if classes := left.pop("classes_per_device", ""):
        words.append(f"{classes} classes")
    if dataset := left.pop("dataset", ""):
        words.append({"mnist": "MNIST", "cifar10": "CIFAR-10"}.get(dataset, dataset))
    method = left.pop("method", "")
    fed, lg = left.pop("fedavg_rounds", ""), left.pop("lg_rounds", "")
    rounds = " + ".join(many for many in (fed, lg) if many not in ("", "0"))
    words.append(METHODS.get(method, method) + (f", {rounds} rounds" if rounds else ""))
    if fraction := left.pop("finetune_fraction_C", ""):
        words.append(f"C = {fraction}")
    if shuffled := left.pop("shuffle_proportion", ""):
        words.append(f"shuffled {shuffled}")
    words += [{"noniid": "non-i.i.d.", "iid": "i.i.d."}.get(v, v) for v in left.values()]
    return ", ".join(w for w in words if w)
