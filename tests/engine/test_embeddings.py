"""Embeddings: what is beside a table, or what lanes would ignore, is named before training."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core.engine import run
from lgfed_core.engine.checks.embeddings import Lookups, _Enough
from lgfed_core.errors import SettingsError
from lgfed_core.methods import LocalOnly
from toy import LANES, SGD, holding, models, toy_federation


class Words(nn.Module):
    """A table of ten lines, of which the first number of a row asks for one; ``how`` it is told."""

    def __init__(self, how=lambda x, table: F.embedding(x, table)):
        super().__init__()
        self.table, self.out, self.how = nn.Embedding(10, 4), nn.Linear(4, 3), how
        self.norm = nn.BatchNorm1d(4, affine=False)

    def forward(self, x):
        return self.out(self.norm(self.how(x[:, 0].long(), self.table.weight)))


def federation(train=None, test=None, net=None):
    """Two devices; training rows 4 to 7 and 8 to 11, row 3 for validation. train: {row: word}."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fed = toy_federation(devices=2, net=net or Words())
    for split, words in ((fed.data.train, train), (fed.data.test, test)):
        split.x[:, 0] = torch.arange(len(split.x)) % 10
        for row, word in (words or {}).items():
            split.x[row, 0] = word
    return holding(fed, train=[[4, 5, 6, 7], [8, 9, 10, 11]], validation=[[3], []])


@LANES
@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        ({6: 11}, {}, "training row 6: .* 10 lines, numbered from 0, is asked for line 11"),
        ({9: -1, 10: 12}, {}, "training row 9: .* asked for line -1"),
        ({3: 10}, {}, "training row 3: .* asked for line 10"),
        ({}, {59: 99}, "test row 59: .* asked for line 99"),
        ({0: 10}, {}, "row 0: .* asked for line 10"),
    ],
)
def test_a_row_beside_the_table_is_named_and_trains_no_other_device(lanes, train, test, said):
    for how in (F.embedding, lambda x, table: torch.embedding(table, x)):
        with pytest.raises(SettingsError, match=f"Words does not take {said}"):
            run(federation(train, test, Words(how)), LocalOnly(), SGD, 1, lanes=lanes)


def test_a_row_that_nobody_holds_may_ask_for_anything():
    assert models(run(federation({20: 99}), LocalOnly(), SGD, 1, lanes="batched")).isfinite().all()


def test_rows_of_a_loop_are_looked_up_one_by_one():
    def one_by_one(x, table):
        return torch.stack([F.embedding(word, table) for word in x])

    with pytest.raises(SettingsError, match="training row 11: .* asked for line 10"):
        run(federation({11: 10}, net=Words(one_by_one)), LocalOnly(), SGD, 1)


@pytest.mark.parametrize(("name", "value"), [("padding_idx", 0), ("max_norm", 1.0)])
def test_what_batched_lanes_would_ignore_is_refused(name, value):
    net = Words(lambda x, table: F.embedding(x, table.clone(), **{name: value}))
    assert models(run(federation(net=net), LocalOnly(), SGD, 1)).isfinite().all()
    with pytest.raises(SettingsError, match=f"Words computes an embedding with {name}, which"):
        run(federation(net=net), LocalOnly(), SGD, 1, lanes="batched")


@LANES
def test_sparse_gradients_are_refused(lanes):
    net = Words(lambda x, table: F.embedding(x, table, sparse=True))
    with pytest.raises(SettingsError, match="sparse=False"):
        run(federation(net=net), LocalOnly(), SGD, 1, lanes=lanes)


def test_to_look_draws_nothing_and_changes_nothing():
    fed = federation(net=Words(lambda x, table: F.embedding(x, table) * torch.rand(1)))
    before = {name: value.clone() for name, value in fed.net.state_dict().items()}
    torch.manual_seed(1)
    wanted = torch.rand(1)
    torch.manual_seed(1)
    run(fed, LocalOnly(), SGD, 0, lanes="batched")
    assert torch.equal(torch.rand(1), wanted)
    assert all(torch.equal(before[name], value) for name, value in fed.net.state_dict().items())


def test_a_network_is_left_with_its_last_line():
    table, after = torch.zeros(3, 2), []
    with pytest.raises(_Enough), Lookups(4):
        F.embedding(torch.tensor([0, 1]), table)
        after.append(1)
        F.embedding(torch.tensor([2, 2]), table)
        after.append(2)
    assert after == [1]
