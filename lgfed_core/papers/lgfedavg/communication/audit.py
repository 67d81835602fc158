"""What the papers say about their counts of communicated parameters, held against the counts.

Four statements beside the tables: which layers are shared and what MTL exchanges (the two rows
that do not follow), whether the one-off transfer of local models is included, version 1's
standard deviations, and how much is saved. Symbols as in `counts`.

Source: Liang et al. (2019, v1) Table 1 and footnote 1; (2020, v2) section 5.2, C.2.2 and C.2.4.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from lgfed_core import models
from lgfed_core.evidence.printed import row_name
from lgfed_core.paths import PAPER

from .counts import SYSTEMS, System, deployment, papers_count, printed_rows, sent_once

DATA = {"mnist": "MNIST", "cifar10": "CIFAR-10", "vqa": "VQA"}
HEADLINES = {  # pair -> (table, data set, FedAvg's rounds, LG-FedAvg's)
    "v1, MNIST": ("lgfedavg_v1_table1", "mnist", 725, (400, 50)),
    "v1, CIFAR-10": ("lgfedavg_v1_table1", "cifar10", 1850, (1200, 60)),
    "v2, MNIST": ("lgfedavg_v2_table6_mnist", "mnist", 800, (400, 100)),
    "v2, CIFAR-10": ("lgfedavg_v2_table8_cifar10", "cifar10", 1800, (1200, 100)),
    "v1 and v2, VQA": ("lgfedavg_table2_vqa", "vqa", 47, (32, 17)),
}


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """What LG-FedAvg sends of FedAvg's parameters, in percent, for the papers' headline pairs.

    table: of `counts.budgets`. Columns: printed, formula (both by the papers' convention),
    deployed (with `counts.one_off`), and rounds, the ratio of the FedAvg rounds alone: what
    an LG phase that sends nothing would give.
    """
    lines = {}
    reported = table.set_index(["table", "dataset", "fedavg_rounds", "lg_rounds"])["reported"]
    for name, (source, data, alone, (fed, lg)) in HEADLINES.items():
        whole, part = reported[source, data, alone, 0], reported[source, data, fed, lg]
        pair = [("fedavg", alone, 0), ("lg_fedavg", fed, lg)]
        found = deployment(SYSTEMS[data], pair).iloc[1]
        lines[name] = {
            "printed": part / whole,
            "formula": found["papers_ratio"],
            "deployed": found["ratio"],
            "rounds": fed / alone,
        }
    return 100 * pd.DataFrame(lines).T


def explanations() -> pd.DataFrame:
    """Candidate explanations of the two rows that do not follow, each with what it gives.

    Columns: row, scheme, value, printed, digit, matches (equal in the digits printed).
    """
    mnist, cifar, mlp = SYSTEMS["mnist"], SYSTEMS["cifar10"], models.mlp_mnist()
    two = models.count(mlp, models.last_layers(mlp, 2))
    P, rounds = cifar.total, 1800
    first = ("v1 Table 1, MNIST, LG-FedAvg 400+50", 2.80e10, 1e8)
    second = ("v2 Table 1, CIFAR-10, MTL 1800", 12.0e9, 1e8)
    lines = [
        (*first, "the formula: three layers shared", mnist.papers(400, 50)),
        (
            *first,
            "two layers shared, as the text has it",
            papers_count(two, mnist.total, mnist.m, mnist.K, 400, 50),
        ),
        (*second, "the formula: as FedAvg", cifar.papers(rounds, 0)),
        (*second, "ten devices in all, as C.2.4 has it", papers_count(0, P, 10, 10, rounds, 0)),
        (*second, "what is released: nothing is sent", 0),
        (*second, "as FedAvg, but 1,700 rounds", cifar.papers(1700, 0)),
    ]
    found = pd.DataFrame(lines, columns=["row", "printed", "digit", "scheme", "value"])
    return found.assign(matches=_same(found["value"], found["printed"], found["digit"]))


def readable(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `counts.budgets` for people: row, printed, formula (both in 10^9), times.

    The formula is given with two digits more than are printed. ``times`` is how often it is.
    """
    names = _with_data(rows) if rows["dataset"].nunique() > 1 else rows["row"]
    printed = [billions(v, d) for v, d in zip(rows["reported"], rows["digit"], strict=True)]
    formula = [billions(v, d / 100) for v, d in zip(rows["computed"], rows["digit"], strict=True)]
    told = {"row": names, "printed": printed, "formula": formula, "times": rows["lines"]}
    return pd.DataFrame(told, index=rows.index)


def billions(value: float, digit: float) -> str:
    """In units of 10^9, to the digit given: 12.7 for 12,692,196,000 and 1e8."""
    return f"{value / 1e9:.{max(0, round(9 - np.log10(digit)))}f}" if value else "0"


def transfer(table: pd.DataFrame) -> pd.DataFrame:
    """Whether the one-off transfer of all local models can be in the printed numbers.

    Both versions say that it is (v1 footnote 1; v2 section 5.2), for the ensemble of New Test.
    table: of `counts.budgets`. One line per budget of LG-FedAvg, which would add
    K (P - P_g), and of local-only training, which would add K P. Columns: table, row, reported,
    digit, computed, with_transfer, verdict: "not included" where only the count without
    it rounds to the printed number, "cannot tell" where both do, "neither" where none does.
    """
    rows = table[table["method"].isin(["lg_fedavg", "local_only"])].reset_index(drop=True)
    systems = rows["dataset"].map(SYSTEMS)
    alone = rows["method"] == "local_only"
    pairs = zip(alone, systems, strict=True)
    once = [sent_once(0 if a else s.shared, s.total, s.K) for a, s in pairs]
    rows = rows.assign(with_transfer=rows["computed"] + once)
    counts = rows["computed"], rows["with_transfer"]
    without, included = (_same(c, rows["reported"], rows["digit"]) for c in counts)
    words = ["cannot tell", "not included", "included"]
    said = np.select([without & included, without, included], words, "neither")
    rows["row"] = _with_data(rows)
    columns = ["table", "row", "reported", "digit", "computed", "with_transfer"]
    return rows[columns].assign(verdict=said)


def spreads(folder: Path = PAPER) -> pd.DataFrame:
    """Version 1's standard deviations of the parameters sent, from those of the FedAvg rounds.

    Columns: row, reported (the deviation printed), digit, computed
    (P (m + K) std(R_fed)), matches, and lg_std: the least deviation of the LG rounds that closes
    the gap, which is when they vary hand in hand with the FedAvg rounds (NaN where there is none).
    Raises ResultsError when version 1's Table 1 is missing.
    """
    lines, table = [], printed_rows("lgfedavg_v1_table1", folder)
    for row in table.dropna(subset="fedavg_rounds_std").to_dict("records"):
        system: System = SYSTEMS[row["dataset"]]
        digit = {"mnist": 1e8, "cifar10": 1e7}[row["dataset"]]
        computed = system.total * (system.m + system.K) * row["fedavg_rounds_std"]
        matches = round(computed / digit) == round(row["params_std"] / digit)
        gap = (row["params_std"] - digit / 2 - computed) / (system.shared * (system.m + system.K))
        name = row_name({c: row[c] for c in ("method", "fedavg_rounds", "lg_rounds")})
        ids = dict(dataset=row["dataset"], row=name, reported=row["params_std"], digit=digit)
        gap = np.nan if matches else gap
        lines.append(ids | dict(computed=computed, matches=matches, lg_std=gap))
    table = pd.DataFrame(lines)
    return table.assign(row=_with_data(table)).drop(columns="dataset")


def _with_data(rows: pd.DataFrame) -> list[str]:
    """ "MNIST: FedAvg 800" of each row."""
    return [f"{DATA[d]}: {row}" for d, row in zip(rows["dataset"], rows["row"], strict=True)]


def _same(values: pd.Series, printed: pd.Series, digit: pd.Series) -> pd.Series:
    return (values / digit).round() == (printed / digit).round()
