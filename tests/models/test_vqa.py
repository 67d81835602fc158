"""The network for questions about pictures: counts as printed, and what its rows mean."""

import pytest
import torch
from torch import nn

from lgfed_core import models
from lgfed_core.data._torchvision import torchvision
from lgfed_core.models.recurrent import LSTM
from lgfed_core.models.vqa import QuestionNet, ResNet, shared
from lgfed_core.papers.lgfedavg.vqa.settings import SMALL


def test_the_papers_sizes_give_the_printed_counts():
    with torch.device("meta"):
        net = QuestionNet(224, 64_437, 1000)
    assert models.count(net, shared(net)) == 5_149_200
    assert sum(v.numel() for v in net.state_dict().values()) == 54_042_572
    parts = {name: models.count(net, dict(_named(net, name))) for name, _ in net.named_children()}
    assert parts["pictures"] == 11_689_512  # ResNet-18's well-known count
    assert parts["questions"] == 4 * 512 * (2 * 1024 + 4)
    assert pytest.approx(9.53, abs=0.005) == 100 * 5_149_200 / 54_042_572


def _named(net, part):
    return ((n, p) for n, p in net.named_parameters() if n.split(".")[0] == part)


def test_the_residual_network_is_torchvisions():
    theirs, own = torchvision.models.resnet18().eval(), ResNet().eval()
    values = zip(own.state_dict().values(), theirs.state_dict().values(), strict=True)
    assert all(a.shape == b.shape for a, b in values)
    own.load_state_dict(dict(zip(own.state_dict(), theirs.state_dict().values(), strict=True)))
    x = torch.randn(1, 3, 64, 64)
    assert torch.allclose(own(x), theirs(x), atol=1e-4)


def test_states_and_cells_of_both_layers_are_pytorchs():
    own = models.make(lambda: LSTM(5, 4, layers=2), 1)
    theirs = nn.LSTM(5, 4, 2, batch_first=True)
    theirs.load_state_dict(own.state_dict())
    x = torch.randn(3, 6, 5)
    _, (h, c) = theirs(x)  # [2, n, 4] both
    expected = torch.cat([h[0], c[0], h[1], c[1]], -1)
    assert torch.allclose(own.final(x), expected, atol=1e-6)
    longer = torch.cat([x, torch.randn(3, 2, 5)], 1)
    assert torch.allclose(own.final(longer, torch.tensor([6, 6, 6])), expected, atol=1e-6)


def test_the_answer_depends_on_picture_and_words_but_not_on_what_pads_them():
    net = models.make(lambda: QuestionNet(8, 9, 3, **SMALL), 0)
    row = torch.cat([torch.randn(1, 192), torch.tensor([[3.0, 5, 0]])], 1)
    said = net(row)
    assert said.shape == (1, 3)
    longer = torch.cat([row, torch.zeros(1, 4)], 1)
    assert torch.allclose(net(longer), said, atol=1e-6)
    for place in (7, 192):
        other = row.clone()
        other[0, place] += 1
        assert not torch.allclose(net(other), said, atol=1e-6)
    own = models.count(net, shared(net))
    assert 0.09 < own / models.count(net) < 0.1  # as in the paper, 9.53 %
