"""The page on version 1: its tables from made-up rows, its shares by hand, its figures."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import torch

from lgfed_core import plotting
from lgfed_core.data import Dataset, Split
from lgfed_core.evidence import records as results, report, verdict
from lgfed_core.papers.lgfedavg.printed import TABLES
from lgfed_core.papers.lgfedavg.version1 import figures as figures_version1, run as v1, tables
from lgfed_core.papers.lgfedavg.version1.run import VERSION1
from toy import stored_row


def stored(tmp_path, values: dict[tuple, float], **more) -> pd.DataFrame:
    """Recorded rows: (table, data set, method, metric, seed) -> value."""
    ids = ["table", "dataset", "method", "metric", "seed"]
    rows = [
        stored_row(**(dict(zip(ids, key, strict=True)) | dict(lg_rounds=50, value=value) | more))
        for key, value in values.items()
    ]
    results.record(VERSION1.name, pd.DataFrame(rows), tmp_path)
    return results.load(folder=tmp_path)


def labels(*counts: int) -> Split:
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    return Split(torch.zeros(len(y), 1), y)


def test_strangers_counted_by_hand():
    """Two devices with two of four shards each: training 0 0 | 0 0 | 0 1 | 1 1, test 0 | 1 | 1 | 1.

    Shards 0, 1 and 3 hold one class. Who has 0 and 1 trains on class 0 and is tested on 0 and 1.
    """
    images = Dataset("toy", labels(5, 3), labels(1, 3), 2)
    seen = set()
    for seed in range(20):
        shares = tables.strangers(images, 2, seed)
        assert shares.shape == (2,)
        seen.add(tuple(sorted(shares.round(6))))
    assert seen == {(0.0, 50.0), (0.0, 0.0)}
    balanced = Dataset("toy", labels(8, 8), labels(4, 4), 2)
    assert not tables.strangers(balanced, 2, 0).any()


def test_contrasts_are_paired_over_common_seeds(tmp_path):
    names = [(VERSION1.table, "mnist", m, "local_test_acc") for m in ("lg_fedavg", "fedavg")]
    values = {(*names[0], s): 98 + s for s in (0, 1, 2)} | {(*names[1], s): 97.0 for s in (1, 2)}
    sent = {"lg_fedavg": 1e9, "fedavg": 4e9}
    values |= {(VERSION1.table, "mnist", m, "params_communicated", 0): n for m, n in sent.items()}
    found = tables.contrasts(stored(tmp_path, values))["ours"]
    assert found["MNIST", "LG-FedAvg - FedAvg, local test"].startswith("+2.50 [")
    assert found["MNIST", "LG-FedAvg - FedAvg, local test"].endswith("] (2)")
    assert found["MNIST", "parameters sent, % of FedAvg's"] == "25.00 (1)"
    assert found["MNIST", "LG-FedAvg - FedAvg, new test"] == verdict.NOT_RUN
    assert (found["CIFAR-10"] == verdict.NOT_RUN).all()


def test_contrasts_print_the_papers_own(tmp_path):
    """98.66 - 98.15, 89.66 - 59.94, and 8.48 / 13.04."""
    paper = tables.contrasts(results.load(folder=tmp_path))["paper"]
    assert paper["MNIST", "LG-FedAvg - FedAvg, local test"] == "+0.51"
    assert paper["CIFAR-10", "LG-FedAvg - FedAvg, local test"] == "+29.72"
    assert paper["CIFAR-10", "parameters sent, % of FedAvg's"] == "65"


def test_versions_subtract_the_table_beside(tmp_path):
    one, two = (
        (name, "mnist", "lg_fedavg", "local_test_acc", 3) for name in (VERSION1.table, v1.BESIDE)
    )
    found = tables.versions(stored(tmp_path, {one: 99.0, two: 98.75}))
    assert found.loc["local test", "best on validation"] == "+0.25 (1)"
    assert found.loc["local test", "last round"] == verdict.NOT_RUN
    assert (found.iloc[1:] == verdict.NOT_RUN).all(axis=None)


def test_smaller_scales_do_not_count(tmp_path):
    one = {(VERSION1.table, "mnist", "lg_fedavg", "new_test_acc_outputs", 0): 50.0}
    rows = stored(tmp_path, one, scale="quick")
    assert (tables.two_meanings(rows)["our runs of version 1"] == verdict.NOT_RUN).all(axis=None)


def test_both_meanings_of_new_test_side_by_side(tmp_path):
    metric = "new_test_acc_weights"
    values = {(VERSION1.table, "mnist", "local_only", metric, s): 30.0 + s for s in (0, 2)}
    found = tables.two_meanings(stored(tmp_path, values))
    alone = found.loc["MNIST", "local only"]
    assert alone["printed"].tolist() == ["84.01 ± 7.42", "30.41 ± 7.88"]
    assert alone["our runs of version 1", "averaged weights"] == "31.00 ± 1.41 (2)"
    assert alone["our runs of version 1", "averaged outputs"] == verdict.NOT_RUN


@pytest.fixture
def histories():
    """FedAvg reaches 0.6 in round 2 of 3; LG-FedAvg goes on for 2 rounds."""
    line = dict(seed=0, new_test_acc=0.5)
    fed = [
        dict(line, round=r, validation_acc=a, local_test_acc=a)
        for r, a in ((1, 0.4), (2, 0.6), (3, 0.5))
    ]
    lg = [dict(line, round=r, validation_acc=0.8, local_test_acc=0.8) for r in (1, 2)]
    return {
        name: pd.DataFrame(h)
        for name, h in {"fedavg": fed, "lg_v1": lg, "lg_v2": lg, "local": lg}.items()
    }


def test_curves_go_on_from_the_goal_and_count_what_is_sent(histories):
    cfg = VERSION1.settings("smoke", goal=0.6)
    curves = VERSION1.progress(cfg, histories).set_index(["part", "round"])
    everybody = cfg.devices + 2  # two of ten devices upload
    assert curves.loc[("fedavg", 3), "sent"] == everybody * 633_226 * 3
    assert curves.loc[("lg_v1", 4), "sent"] == everybody * (633_226 * 2 + 34_186 * 2)
    assert curves.loc[("local", 2), "sent"] == 0
    assert curves.loc[("lg_v2", 3), "before"] == 2


def test_a_missed_goal_counts_all_rounds(histories):
    cfg = VERSION1.settings("smoke", goal=0.9)
    curves = VERSION1.progress(cfg, histories)
    assert set(curves.loc[curves["part"] == "lg_v1", "before"]) == {cfg.fedavg_rounds}


def test_quick_scale_has_goals_of_its_own():
    for data, goal in (("mnist", 0.975), ("cifar10", 0.57)):
        quick, paper = (VERSION1.settings(scale, data=data) for scale in ("quick", "paper"))
        assert quick.goal < goal == paper.goal
        assert paper.further == paper.lg_rounds > quick.further >= 10
        assert VERSION1.settings("quick", data=data, goal=0.5).goal == 0.5


def test_figures_draw_what_there_is(histories, tmp_path):
    cfg = VERSION1.settings("smoke", goal=0.6)
    figure = figures_version1.race(VERSION1.progress(cfg, histories), cfg.goal)
    drawn = {line.get_label(): line for line in figure.axes[0].lines}
    assert set(drawn) == {*tables.PARTS.values(), "goal"}
    assert drawn["LG-FedAvg, version 1"].get_xdata().tolist() == [2, 3, 4]  # FedAvg's point first
    assert drawn["LG-FedAvg, version 1"].get_ydata() == pytest.approx([60, 80, 80])
    with plotting.style():
        figure = figures_version1.table1(report.table(TABLES[VERSION1.table], folder=tmp_path))
    assert all("not yet run" in ax.get_title(loc="left") for ax in figure.axes)
    plt.close("all")


def test_a_live_run_has_a_line_per_part_and_a_single_model_one_new_test():
    cfg = VERSION1.settings("smoke")
    tables_of = {"fedavg": VERSION1.table, "lg_fedavg": VERSION1.table, "local_only": v1.BESIDE}
    rows = pd.DataFrame(
        stored_row(table=name, dataset="mnist", method=method, seed=s, metric=metric, value=v + s)
        for method, name in tables_of.items()
        for s in (0, 2)
        for metric, v in (
            ("local_test_acc", 80.0),
            ("fedavg_rounds", 3),
            ("params_communicated", 2e6),
            *(
                [("new_test_acc", 70.0)]
                if method == "fedavg"
                else [("new_test_acc_outputs", 60.0), ("new_test_acc_weights", 50.0)]
            ),
        )
    )
    found = tables.live(pd.concat([rows, rows.assign(selection="last", value=0.0)]), cfg)
    assert list(found.index) == ["FedAvg", "local only", "LG-FedAvg, version 1"]
    assert found["rounds"].tolist() == ["4", "none", f"4 + {cfg.further}"]
    assert found.loc["FedAvg"].tolist()[1:4] == [81, 71, 71]
    assert found.loc["LG-FedAvg, version 1"].tolist()[1:4] == [81, 61, 51]
