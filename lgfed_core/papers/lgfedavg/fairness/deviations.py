"""What the deviations of Table 4 can mean, and which verdicts depend on it.

The released script takes them over devices and runs together: 10 x 10 numbers, not ten. How much
of that is between runs is not printed. Two ends are known. If the devices of a run were alike, all
of it would be between runs, and margins and intervals would be at their widest. If runs did not
differ but by the devices in them, a run's mean would deviate by 1 / sqrt(10) of it. A verdict that
is the same at both ends does not depend on what was not printed; another is none.
"""

import pandas as pd

from lgfed_core.evidence import comparison
from lgfed_core.evidence.printed import METRICS, cells
from lgfed_core.evidence.rows import plain

from ..printed import TABLES
from . import run as adult
from .stored import cell

OVER_RUNS, OVER_DEVICES = "all between runs", "all between devices"


def ends(stored: pd.DataFrame, protocol: str = "as_released") -> pd.DataFrame:
    """Each cell that has run, judged at both ends.

    stored: of `stored.stored_rows`. Index: row in words, number; columns: paper, its deviation,
    ours, the two verdicts (`OVER_RUNS`, `OVER_DEVICES`), and ``stands``: whether they agree.
    """
    spec = TABLES[adult.TABLE]
    metrics = {metric.name: metric for metric in spec.metrics}
    lines = {}
    for one in cells(spec).to_dict("records"):
        name, mean, sd = one["metric"], one["paper"], one["paper_sd"]
        where = {key: plain(one[key]) for key in spec.ids}
        ours = cell(stored, name, **where, protocol=protocol).to_numpy()
        if not ours.size:
            continue
        floor = metrics[name].least(mean)
        wide, narrow = comparison.ends(mean, sd, spec.runs, ours, floor, spec.pooled)
        lines[one["row"], METRICS[name]] = [mean, sd, ours.mean(), wide, narrow, wide == narrow]
    columns = ["paper", "±", "ours", OVER_RUNS, OVER_DEVICES, "stands"]
    index = pd.MultiIndex.from_tuples(lines, names=["row", "number"]) if lines else None
    return pd.DataFrame(list(lines.values()), index, columns)
