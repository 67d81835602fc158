"""Curves over the share of shuffled rows: their bands, and the order of methods."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from lgfed_core.evidence.verdict import greater
from lgfed_core.papers.cgau.gains import drawn


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_bands_are_as_wide_as_the_intervals_of_seeds_that_share_rows():
    gain = pd.DataFrame(
        dict(shuffle_proportion=p, method="cgau_kept", seed=s, gain=0.2 + 0.1 * s)
        for p in (0.0, 1.0) for s in range(4)
    )  # fmt: skip
    for shared in (0.0, 0.5):
        ax = drawn(gain, "gain", plt.figure().subplots(), shared)
        band = ax.collections[0].get_paths()[0].vertices[:, 1]
        wanted = greater(gain.loc[gain["shuffle_proportion"] == 0, "gain"], shared=shared)
        assert (band.min(), band.max()) == pytest.approx((wanted.low, wanted.high))


def test_bands_of_a_share_end_at_100_and_panels_name_methods_in_one_order():
    lines = [
        (str(p), method, seed, value + seed)
        for method, value in (("cgau_averaged", 97.0), ("cgau_kept", 98.0), ("baseline", 96.0))
        for seed in (0, 1)
        for p in (0.0, 1.0)
    ]
    rows = pd.DataFrame(lines, columns=["shuffle_proportion", "method", "seed", "value"])
    ax = drawn(rows, "value", plt.figure().subplots(), most=100.0)
    assert max(band.get_paths()[0].vertices[:, 1].max() for band in ax.collections) == 100
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert said[1:] == ["CGAU, rows kept", "CGAU, rows averaged"]
