"""How representations are learned: who keeps labels, what leans, which weight is chosen."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.data.mnist import MEAN, STD
from lgfed_core.errors import SettingsError
from lgfed_core.metrics.linear import linear_probe
from lgfed_core.models import count
from lgfed_core.models.auxiliary import AuxiliaryMLP, head
from lgfed_core.papers.lgfedavg.representations import figures, labels, tables
from lgfed_core.papers.lgfedavg.representations.run import REPRESENTATIONS, TABLE
from lgfed_core.papers.lgfedavg.representations.settings import LABELS, WAYS
from toy import stored_row


def test_each_device_keeps_its_labels_and_the_fewer_are_among_the_more():
    cfg = REPRESENTATIONS.settings("smoke")
    images = labels.pictures(cfg)
    splits = [labels.split(cfg, images, seed) for seed in (0, 1)]
    kept = {}
    for n in (5, 10, 0):
        given, held = labels.few(images, splits, [0, 1], n)
        for r, (old, new) in enumerate(zip(splits, held, strict=True)):
            for k in range(cfg.devices):
                rows = new.train.of(k)
                known = given.train.y[rows] >= 0
                assert int(known.sum()) == (n or len(rows))
                kept[n, r, k] = set(rows[known].tolist())
                assert torch.equal(given.train.x[rows], images.train.x[old.train.of(k)])
                right = images.train.y[old.validation.of(k)]
                assert torch.equal(given.train.y[new.validation.of(k)], right)
    assert all(kept[5, r, k] < kept[10, r, k] < kept[0, r, k] for _, r, k in kept)
    assert labels.few(images, splits, [0, 1], 10)[0].test is images.test


def test_a_stroke_leans_to_where_its_top_is_and_half_of_each_digit_leans():
    bar = torch.zeros(3, 28, 28)
    for row in range(4, 24):
        bar[0, row, 14] = bar[1, row, 24 - row] = bar[2, row, row] = 1  # "|", "/", "\\"
    upright, right, left = labels.leaning(((bar - MEAN) / STD).view(3, 784)).tolist()
    assert (upright, right, left) == pytest.approx((0, 1, -1), abs=1e-4)
    images = labels.pictures(REPRESENTATIONS.settings("smoke"))
    for digit in range(10):
        assert images.train.groups[images.train.y == digit].float().mean() == 0.5


def test_a_probe_reads_what_is_linear_and_nothing_where_nothing_is():
    rng = np.random.default_rng(0)
    h, y = rng.standard_normal((400, 8)), np.arange(400) % 3
    there = h + 4 * np.eye(8)[y]
    assert linear_probe(there[:200], y[:200], there[200:], y[200:])[0] > 0.95
    assert linear_probe(h[:200], y[:200], h[200:], y[200:])[0] < 0.5
    two = y > 0
    moved = there[200:] + 50 * (np.arange(8) == 0)  # a threshold would say one class of all
    accuracy, area = linear_probe(there[:200], two[:200], moved, two[200:])
    assert accuracy < 0.7 and area > 0.95
    with pytest.raises(SettingsError, match="all 200 have one"):
        linear_probe(h[:200], y[:200] * 0, h, y)
    huge = np.full_like(h, 3e38, dtype=np.float32)  # finite, and its mean is not
    assert np.isnan(linear_probe(huge, y, huge, y)).all()
    for broken in (h * np.inf, np.full_like(h, np.nan)):  # of a network that has diverged
        assert np.isnan(linear_probe(broken, y, h, y)).all()
        assert np.isnan(linear_probe(h, y, broken, y)).all()


def test_the_network_has_the_parameters_of_its_table():
    net = AuxiliaryMLP(24)
    assert count(net, head(net)) == 2_410
    assert count(net) == 169_864 + 2_410 + (64 * 200 + 200) + (200 * 24 + 24)
    assert net(torch.ones(2, 784), features=True).shape == (2, 64)


def cell(way: str, weight: float, seed: int, value: float | None, n: int = 10) -> list[dict]:
    ids = dict(table=TABLE, way=way, labels=n, weight=weight, selection="last", seed=seed)
    if value is None:
        return [stored_row(metric="diverged", value=3, **ids)]
    names = ("validation_acc", tables.CHOOSING, *tables.TESTS)
    return [stored_row(metric=name, value=value, **ids) for name in names]


def test_a_weight_for_h_is_chosen_by_a_probe_and_equals_by_rule():
    by = {  # weight -> (accuracy on validation rows, probe on them)
        0.1: (80.001, 60.0), 1.0: (80.004, 70.0), 10.0: (79.0, 69.99),
    }  # fmt: skip
    rows = pd.DataFrame(
        stored_row(table=TABLE, way="jigsaw", labels=10, weight=weight, selection="last", seed=seed,
                   metric=metric, value=value + seed)
        for weight, (accuracy, probe) in by.items() for seed in range(2)
        for metric, value in (("validation_acc", accuracy), (tables.CHOOSING, probe),
                              *((test, 10 * weight) for test in tables.TESTS))
    )  # fmt: skip
    values = tables.chosen(rows)
    assert values["weight"].tolist() == [0.1, 0.1]  # the smallest of what is equal to a hundredth
    assert values["weight of h"].tolist() == [1.0, 1.0]
    assert values["local_test_acc"].tolist() == [1, 2] and values["probe_digit"].tolist() == [
        10,
        11,
    ]
    assert tables.shown(values, 10).loc["jigsaw", "weight"] == "0.1, h: 1"
    curves = rows.assign(round=1)
    assert set(tables.at_chosen(curves, values)["weight"]) == {0.1}
    assert tables.at_chosen(curves, values.iloc[:0]).empty


def test_figures_show_the_means_of_what_has_run():
    rows = pd.DataFrame(
        [line for way in WAYS for s in range(3) for n in (10, 50, 0)
         for line in cell(way, 1.0, s, 80 + s + 5 * (way == "jigsaw") + n / 10, n)]
    )  # fmt: skip
    figure = figures.few_labels(tables.chosen(rows))
    for ax in figure.axes:
        lines = dict(zip(WAYS, ax.lines, strict=True))
        by_labels = [81 + n / 10 for n in LABELS]
        assert lines["plain"].get_ydata() == pytest.approx(by_labels)
        assert lines["jigsaw"].get_ydata() == pytest.approx([5 + v for v in by_labels])
    assert "not yet run" in figures.few_labels(tables.chosen(rows.iloc[:0])).axes[0].get_title()
    curves = [
        dict(way=way, labels=n, seed=seed, round=r, metric=metric, value=10 * r + seed + n)
        for way in ("plain", "jigsaw") for n in (5, 0) for seed in (0, 2) for r in (1, 2)
        for metric in tables.TESTS
    ]  # fmt: skip
    axes = figures.panels(pd.DataFrame(curves)).axes
    assert [ax.get_title() for ax in axes[:2]] == ["5 labels a device", "all labels a device"]
    for ax, few in zip(axes, (5, 0, 5, 0), strict=True):
        drawn = [line.get_ydata().tolist() for line in ax.lines if len(line.get_ydata())]
        assert drawn == [[11 + few, 21 + few]] * 2
    plt.close("all")


def test_puzzles_are_the_same_pixels_in_another_place():
    x = torch.arange(2 * 784.0).view(2, 784)
    figure = figures.puzzles(x, torch.tensor([1, 0]))
    shown = [ax.images[0].get_array().data for ax in figure.axes]
    assert [ax.get_title() for ax in figure.axes[:2]] == ["leans", "upright"]
    for n, picture in enumerate(shown):
        assert np.array_equal(np.sort(picture, None), x[n % 2].numpy())
    assert np.array_equal(shown[0].ravel(), x[0].numpy())
    assert not np.array_equal(shown[3], shown[1])  # a jigsaw
    plt.close("all")


def test_late_moves_stand_in_the_order_of_the_other_tables():
    curves = [
        dict(way="plain", labels=n, weight=1, seed=0, round=r, metric=metric, value=r * (n + 1))
        for n in (0, 50, 10) for r in (10, 30, 40) for metric in list(tables.TESTS)[:2]
    ]  # fmt: skip
    late = tables.late(pd.DataFrame(curves))
    assert list(dict.fromkeys(late.columns.get_level_values(0))) == [
        "10 labels",
        "50 labels",
        "all labels",
    ]
    assert late.loc["g alone"].tolist() == [110, 110, 510, 510, 10, 10]
    assert late.loc["jigsaw"].isna().all()


def test_the_weight_is_chosen_on_validation_rows_of_those_that_ran_and_held():
    rows = [line for seed in range(3) for line in cell("jigsaw", 1.0, seed, 80 + seed)]
    rows += [line for seed in range(3) for line in cell("jigsaw", 0.1, seed, 85)]
    rows += [line for seed in range(3) for line in cell("jigsaw", 10, seed, 99 if seed else None)]
    rows += (
        cell("rotation", 1.0, 0, 70) + cell("rotation", 1.0, 1, 70) + cell("rotation", 10, 0, 99)
    )
    rows += [line for way in ("plain", "fedavg") for line in cell(way, 1.0, 0, 60)]
    rows = pd.DataFrame(rows)
    values = tables.chosen(rows)
    shown = values["weight"].groupby(level="way").first()
    assert shown["jigsaw"] == 0.1 and shown["rotation"] == 1
    assert tables.against(values, "local_test_acc").loc["jigsaw", "10 labels"].startswith("+25")
    assert "1 diverged" in tables.tried(rows).loc["10 labels, jigsaw", ("local test", "10")]
    nothing = tables.against(tables.chosen(rows.iloc[:0]), "local_test_acc")
    assert (nothing == "not yet run").all(axis=None)
