"""The first page's figure: MNIST with two classes per device, the paper's numbers beside ours."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lgfed_core import plotting
from lgfed_core.errors import ResultsError
from lgfed_core.evidence import report
from lgfed_core.evidence.printed import Table
from lgfed_core.paths import PAPER, RESULTS, ROOT

from .printed import TABLES

FRONT = ROOT / "book" / "images" / "front.png"


def front(
    path: Path = FRONT,
    results: Path = RESULTS,
    paper: Path = PAPER,
    table: Table = TABLES["lgfedavg_v2_table6_mnist"],
) -> Path:
    """The first page's figure: Table 6's lines for two classes per device, both tests -> ``path``.

    Of the paper-scale rows in folder ``results``, the lines that were run; raises ResultsError
    when there are none.
    """
    cells = report.table(table, folder=results, paper=paper)
    cells = cells[(cells["classes_per_device"] == 2) & cells["metric"].str.endswith("test_acc")]
    if not (cells["seeds"] > 0).any():
        raise ResultsError(f"{results} has no paper-scale rows of {table.name} with two classes")
    cells = cells[cells["row"].isin(cells.loc[cells["seeds"] > 0, "row"])]
    cells = cells.assign(row=cells["row"].str.removeprefix("2 classes, "))
    with plotting.style():
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(plotting.WIDTH, 1.3 + 0.32 * cells["row"].nunique()), sharey=True
        )
        for ax, metric, title in (
            (left, "local_test_acc", "Each device's own test rows"),
            (right, "new_test_acc", "New devices"),
        ):
            plotting.paper_vs_ours(cells, metric, ax, _middle(cells[cells["metric"] == metric]))
            ax.set_title(title)
            ax.set_xlabel("accuracy, %")
        marks = dict(zip(*reversed(left.get_legend_handles_labels()), strict=True))
        figure.legend(marks.values(), marks.keys(), loc="outside lower center", ncols=3)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Software": None} if path.suffix == ".png" else None)
        plt.close(figure)
    return path


def _middle(cells: pd.DataFrame) -> tuple[float, float]:
    """Limits that show all values but those more than ten margins from the median."""
    values = np.concatenate([cells["paper"], cells["ours"].dropna()])
    margin = cells["margin"].min()
    near = values[np.abs(values - np.median(values)) <= 10 * margin]
    return near.min() - 1.25 * margin, min(near.max() + 1.25 * margin, 100.0)
