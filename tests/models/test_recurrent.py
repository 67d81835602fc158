"""The LSTM of plain operations against PyTorch's, and the networks for questions."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lgfed_core import models
from lgfed_core.data._torchvision import torchvision
from lgfed_core.models.recurrent import LSTM
from lgfed_core.models.vqa import QuestionNet, ResNet, shared
from lgfed_core.papers.lgfedavg.vqa.settings import SMALL

DOUBLE = torch.float64


@pytest.fixture(params=[(1, False), (1, True), (2, True)], ids=str)
def pair(request) -> tuple[LSTM, nn.LSTM]:
    layers, both = request.param
    own = models.make(lambda: LSTM(5, 4, layers, both), 3)
    theirs = models.make(lambda: nn.LSTM(5, 4, layers, batch_first=True, bidirectional=both), 3)
    return own.to(DOUBLE), theirs.to(DOUBLE)


def final(theirs: nn.LSTM, h: torch.Tensor) -> torch.Tensor:
    """The last layer's final states side by side; h [layers D, n, H] -> [n, D H]."""
    return torch.cat(list(h[-2 if theirs.bidirectional else -1 :]), -1)


def test_the_same_seed_gives_the_weights_of_pytorchs(pair):
    own, theirs = (net.state_dict() for net in pair)
    assert list(own) == list(theirs)
    assert all(torch.equal(own[name], theirs[name]) for name in own)


def test_values_and_gradients_are_those_of_pytorchs(pair):
    own, theirs = pair
    x = torch.randn(3, 6, 5, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    outputs, last = own(x)
    expected, (h, _) = theirs(x)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(last, final(theirs, h), rtol=0, atol=1e-12)
    (outputs.square().sum() + last.sum()).backward()
    (expected.square().sum() + final(theirs, h).sum()).backward()
    for name, p in own.named_parameters():
        torch.testing.assert_close(p.grad, theirs.get_parameter(name).grad, rtol=0, atol=1e-11)


def test_what_lies_behind_a_sequence_has_no_say(pair):
    own, theirs = pair
    rng = torch.Generator().manual_seed(1)
    x, lengths = torch.randn(4, 6, 5, dtype=DOUBLE, generator=rng), torch.tensor([6, 3, 1, 4])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    found, (h, _) = theirs(packed)
    expected, _ = pad_packed_sequence(found, batch_first=True)
    outputs, last = own(x, lengths)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(last, final(theirs, h), rtol=0, atol=1e-12)
    x[1, 3:] = 1e6
    assert torch.equal(own(x, lengths)[1], last)


def test_a_stack_of_lanes_takes_it(pair):
    own, _ = pair
    rng = torch.Generator().manual_seed(2)
    x, lengths = torch.randn(2, 3, 6, 5, dtype=DOUBLE, generator=rng), torch.tensor([[6, 2, 4]] * 2)
    stack = {
        n: torch.stack([p.detach(), 2 * p.detach()]).requires_grad_()
        for n, p in own.named_parameters()
    }

    def lane(params, x, lengths):
        outputs, last = functional_call(own, params, (x, lengths))
        return outputs.sum() + last.square().sum()

    losses = vmap(lane)(stack, x, lengths)
    losses.sum().backward()
    for k in range(2):
        params = {n: p[k].detach().requires_grad_() for n, p in stack.items()}
        alone = lane(params, x[k], lengths[k])
        alone.backward()
        torch.testing.assert_close(losses[k], alone)
        for n, p in params.items():
            torch.testing.assert_close(stack[n].grad[k], p.grad)


def test_the_papers_sizes_give_the_printed_counts():
    with torch.device("meta"):
        net = QuestionNet(224, 64_437, 1000)
    assert models.count(net, shared(net)) == 5_149_200
    assert sum(v.numel() for v in net.state_dict().values()) == 54_042_572
    assert models.count(net.pictures) == 11_689_512  # ResNet-18's well-known count
    assert models.count(net.questions) == 4 * 512 * (2 * 1024 + 4)
    assert pytest.approx(9.53, abs=0.005) == 100 * 5_149_200 / 54_042_572


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
