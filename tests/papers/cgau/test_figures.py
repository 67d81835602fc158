"""Figures of the CGAU chapter show what they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lgfed_core.evidence.verdict import greater
from lgfed_core.papers.cgau import figures
from lgfed_core.papers.cgau.xor import run as xor
from lgfed_core.partition.feature_clusters import Clients


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_unit_names_both_weights_of_filter_and_gate():
    said = {text.get_text() for text in figures.unit().texts}
    assert {"$W_f$", "$V_f$", "$W_g$", "$V_g$", "$x$", "$h$", "$z$"} <= said


def test_maps_of_xor_are_of_the_networks_and_of_parts_switched_off():
    cfg = xor.settings("smoke", spread=0.1)
    net = xor.OneUnit()
    for parameter in net.parameters():
        parameter.data.zero_()
    net.out.bias.data.fill_(2.0)  # one class everywhere; the gate is half open
    figure = figures.xor(xor.MLP(), net, cfg)
    axes = figure.axes
    assert [text.get_text() for text in figure.legends[0].texts] == list(xor.CLASSES)
    maps = {ax.get_title(): ax.images[0].get_array() for ax in axes}
    assert [title[0] for title in maps] == list("acegbdfh")
    assert np.allclose(maps["b  CGAU"], 1 / (1 + np.exp(-2.0)))
    assert np.allclose(maps["d  gate, no client"], 0.5) and not maps["c  filter, no client"].any()
    below, above = (ax.collections[c].get_offsets() for ax in axes[:1] for c in (0, 1))
    assert (below.prod(1) >= 0).all() and (above.prod(1) < 0).all()  # the two classes


def test_clients_lie_where_their_rows_do_apart_by_class():
    plane, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 1, 1, 1])
    client = np.array([0, 1, 1, 0, 0, 1])
    these = Clients(client, np.zeros(6), plane, np.zeros((2, 2, 2)), (), 2)
    axes = np.reshape(figures.clients([("one", these), ("two", these)], y).axes, (2, 2))
    assert [ax.get_title() for ax in axes[0]] == ["one", "two"]
    for label, row in enumerate(axes):
        for ax in row:
            for k, marks in enumerate(ax.collections):
                mine = plane[(y == label) & (client == k)]
                assert np.array_equal(marks.get_offsets(), mine)


def test_lines_are_means_over_seeds_and_the_papers_two_numbers_stand_in_words():
    rows = pd.DataFrame(
        dict(shuffle_proportion=str(p), method=m, seed=s, metric="test_acc", value=v + s - 10 * p)
        for m, v in (("baseline", 60.0), ("cgau_kept", 70.0))
        for p in (0.0, 1.0)
        for s in (0, 2)
    )
    ax = figures.figure2b(pd.concat([rows, rows.assign(metric="loss", value=0.0)]))
    drawn = [line.get_ydata().tolist() for line in ax.lines]
    assert sorted(drawn) == [[61, 51], [71, 61]] and "(CGAU)" in ax.get_title()
    gain = rows.assign(gain=rows["value"] - 60, shuffle_proportion=1.0)
    ax = figures.gains(gain, plt.figure().subplots())
    assert [line.get_ydata()[0] for line in ax.lines] == pytest.approx([-4, 6, 0])


def test_bands_are_as_wide_as_the_intervals_of_seeds_that_share_rows():
    gain = pd.DataFrame(
        dict(shuffle_proportion=p, method="cgau_kept", seed=s, gain=0.2 + 0.1 * s)
        for p in (0.0, 1.0) for s in range(4)
    )  # fmt: skip
    for shared in (0.0, 0.5):
        ax = figures.gains(gain, plt.figure().subplots(), shared)
        band = ax.collections[0].get_paths()[0].vertices[:, 1]
        wanted = greater(gain.loc[gain["shuffle_proportion"] == 0, "gain"], shared=shared)
        assert (band.min(), band.max()) == pytest.approx((wanted.low, wanted.high))


def test_bands_of_a_share_end_at_100_and_panels_name_methods_in_one_order():
    lines = [
        (p, method, seed, "test_auc", value + seed)
        for method, value in (("cgau_averaged", 97.0), ("cgau_kept", 98.0), ("baseline", 96.0))
        for seed in (0, 1)
        for p in (0.0, 1.0)
    ]
    columns = ["shuffle_proportion", "method", "seed", "metric", "value"]
    rows = pd.DataFrame(lines, columns=columns)
    _, (left, right) = plt.subplots(1, 2)
    figures.shuffling(rows, "test_auc", left)
    assert max(band.get_paths()[0].vertices[:, 1].max() for band in left.collections) == 100
    gain = rows[rows["method"] != "baseline"].rename(columns={"value": "gain"})
    figures.gains(gain, right)
    assert max(band.get_paths()[0].vertices[:, 1].max() for band in right.collections) > 100
    first, second = (
        [text.get_text() for text in ax.get_legend().get_texts()] for ax in (left, right)
    )
    assert first[1:] == second == ["CGAU, rows kept", "CGAU, rows averaged"]
