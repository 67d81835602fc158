"""What knowing the client is worth, and what it gives away about labels: by hand, on noise, and on
the control."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lgfed_core import errors, plotting
from lgfed_core.evidence.verdict import greater
from lgfed_core.papers.cgau import federated
from lgfed_core.papers.cgau.audio.run import AUDIO
from lgfed_core.papers.cgau.gains import leaked
from lgfed_core.partition import feature_clusters


@pytest.fixture(scope="module")
def noise():
    """Ten classes that differ in nothing: 4,000 rows of noise with labels drawn at random."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4_000, 6)), rng.integers(10, size=4_000)
    part = feature_clusters.parts(y, np.arange(4_000) < 1_000, 0.1, 0)
    return x, y, part


def test_the_nearest_centroid_by_hand():
    """On a line: class 0 has its centroids at 0 and 10, class 1 at 10 and 0, class 2 has none."""
    means = np.array([[[0, 0], [10, 0]], [[10, 0], [0, 0]], [[np.nan] * 2] * 2])
    plane = np.array([[1.0, 0], [9, 0], [1, 0], [9, 0]])
    client, part = np.array([0, 0, 1, 1]), np.full(4, feature_clusters.TEST)
    who = feature_clusters.Clients(client, part, plane, means, (2,), 2)
    found = leaked(who, np.array([0, 1, 1, 0]))
    assert found["plane and client"] == 100 and found["plane"] == 50


def test_on_noise_the_client_alone_tells_the_class(noise):
    x, y, part = noise
    who = feature_clusters.simulate(x, y, part, 10, seed=0)
    found = leaked(who, y)
    assert found["plane"] == pytest.approx(10, abs=3)
    assert found["plane and client"] > 50
    mixed = leaked(who.shuffled(1.0, seed=0), y)
    assert mixed["plane and client"] == pytest.approx(10, abs=3)
    assert mixed["plane"] == found["plane"]


def test_clients_of_all_classes_together_depend_on_features_alone(noise):
    x, y, part = noise
    who = feature_clusters.simulate(x, y, part, 10, seed=0, within_classes=False)
    other = feature_clusters.simulate(x, (y + 1) % 10, part, 10, seed=0, within_classes=False)
    assert (who.client == other.client).all() and who.random == ()
    nearest = ((who.plane[:, None] - who.means[0]) ** 2).sum(-1).argmin(1)
    assert (who.client == nearest).all()
    assert not who.shuffled(0.5, 0).within_classes
    with pytest.raises(errors.PartitionError, match="not made class by class"):
        leaked(who, y)


def test_the_number_of_clients_to_try_leaves_the_positive_class_uncut():
    cfg = AUDIO.settings("quick", features="digits", clients=120)
    assert federated.simulated(cfg, cfg.load(), 0).random == (1,)


def test_nothing_is_told_of_a_class_dealt_at_random(noise):
    x, y, part = (v[:200] for v in noise)
    y = np.where(np.arange(200) < 4, 11, y)
    part = np.where(np.arange(200) < 50, feature_clusters.TEST, feature_clusters.TRAIN)
    part[:4] = np.repeat([feature_clusters.TRAIN, feature_clusters.TEST], 2)
    who = feature_clusters.simulate(x, y, part, 3, seed=0)
    assert who.random == (11,) and np.isnan(who.means[-1]).all()
    assert np.isnan([*leaked(who, y).values()]).all()  # a class without centroids


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_bands_are_as_wide_as_the_intervals_of_seeds_that_share_rows_and_end_at_the_most(shared):
    gain = pd.DataFrame(
        dict(shuffle_proportion=p, method="cgau_kept", seed=s, gain=0.2 + 0.1 * s)
        for p in (0.0, 1.0) for s in range(4)
    )  # fmt: skip
    wanted = greater(gain.loc[gain["shuffle_proportion"] == 0, "gain"], shared=shared)
    for most, high in ((np.inf, wanted.high), (0.4, 0.4)):
        axes = plt.figure().subplots()
        plotting.curves(gain, "shuffle_proportion", "gain", "method", axes, shared, most)
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == pytest.approx((wanted.low, high))
    plt.close("all")
