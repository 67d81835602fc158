"""The page on version 1: its numbers from made-up rows, its shares by hand, its curves."""

import pandas as pd
import pytest
import torch

from lgfed_core.data import Dataset, Split
from lgfed_core.evidence import records as results
from lgfed_core.papers.lgfedavg.version1 import run as v1, tables
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


def test_values_are_of_full_length_and_by_seed(tmp_path):
    ids = (VERSION1.table, "mnist", "lg_fedavg", "local_test_acc")
    rows = stored(tmp_path, {(*ids, 2): 98.0, (*ids, 0): 99.0})
    assert tables.values_of(rows, *ids[:2], ids[3], ids[2]).to_dict() == {0: 99.0, 2: 98.0}
    assert tables.values_of(rows, v1.BESIDE, "mnist", ids[3], ids[2]).empty
    short = rows.assign(scale="quick")
    assert tables.values_of(short, *ids[:2], ids[3], ids[2]).empty


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
