"""Simulated clients: clusters of embeddings, shuffled; sizes, rules and errors."""

import numpy as np
import pytest

from lgfed_core.errors import PartitionError
from lgfed_core.metrics import frechet
from lgfed_core.partition import feature_clusters
from lgfed_core.partition.feature_clusters import TEST, TRAIN, VALIDATION


def embeddings(per_class=(60, 80), test=30, d=5, validation=0.1):
    """x, y, part: three far-away blobs in each class, of which clusters can be made by eye."""
    rng = np.random.default_rng(0)
    sizes = [n + test for n in per_class]
    y = np.repeat(np.arange(len(sizes)), sizes)
    tested = np.concatenate([np.arange(n) >= n - test for n in sizes])
    x = rng.normal(size=(len(y), d))
    x[:, 0] += 40 * (np.arange(len(y)) % 3) + 3 * y
    return x, y, feature_clusters.parts(y, tested, validation, seed=0)


def simulated(*told, clients=3, **how):
    return feature_clusters.simulate(*(told or embeddings()), clients, seed=0, **how)


def test_a_client_holds_one_cluster_of_every_class():
    x, y, part = embeddings()
    found, blob = simulated(x, y, part), np.arange(200) % 3
    for p in (TRAIN, VALIDATION, TEST):
        for label in (0, 1):
            for k in range(3):
                mine = (found.client == k) & (y == label) & (part == p)
                assert len(set(blob[mine])) <= 1, "parts of several blobs"
    assert found.random == () and sorted(np.unique(found.client)) == [0, 1, 2]


def test_every_row_has_a_client_and_one_place():
    x, y, part = embeddings(validation=0.2)
    found = feature_clusters.simulate(x, y, part, 4, seed=1)
    split = found.partition()
    seen = {
        p: np.concatenate([rows.of(k) for k in range(4)])
        for p, rows in ((TRAIN, split.train), (VALIDATION, split.validation), (TEST, split.test))
    }
    assert sorted(np.concatenate(list(seen.values()))) == list(range(200))
    assert all((part[rows] == p).all() for p, rows in seen.items())
    assert np.bincount(y[part == VALIDATION]).tolist() == [12, 16]  # a fifth of each class
    assert (part == TEST).sum() == 60


def test_shuffling_keeps_sizes_and_moves_so_many_rows():
    x, y, part = embeddings()
    found = simulated(x, y, part)
    gamma = [frechet.heterogeneity(x, found.shuffled(p, 0).client) for p in (0, 0.5, 1)]
    assert gamma[0] > gamma[1] > gamma[2]
    sizes = np.bincount(found.client)
    for p in (0.0, 0.2, 0.6, 1.0):
        mixed = found.shuffled(p, seed=4)
        assert (np.bincount(mixed.client) == sizes).all()
        moved = (mixed.client != found.client).sum()
        assert moved <= int(p * 200)
        assert p == 0 or moved > 0.4 * p * 200  # a third stays where it was by chance
        assert (mixed.part == found.part).all()
    assert (found.shuffled(0.0, 1).client == found.client).all()
    assert (found.shuffled(0.5, 1).client == found.shuffled(0.5, 1).client).all()
    assert (found.shuffled(0.5, 1).client != found.shuffled(0.5, 2).client).any()


def test_pca_and_clusters_do_not_see_validation_or_test_rows():
    x, y, part = embeddings(validation=0.2)
    found = simulated(x, y, part)
    again = simulated(np.where((part == TRAIN)[:, None], x, -3 * x + 1000), y, part)
    assert (found.client[part == TRAIN] == again.client[part == TRAIN]).all()
    np.testing.assert_allclose(found.plane[part == TRAIN], again.plane[part == TRAIN])
    np.testing.assert_allclose(found.means, again.means)


def test_a_class_keeps_a_training_row_however_many_are_for_validation():
    part = feature_clusters.parts([0] * 4 + [1] * 3, [False] * 6 + [True], 0.99, seed=0)
    assert [(part[:4] == TRAIN).sum(), (part[4:] == TRAIN).sum(), part[6]] == [1, 1, TEST]


def test_a_class_smaller_than_the_number_of_clients_is_dealt_at_random():
    def six(per_class, flat=False):
        x, y, part = embeddings(per_class=per_class, validation=0)
        x[(y == 0) & (part == TRAIN)] *= not flat
        return simulated(x, y, part, clients=6)

    assert six((5, 80)).random == (0,) and (six((5, 80)).client >= 0).all()
    assert six((6, 80)).random == ()
    assert six((12, 80), flat=True).random == (0,)  # twelve rows, one point


def test_one_client_holds_everything():
    found = simulated(clients=1)
    assert set(found.client) == {0} and len(found.partition()) == 1


def with_foreign_tests():
    x, y, part = embeddings()
    return x, np.where(part == TEST, 2, y), part


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("at least 1", lambda: simulated(clients=0)),
        ("clients is True", lambda: simulated(clients=True)),
        ("200 clients, but only 126", lambda: simulated(clients=200)),
        ("d of at least 2", lambda: simulated(*embeddings(d=1))),
        (r"\[0, 1\)", lambda: embeddings(validation=1.0)),
        ("there are no rows", lambda: simulated(*(values[:0] for values in embeddings()))),
        (r"class \[2\]", lambda: simulated(*with_foreign_tests())),
        (r"client \d+ has no training rows", lambda: simulated(
            *embeddings((4, 4), test=2, validation=0), clients=8).partition()),
        ("proportion is 2", lambda: simulated().shuffled(2, seed=0)),
        ("test is int", lambda: feature_clusters.parts(
            np.zeros(4, int), np.array([0, 1, 2, 3]), 0.1, 0)),
    ],
)  # fmt: skip
def test_impossible_requests_are_named(said, asked):
    with pytest.raises(PartitionError, match=said):
        asked()


def test_without_its_own_class_a_row_goes_to_the_nearest_centroid_of_any():
    x, y, part = embeddings()
    released, found = simulated(x, y, part), simulated(x, y, part, own_class=False)
    np.testing.assert_array_equal(found.means, released.means)  # the same clusters
    far = ((found.plane[:, None, None] - found.means) ** 2).sum(-1)  # [n, C, K]
    assert (found.client == far.reshape(len(y), -1).argmin(1) % 3).all()
    assert (found.client != released.client).any()
    assert not found.shuffled(0.5, 0).own_class and released.own_class
    other = np.where(part == TEST, 1 - y, y)  # labels of test rows turned round
    for own in (False, True):
        found, again = (simulated(x, told, part, own_class=own) for told in (y, other))
        assert (found.client == again.client).all() != own


def test_rows_of_a_class_without_centroids_go_to_those_of_another():
    x, y, part = embeddings((60, 2), test=10)
    found = simulated(x, y, part, own_class=False)
    assert found.random == (1,) and np.isnan(found.means[1]).all()
    far = ((found.plane[:, None] - found.means[0]) ** 2).sum(-1)
    assert (found.client == far.argmin(1)).all()
    every = simulated(*embeddings((2, 2), test=10), own_class=False)
    assert every.random == (0, 1) and set(every.client) <= {0, 1, 2}  # there is none: dealt


def test_of_all_classes_together_the_nearest_centroid_is_of_any_class():
    x, y, part = embeddings()
    both = [simulated(x, y, part, within_classes=False, own_class=own) for own in (True, False)]
    assert (both[0].client == both[1].client).all()
