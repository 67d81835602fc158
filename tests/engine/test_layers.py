"""Recurrent and embedding layers in lanes of both kinds; what lanes cannot take is named."""

from functools import partial

import pytest
import torch
from torch import nn

from lgfed_core import models
from lgfed_core.data import Dataset, Split
from lgfed_core.engine import Federation, run
from lgfed_core.engine.training import AdamTraining, LocalTraining
from lgfed_core.errors import SettingsError
from lgfed_core.methods import LGFedAvg
from lgfed_core.models.text import TextNet
from lgfed_core.partition import iid


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
    return Federation(Dataset("t", split, split, 2), [iid(y, y, 3, 0)], models.make(net_fn, 0), [0])


def ran(net_fn, training, lanes: str) -> torch.Tensor:
    fed = federation(net_fn)
    method = LGFedAvg(layers=frozenset(n for n, _ in fed.net.named_parameters() if "out" in n))
    t = run(fed, method, training(0.01, 4), 3, lanes=lanes, workers=1).tensors
    return torch.cat([t["shared"].flatten(), t["personal"].flatten()])


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


def test_what_batched_lanes_would_ignore_is_refused():
    for name, value in (("padding_idx", 0), ("max_norm", 1.0)):
        net_fn = partial(Reader, **{name: value})
        assert ran(net_fn, LocalTraining, "looped").isfinite().all()
        with pytest.raises(SettingsError, match=f"embedding is an nn.Embedding with {name}"):
            ran(net_fn, LocalTraining, "batched")
    for lanes in ("looped", "batched"):
        with pytest.raises(SettingsError, match="sparse=False"):
            ran(partial(Reader, sparse=True), LocalTraining, lanes)


def test_a_fifth_of_the_layers_is_one_and_the_counts_are_those_of_the_table():
    net = TextNet(1000)
    sizes = [models.count(net, models.first_layers(net, n)) for n in range(6)]
    assert sizes == [0, 64_000, 262_656, 394_240, 656_896, 659_461]


def test_known_vectors_are_what_embeddings_begin_with():
    vectors = torch.arange(6.0).view(3, 2)
    net = TextNet(5, width=4, hidden=2, mlp=3, vectors=vectors)
    assert torch.equal(net.embedding.weight[2:, :2], vectors)
    assert not net.embedding.weight[2:, 2:].any() and net.embedding.weight[:2].any()
