"""Simulated clients: clusters of embeddings, shuffled; sizes, rules and errors."""

import numpy as np
import pytest
import torch

from lgfed_core import clients, frechet
from lgfed_core.data import Dataset, Split
from lgfed_core.errors import PartitionError


def embeddings(per_class=(60, 80), test=30, d=5, seed=0) -> Dataset:
    """Three far-away blobs in each class, of which clusters can be made by eye."""
    rng = np.random.default_rng(seed)

    def split(sizes) -> Split:
        y = np.repeat(np.arange(len(sizes)), sizes)
        x = rng.normal(size=(len(y), d))
        x[:, 0] += 40 * (np.arange(len(y)) % 3) + 3 * y
        return Split(torch.from_numpy(x).float(), torch.from_numpy(y))

    return Dataset("blobs", split(per_class), split([test] * len(per_class)), len(per_class))


def test_a_client_holds_one_cluster_of_every_class():
    data = embeddings()
    found = clients.simulate(data, 3, 0.1, seed=0)
    for client, split in ((found.train, data.train), (found.test, data.test)):
        blob, y = np.arange(len(split)) % 3, split.y.numpy()
        for label in (0, 1):
            for k in range(3):
                mine = (client == k) & (y == label)
                assert mine.any() and len(set(blob[mine])) == 1, "parts of several blobs"
    assert found.random == ()
    assert sorted(np.unique(found.all)) == [0, 1, 2]


def test_every_row_has_a_client_and_one_place():
    data = embeddings()
    found = clients.simulate(data, 4, 0.2, seed=1)
    part = found.partition()
    seen = [torch.cat([rows.of(k) for k in range(4)]) for rows in (part.train, part.validation)]
    assert torch.cat(seen).sort().values.tolist() == list(range(140))
    assert torch.cat([part.test.of(k) for k in range(4)]).sort().values.tolist() == list(range(60))
    held = data.train.y[seen[1]].bincount()
    assert held.tolist() == [12, 16]  # a fifth of each class


def test_shuffling_keeps_sizes_and_moves_so_many_rows():
    found = clients.simulate(embeddings(), 3, 0.1, seed=0)
    sizes = np.bincount(found.all)
    for p in (0.0, 0.2, 0.6, 1.0):
        mixed = found.shuffled(p, seed=4)
        assert (np.bincount(mixed.all) == sizes).all()
        moved = (mixed.all != found.all).sum()
        assert moved <= int(p * 200)
        assert p == 0 or moved > 0.4 * p * 200  # a third stays where it was by chance
    assert (found.shuffled(0.0, 1).all == found.all).all()
    assert (found.shuffled(0.5, 1).all == found.shuffled(0.5, 1).all).all()
    assert (found.shuffled(0.5, 1).all != found.shuffled(0.5, 2).all).any()


def test_rows_shuffled_by_less_are_among_those_shuffled_by_more():
    """One seed draws one order, so that proportions of a repetition are comparable."""
    found = clients.simulate(embeddings(), 3, 0.1, seed=0)
    few, many = (np.flatnonzero(found.shuffled(p, 3).all != found.all) for p in (0.2, 1.0))
    assert len(few) and np.isin(few, many).mean() > 0.5


def test_gamma_falls_with_shuffling():
    data = embeddings()
    found = clients.simulate(data, 3, 0.1, seed=0)
    x = torch.cat([data.train.x, data.test.x]).numpy()
    gamma = [frechet.heterogeneity(x, found.shuffled(p, 0).all) for p in (0, 0.5, 1)]
    assert gamma[0] > gamma[1] > gamma[2]


def test_pca_and_clusters_do_not_see_validation_or_test_rows():
    data = embeddings()
    found = clients.simulate(data, 3, 0.2, seed=0)
    moved = Dataset("blobs", Split(data.train.x.clone(), data.train.y),
                    Split(data.test.x + 1000, data.test.y), 2)  # fmt: skip
    moved.train.x[torch.from_numpy(found.held)] *= -3
    again = clients.simulate(moved, 3, 0.2, seed=0)
    assert (found.train[~found.held] == again.train[~found.held]).all()


def test_a_class_smaller_than_the_number_of_clients_is_dealt_at_random():
    found = clients.simulate(embeddings(per_class=(5, 80)), 6, 0.0, seed=0)
    assert found.random == (0,)
    assert (found.all >= 0).all()
    data = embeddings(per_class=(12, 80))
    data.train.x[:12] = 1.0  # twelve rows, one point: no six clusters
    assert clients.simulate(data, 6, 0.0, seed=0).random == (0,)
    assert clients.simulate(embeddings(per_class=(6, 80)), 6, 0.0, seed=0).random == ()


def test_one_client_holds_everything_and_has_no_gamma():
    data = embeddings()
    found = clients.simulate(data, 1, 0.1, seed=0)
    assert set(found.all) == {0} and len(found.partition()) == 1
    with pytest.raises(PartitionError, match="one client"):
        frechet.heterogeneity(data.train.x, found.train)


def test_the_same_arguments_give_the_same_clients():
    data = embeddings()
    a, b = (clients.simulate(data, 5, 0.1, seed=7) for _ in range(2))
    assert (a.all == b.all).all() and (a.held == b.held).all()


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(clients=0), "at least 1"),
        (dict(clients=200), "200 clients, but only 140"),
        (dict(validation=1.0), r"\[0, 1\)"),
        (dict(data=embeddings(d=1)), "d of at least 2"),
    ],
)
def test_impossible_requests_are_named(changes, words):
    arguments = dict(data=embeddings(), clients=3, validation=0.1, seed=0) | changes
    with pytest.raises(PartitionError, match=words):
        clients.simulate(**arguments)


def test_rows_without_a_client_to_go_to_are_named():
    data = embeddings()
    data.test.y[:3] = 2
    with pytest.raises(PartitionError, match=r"class \[2\]"):
        clients.simulate(data, 3, 0.1, seed=0)
    few = embeddings(per_class=(4, 4), test=2)
    with pytest.raises(PartitionError, match=r"client \d+ has no training rows"):
        clients.simulate(few, 8, 0.0, seed=0).partition()
    with pytest.raises(PartitionError, match="proportion is 2"):
        clients.simulate(embeddings(), 3, 0.1, seed=0).shuffled(2, seed=0)
