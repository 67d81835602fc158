"""Recurrent and embedding layers: alike in lanes of both kinds, or named before training."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core import Dataset, Federation, LGFedAvg, LocalOnly, Split, run
from lgfed_core.engine.checks.embeddings import Lookups, _Enough
from lgfed_core.engine.optimiser import AdamTraining, LocalTraining
from lgfed_core.errors import SettingsError
from lgfed_core.models import count, first_layers, make
from lgfed_core.models.layout import joined
from lgfed_core.models.text import TextNet
from lgfed_core.partition import iid
from toy import LANES, SGD, holding, models, toy_federation


class Reader(nn.Module):
    """Embeds and reads with layers of PyTorch's own."""

    def __init__(self, layer: nn.Module | None = None, **embedding):
        super().__init__()
        self.embedding = nn.Embedding(12, 4, **embedding)
        self.reader = layer or nn.Linear(4, 3)
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        z = self.reader(self.embedding(x.long()))
        return self.out((z[0] if isinstance(z, tuple) else z)[:, -1])


def federation(net_fn) -> Federation:
    """40 texts of one to five words on three devices; the class is whether the first is above 6."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randint(2, 12, (40, 5), generator=rng).float()
    y = (x[:, 0] > 6).long()
    x[torch.arange(5) >= torch.randint(1, 6, (40, 1), generator=rng)] = 0
    split = Split(x, y)
    return Federation(Dataset("t", split, split, 2), [iid(y, y, 3, 0)], make(net_fn, 0), [0])


def ran(net_fn, training, lanes: str) -> torch.Tensor:
    fed = federation(net_fn)
    method = LGFedAvg(layers=frozenset(n for n, _ in fed.net.named_parameters() if "out" in n))
    return models(run(fed, method, training(0.01, 4), 3, lanes=lanes, workers=1))


@pytest.mark.parametrize("training", [LocalTraining, AdamTraining])
def test_words_and_states_train_alike_in_both_kinds_of_lanes(training):
    net_fn = partial(TextNet, 12, classes=2, width=4, hidden=3, mlp=5)
    looped, batched = (ran(net_fn, training, lanes) for lanes in ("looped", "batched"))
    torch.testing.assert_close(looped, batched, rtol=0, atol=1e-4)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_of_pytorch_run_in_looped_lanes_and_are_refused_in_batched(layer):
    def net_fn():
        return Reader(layer(4, 3, batch_first=True))

    assert ran(net_fn, AdamTraining, "looped").isfinite().all()
    said = rf"Reader: reader is an nn.{layer.__name__}, .*recurrent.LSTM.*looped"
    with pytest.raises(SettingsError, match=said):
        ran(net_fn, AdamTraining, "batched")


def test_a_fifth_of_the_layers_is_one_and_the_counts_are_those_of_the_table():
    net = TextNet(1000)
    sizes = [count(net, first_layers(net, n)) for n in range(6)]
    assert sizes == [0, 64_000, 262_656, 394_240, 656_896, 659_461]


def test_known_vectors_are_what_embeddings_begin_with():
    vectors = torch.arange(6.0).view(3, 2)
    net = TextNet(5, width=4, hidden=2, mlp=3, vectors=vectors)
    assert torch.equal(net.embedding.weight[2:, :2], vectors)
    assert not net.embedding.weight[2:, 2:].any() and net.embedding.weight[:2].any()


class Words(nn.Module):
    """A table of ten lines, of which the first number of a row asks for one; ``how`` it is told."""

    def __init__(self, how=lambda x, table: F.embedding(x, table)):
        super().__init__()
        self.table, self.out, self.how = nn.Embedding(10, 4), nn.Linear(4, 3), how
        self.norm = nn.BatchNorm1d(4, affine=False)

    def forward(self, x):
        return self.out(self.norm(self.how(x[:, 0].long(), self.table.weight)))


def worded(train=None, test=None, net=Words):
    """Two devices; training rows 4 to 7 and 8 to 11, row 3 for validation. train: {row: word}."""
    fed = toy_federation(devices=2, net=net)
    for split, words in ((fed.data.train, train), (fed.data.test, test)):
        split.x[:, 0] = torch.arange(len(split.x)) % 10
        for row, word in (words or {}).items():
            split.x[row, 0] = word
    return holding(fed, train=[[4, 5, 6, 7], [8, 9, 10, 11]], validation=[[3], []])


def one_by_one(x, table):
    return torch.stack([F.embedding(word, table) for word in x])


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
    for how in (F.embedding, lambda x, table: torch.embedding(table, x), one_by_one):
        with pytest.raises(SettingsError, match=f"Words does not take {said}"):
            run(worded(train, test, Words(how)), LocalOnly(), SGD, 1, lanes=lanes)


def test_a_row_that_nobody_holds_may_ask_for_anything():
    assert models(run(worded({20: 99}), LocalOnly(), SGD, 1, lanes="batched")).isfinite().all()


@pytest.mark.parametrize(("name", "value"), [("padding_idx", 0), ("max_norm", 1.0)])
def test_what_batched_lanes_would_ignore_of_a_layer_or_a_call_is_refused(name, value):
    call = Words(lambda x, table: F.embedding(x, table.clone(), **{name: value}))
    for fed, said in (
        (federation(lambda: Reader(**{name: value})), f"embedding is an nn.Embedding with {name}"),
        (worded(net=call), f"Words computes an embedding with {name}, which"),
    ):
        assert models(run(fed, LocalOnly(), SGD, 1)).isfinite().all()
        with pytest.raises(SettingsError, match=said):
            run(fed, LocalOnly(), SGD, 1, lanes="batched")


@LANES
def test_sparse_gradients_are_refused(lanes):
    call = Words(lambda x, table: F.embedding(x, table, sparse=True))
    for fed in (federation(lambda: Reader(sparse=True)), worded(net=call)):
        with pytest.raises(SettingsError, match="sparse=False"):
            run(fed, LocalOnly(), SGD, 1, lanes=lanes)


def test_to_look_draws_nothing_and_changes_nothing():
    fed = worded(net=Words(lambda x, table: F.embedding(x, table) * torch.rand(1)))
    was, before = torch.get_rng_state(), joined(fed.net)
    run(fed, LocalOnly(), SGD, 0, lanes="batched")
    assert torch.equal(torch.get_rng_state(), was) and torch.equal(joined(fed.net), before)


def test_a_network_is_left_with_its_last_line():
    table, after = torch.zeros(3, 2), []
    with pytest.raises(_Enough), Lookups(4):
        F.embedding(torch.tensor([0, 1]), table)
        after.append(1)
        F.embedding(torch.tensor([2, 2]), table)
        after.append(2)
    assert after == [1]
