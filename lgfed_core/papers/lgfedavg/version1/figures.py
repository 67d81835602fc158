"""The figures of the page on version 1: the race from a goal, and Table 1's four panels."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import INK, METHOD
from lgfed_core.evidence import verdict
from lgfed_core.evidence.printed import METRICS
from lgfed_core.plotting import WIDTH, caption, paper_vs_ours

from .tables import PARTS, TESTS, TITLES

LOOKS = {  # part -> (colour, marker); version 2, drawn last, is hollow
    "fedavg": METHOD["fedavg"],
    "local": METHOD["local_only"],
    "lg_v1": METHOD["lg_fedavg_v1"],
    "lg_v2": METHOD["lg_fedavg"],
}


def race(curves: pd.DataFrame, goal: float) -> Figure:
    """Local test against rounds, and against the parameters sent, one line per part and seed.

    curves: of `run.VERSION1.progress`; goal: an accuracy between 0 and 1. The dotted line is the
    goal, which is judged on validation rows, so that FedAvg may be on either side of it when
    LG-FedAvg (whose lines begin with FedAvg's model) takes over. Models that are trained alone
    send nothing: on the right they are one mark, at their last epoch.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.2), sharey=True)
    scale, unit = (1e9, "billions") if curves["sent"].max() >= 2e9 else (1e6, "millions")
    for part in (p for p in PARTS if (curves["part"] == p).any()):
        colour, marker = LOOKS[part]
        for n, (seed, line) in enumerate(curves[curves["part"] == part].groupby("seed")):
            line = _from_fedavg(line, curves, seed).dropna(subset="local_test_acc")
            look = dict(color=colour, marker=marker, markevery=max(1, len(line) // 8))
            look["markerfacecolor"] = "white" if part == "lg_v2" else colour
            look["label"] = None if n else PARTS[part]
            left.plot(line["round"], line["local_test_acc"], **look)
            if part == "local":
                line, look["clip_on"] = line.tail(1), False
            right.plot(line["sent"] / scale, line["local_test_acc"], **look)
    for ax in (left, right):
        ax.axhline(100 * goal, color=INK, linestyle=":", linewidth=1, label="goal")
    left.set(xlabel="round (local only: epoch)", ylabel="local test accuracy, %")
    right.set(xlabel=f"parameters sent, {unit}", xlim=(0, None))
    left.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    below = (
        "Local test by round and by parameters sent: FedAvg trains to the goal "
        "(dotted), LG-FedAvg goes on from there; a line per seed."
    )
    return caption(figure, below, curves)


def _from_fedavg(line: pd.DataFrame, curves: pd.DataFrame, seed: int) -> pd.DataFrame:
    """LG-FedAvg's line with FedAvg's point in front that it goes on from."""
    before = line["before"].iloc[0]
    start = curves[(curves["part"] == "fedavg") & (curves["seed"] == seed)]
    start = start[start["round"] == before]  # empty where before is 0
    return pd.concat([start, line], ignore_index=True)


def table1(table: pd.DataFrame) -> Figure:
    """Table 1, paper beside ours: a row of panels per data set, a column per test.

    table: of `report.table`. A data set without runs shows the paper's dots alone and says so.
    """
    figure, grid = plt.subplots(len(TITLES), 2, figsize=(WIDTH, 3.9), sharey="row")
    for row, (data, title) in zip(grid, TITLES.items(), strict=True):
        cells = table[table["dataset"] == data]
        cells = cells.assign(row=cells["row"].str.removeprefix(f"{title}, "))
        missing = "" if (cells["seeds"] > 0).any() else f" ({verdict.NOT_RUN})"
        for ax, metric in zip(row, TESTS, strict=True):
            paper_vs_ours(cells, metric, ax)
            ax.set(title=f"{title}, {METRICS[metric]}{missing}", xlabel="")
            ax.use_sticky_edges = False  # room on both sides of the bands
            ax.autoscale(axis="x")
    for ax in grid[-1]:
        ax.set_xlabel("accuracy, %")
    handles = {}
    for ax in grid.flat:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    below = (
        "Table 1 of version 1, the paper and our full-length runs; bars are "
        "deviations over runs, grey the margin of the verdict."
    )
    return caption(figure, below)
