"""What simulated clients give away about labels: by hand, on noise, and on the control."""

import numpy as np
import pytest

from lgfed_core import errors
from lgfed_core.papers.cgau import federated
from lgfed_core.papers.cgau.audio.run import AUDIO
from lgfed_core.papers.cgau.clients import leak as client_leak
from lgfed_core.partition import feature_clusters


@pytest.fixture(scope="module")
def noise():
    """Ten classes that differ in nothing: 4,000 rows of noise with labels drawn at random."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4_000, 6)), rng.integers(10, size=4_000)
    part = feature_clusters.parts(y, np.arange(4_000) < 1_000, 0.1, 0)
    return x, y, part


def test_classes_left_by_hand():
    """On a line: class 0 has its centroids at 0 and 10, class 1 at 10 and 0, class 2 has none."""
    means = np.array([[[0, 0], [10, 0]], [[10, 0], [0, 0]], [[np.nan] * 2] * 2])
    plane = np.array([[1.0, 0], [9, 0], [1, 0], [9, 0]])
    client, part = np.array([0, 0, 1, 1]), np.full(4, feature_clusters.TEST)
    who = feature_clusters.Clients(client, part, plane, means, (2,), 2)
    assert client_leak._possible(who).tolist() == [
        [True, False, False, True],
        [False, True, True, False],
        [True] * 4,
    ]
    assert client_leak.classes_left(who).tolist() == [2, 2, 2, 2]
    found = client_leak.told(who, np.array([0, 1, 1, 0]))
    assert found["plane and client"] == 100 and found["plane"] == 50
    other = feature_clusters.Clients(client, part, plane, means[[0, 0, 2]], (2,), 2)
    assert client_leak.classes_left(other).tolist() == [3, 1, 1, 3]


def test_on_noise_the_client_alone_tells_the_class(noise):
    x, y, part = noise
    who = feature_clusters.simulate(x, y, part, 10, seed=0)
    left = client_leak.classes_left(who)
    assert (left >= 1).all(), "a row's own class is never ruled out"
    assert left.mean() == pytest.approx(1 + 9 / 10, abs=0.3)
    found = client_leak.told(who, y)
    assert found["plane"] == pytest.approx(10, abs=3)
    assert found["plane and client"] > 50
    mixed = client_leak.told(who.shuffled(1.0, seed=0), y)
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
    for ask in (client_leak.classes_left, lambda w: client_leak.told(w, y)):
        with pytest.raises(errors.PartitionError, match="not made class by class"):
            ask(who)


def test_how_much_the_number_gives_away_by_hand():
    """On a line, centroids as above: two rows may be of either class, or none may."""
    means = np.array([[[0, 0], [10, 0]], [[10, 0], [0, 0]]], float)
    plane, test = np.array([[1.0, 0], [9, 0], [1, 0], [9, 0]]), np.full(4, feature_clusters.TEST)
    who = feature_clusters.Clients(np.array([0, 0, 1, 1]), test, plane, means, (), 2)
    found = client_leak.given_away(who, np.array([0, 1, 1, 0]))
    assert found == {"another class": 0.0, "alone": 100.0}
    same = feature_clusters.Clients(who.client, test, plane, means[[0, 0]], (), 2)
    found = client_leak.given_away(same, np.array([0, 1, 1, 0]))
    assert found == {"another class": 50.0, "alone": 50.0}


def test_the_number_of_clients_to_try_leaves_the_positive_class_uncut():
    cfg = AUDIO.settings("quick", features="digits", clients=120)
    assert federated.simulated(cfg, cfg.load(), 0).random == (1,)


def test_a_class_dealt_at_random_cannot_be_ruled_out(noise):
    x, y, part = (v[:200] for v in noise)
    y = np.where(np.arange(200) < 4, 11, y)
    part = np.where(np.arange(200) < 50, feature_clusters.TEST, feature_clusters.TRAIN)
    part[:4] = np.repeat([feature_clusters.TRAIN, feature_clusters.TEST], 2)
    who = feature_clusters.simulate(x, y, part, 3, seed=0)
    assert who.random == (11,) and np.isnan(who.means[-1]).all()
    assert client_leak._possible(who)[-1].all()
    assert np.isnan([*client_leak.told(who, y).values()]).all()  # a class without centroids
