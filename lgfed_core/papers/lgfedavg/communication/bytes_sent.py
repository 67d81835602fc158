"""Accuracy against bytes sent: of a live run, round by round, and of stored runs, row by row.

Bytes are those of the rounds of a deployed system, as float32, over all devices
(`System.deployed`); the papers' convention multiplies them by (m + K) / 2m. MTL is
counted as its objective needs it: a participant sends its model and receives the others' mean.

Source: Liang et al. (2020), Tables 1, 6 and 8.
"""

import numpy as np
import pandas as pd

from lgfed_core.evidence.printed import cells
from lgfed_core.evidence.records import select
from lgfed_core.evidence.report import SELECTION
from lgfed_core.evidence.verdict import reach_of

from ..printed import TABLES
from ..records import PRINTED, system
from .counts import BYTES, SYSTEMS

TESTS = ("local_test_acc", "new_test_acc")
ROW = ["method", "fedavg_rounds", "lg_rounds"]


def by_round(cfg, curves: pd.DataFrame) -> pd.DataFrame:
    """``curves`` of an experiment's ``progress`` with ``megabytes`` sent until each round.

    LG-FedAvg carries the bytes of the FedAvg rounds that it starts from; local-only sends nothing.
    """
    here = system(cfg)
    budget = curves["part"].str.extract(r"lg_(\d+)", expand=False).dropna().astype(int)
    start = budget.map(cfg.ran).reindex(curves.index, fill_value=0)
    fed = curves["round"].where(curves["method"] != "lg_fedavg", start)
    fed = fed.where(curves["method"] != "local_only", 0)
    lg = (curves["round"] - start).where(curves["method"] == "lg_fedavg", 0)
    sent = [here.deployed(int(f), int(n)) for f, n in zip(fed, lg, strict=True)]
    return curves.assign(megabytes=np.array(sent) * BYTES / 1e6)


def ends(cfg, rows: pd.DataFrame) -> pd.DataFrame:
    """Both tests of a live run's last round, with ``megabytes`` sent: by method, rounds and seed.

    Rounds are those that the rows name, shrunk as ``cfg`` shrinks them.
    """
    rows = rows[(rows["selection"] == "last") & rows["metric"].isin(TESTS)]
    wide = rows.pivot_table("value", [*ROW, "seed"], "metric").reset_index()
    here = system(cfg)
    done = [[cfg.ran(r) for r in pair] for pair in wide[ROW[1:]].to_numpy()]
    return wide.assign(megabytes=[here.deployed(*pair) * BYTES / 1e6 for pair in done])


def points(stored: pd.DataFrame, dataset: str, classes: int, protocol: str) -> pd.DataFrame:
    """Every budget at paper scale, the papers' points and ours, one line per row and test.

    stored: rows of `records.load`; ours are those at the protocol's own selection, on the paper's
    own data. Columns: method, fedavg_rounds, lg_rounds, gigabytes, metric, who ("paper", "ours"),
    mean, low, high (95 % interval of the mean; NaN with one run), seeds (NaN for the paper's).
    """
    ours = _ours(select(stored, table=PRINTED[dataset]), classes, protocol)
    found = [*_printed(dataset, classes), *ours]
    columns = [*ROW, "metric", "who", "mean", "low", "high", "seeds"]
    table = pd.DataFrame(found, columns=columns)
    deployed = SYSTEMS[dataset].deployed
    sent = [deployed(f, n) for f, n in table[ROW[1:]].itertuples(index=False)]
    table["gigabytes"] = np.array(sent, float) * BYTES / 1e9
    return table.drop_duplicates([*ROW, "metric", "who"])


def _printed(dataset: str, classes: int):
    for spec in (TABLES[name] for name in PRINTED[dataset] if name in TABLES):
        found = select(cells(spec), metric=TESTS)
        of_all = found.get("classes_per_device", pd.Series(2, found.index))  # Table 1 has two
        for cell in found[of_all == classes].to_dict("records"):
            mean, df = cell["paper"], spec.runs - 1
            reach = reach_of(cell["paper_sd"] / np.sqrt(df), df)  # a population deviation
            row = [cell["method"], *(int(cell[c]) for c in ROW[1:])]
            yield *row, cell["metric"], "paper", mean, mean - reach, mean + reach, np.nan


def _ours(rows: pd.DataFrame, classes: int, protocol: str):
    where = dict(scale="paper", protocol=protocol, selection=SELECTION[protocol], stand_in="")
    rows = select(rows, columns=ROW, metric=TESTS, classes_per_device=classes, **where)
    for (method, before, after, metric), group in rows.groupby([*ROW, "metric"]):
        values = group["value"].to_numpy()
        n, mean = values.size, values.mean()
        reach = reach_of(values.std(ddof=1) / np.sqrt(n), n - 1) if n > 1 else np.nan
        yield method, int(before), int(after), metric, "ours", mean, mean - reach, mean + reach, n
