"""How representations are learned: who keeps labels, what leans, which weight is chosen."""

import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.data.mnist import MEAN, STD
from lgfed_core.errors import SettingsError
from lgfed_core.metrics.linear import linear_probe
from lgfed_core.models import count
from lgfed_core.models.auxiliary import AuxiliaryMLP, head
from lgfed_core.papers.lgfedavg.representations import labels
from lgfed_core.papers.lgfedavg.representations.measures import CHOOSING
from lgfed_core.papers.lgfedavg.representations.run import REPRESENTATIONS, TABLE
from toy import page, stored_row

PAGE = page("lgfedavg/representations")


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


def cell(way: str, weight: float, seed: int, value: float | None, **other: float) -> list[dict]:
    """Rows of one run, all metrics with one ``value`` but ``other`` ones; None: it diverged."""
    ids = dict(table=TABLE, way=way, labels=10, weight=weight, selection="last", seed=seed)
    if value is None:
        return [stored_row(metric="diverged", value=3, **ids)]
    numbers = dict.fromkeys(("validation_acc", CHOOSING, *PAGE.TESTS), value) | other
    return [stored_row(metric=name, value=number, **ids) for name, number in numbers.items()]


def test_a_weight_for_h_is_chosen_by_a_probe_and_equals_by_rule():
    by = {0.1: (80.001, 60.0), 1.0: (80.004, 70.0), 10.0: (79.0, 69.99)}  # on validation rows
    rows = pd.DataFrame(
        line
        for weight, (accuracy, probe) in by.items()
        for seed in (0, 1)
        for line in cell(
            *("jigsaw", weight, seed, 10 * weight + seed),
            **{"validation_acc": accuracy + seed, CHOOSING: probe + seed},
        )
    )
    lost = [*cell("rotation", 10, 0, 99), *cell("rotation", 10, 1, None)]
    held = [line for seed in (0, 1) for line in cell("rotation", 1.0, seed, 70)]
    values = PAGE.chosen(pd.concat([rows, pd.DataFrame(lost + held)]))
    assert values.xs("rotation", level="way")["weight"].tolist() == [1.0, 1.0]
    values = values.xs("jigsaw", level="way", drop_level=False)
    assert values["weight"].tolist() == [0.1, 0.1]  # the smallest of what is equal to a hundredth
    assert values["weight of h"].tolist() == [1.0, 1.0]
    assert values["local_test_acc"].tolist() == [1, 2]
    assert values["probe_digit"].tolist() == [10, 11]
    assert PAGE.cell(values, 10, "jigsaw").index.tolist() == [0, 1]
    assert PAGE.cell(values, 50, "jigsaw").empty and PAGE.chosen(rows.iloc[:0]).empty
