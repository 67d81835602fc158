"""The LSTM of plain operations against PyTorch's: values, gradients, unequal lengths."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lgfed_core import models
from lgfed_core.models.recurrent import LSTM

DOUBLE = torch.float64


@pytest.fixture(params=[(1, False), (1, True), (2, True)], ids=str)
def pair(request) -> tuple[LSTM, nn.LSTM]:
    layers, both = request.param
    own, theirs = (
        models.make(fn, 3).to(DOUBLE)
        for fn in (
            lambda: LSTM(5, 4, layers, both),
            lambda: nn.LSTM(5, 4, layers, batch_first=True, bidirectional=both),
        )
    )
    return own, theirs


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
