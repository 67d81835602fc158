"""What one collapsed run of three would make of a printed mean and its deviation."""

import numpy as np
import pandas as pd

from lgfed_core.evidence.collapse import groups_of
from lgfed_core.evidence.printed import cells

from .. import printed


def one_in_three() -> pd.DataFrame:
    """Printed numbers that one collapsed run of three would explain; a line per task.

    Columns, %: the print and its deviation; where the collapsed run and the others must lie if that
    is a sample's, or a population's; what the best run must reach in any case if it is a
    population's; and beside it the highest number that the table prints for the task.
    """
    table, lines = printed.TABLES["fade_table1_office"], {}
    found = cells(table)
    highest = found.groupby("task")["paper"].max()
    for cell in found.to_dict("records"):
        reading = groups_of(table, cell)
        if reading and reading.collapsed:
            mean, sd, task = cell["paper"], cell["paper_sd"], cell["task"]
            ends = (*one_collapse(mean, sd), *one_collapse(mean, sd, sample=False))
            lines[task] = (mean, sd, highest[task], *ends, highest_run(mean, sd))
    names = dict(printed=("mean", "deviation", "highest of all methods"))
    names |= {"of a sample": ("one", "the others")}
    names |= {"of a population": ("one", "the others", "best run, at least")}
    columns = pd.MultiIndex.from_tuples([(a, b) for a, some in names.items() for b in some])
    return pd.DataFrame.from_dict(lines, "index", columns=columns).rename_axis("task")


def one_collapse(mean: float, sd: float, runs: int = 3, sample: bool = True) -> tuple[float, float]:
    """Where one run, and all the others alike, must lie to make a printed mean and deviation.

    sample: whether the deviation is over ``runs`` - 1; else over the population.

    >>> one_collapse(43.1, 33)  # FADE-DANN's D->A
    (5.0, 62.2)
    >>> one_collapse(43.1, 33, sample=False)  # no accuracy
    (-3.6, 66.4)
    """
    apart = sd * np.sqrt(runs if sample else runs**2 / (runs - 1))
    low = mean - apart * (runs - 1) / runs
    return round(float(low), 1), round(float(low + apart), 1)


def highest_run(mean: float, sd: float) -> float:
    """The least that the best of three runs can be, none below 0, if ``sd`` is a population one.

    >>> highest_run(43.1, 33)  # the best number printed for D->A, by any method, is 74.7
    80.2
    """
    sum_, squares = 3 * mean, 3 * (sd**2 + mean**2)
    high, low = mean + sd / np.sqrt(2), mean - np.sqrt(2) * sd  # two runs alike, one below them
    if low < 0:  # the lowest is 0, and the other two are as they must
        high = (sum_ + np.sqrt(2 * squares - sum_**2)) / 2
    return round(float(high), 1)
