"""A GPU's convolutions beside PyTorch's; without a GPU by Triton's interpreter (conftest.py)."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import grad, vmap

PLACE = "cuda" if torch.cuda.is_available() else "cpu"
LANES, ROWS, CHANNELS, HIGH, WIDE, INTO, SIZE = 3, 2, 2, 6, 5, 3, 3


@pytest.fixture(scope="module")
def ours():
    """The module, with blocks that do not divide what there is."""
    pytest.importorskip("triton", reason="is there on Linux alone")
    from lgfed_core.models import device_convolution

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_convolution, "BLOCK", 16)
        patch.setattr(device_convolution, "WEIGHT_BLOCK", 8)
        yield device_convolution


@pytest.fixture
def given():
    """x [L, n, C, H, W], weight [L, O, C, h, h] as a part of each lane's vector, bias [L, O]."""
    torch.manual_seed(0)
    x, bias = torch.randn(LANES, ROWS, CHANNELS, HIGH, WIDE), torch.randn(LANES, INTO)
    vectors = torch.randn(LANES, 5 + INTO * CHANNELS * SIZE**2).to(PLACE)
    return x.to(PLACE), vectors[:, 5:].unflatten(1, (INTO, CHANNELS, SIZE, SIZE)), bias.to(PLACE)


def taken(convolve, given):
    """Outputs, and their gradients of first and second order."""
    leaves = [t.detach().requires_grad_() for t in given]
    out = vmap(convolve)(*leaves)
    first = torch.autograd.grad(out.sin().sum(), leaves, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
    return [out, *first, *second]


def test_lanes_have_the_outputs_and_gradients_of_pytorchs_convolution(ours, given):
    due, found = taken(F.conv2d, given), taken(ours.convolution, given)
    for one, other in zip(due, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)


def test_gradients_may_be_taken_inside_of_a_lane(ours, given):
    def of(convolve):
        return vmap(grad(lambda w, x, b: convolve(x, w, b).sin().sum()))(
            given[1], given[0], given[2]
        )

    torch.testing.assert_close(of(ours.convolution), of(F.conv2d), rtol=1e-4, atol=1e-4)


def test_lanes_may_share_their_rows_and_one_device_needs_no_lanes(ours, given):
    x, weight, bias = given
    shared = (None, 0, 0)
    found = vmap(ours.convolution, shared)(x[0], weight, bias)
    torch.testing.assert_close(found, vmap(F.conv2d, shared)(x[0], weight, bias))
    last = x[0].to(memory_format=torch.channels_last)
    torch.testing.assert_close(ours.convolution(last, weight[0], None), F.conv2d(last, weight[0]))


def test_sums_have_the_same_bits_again(ours, given):
    once, again = taken(ours.convolution, given), taken(ours.convolution, given)
    assert all(map(torch.equal, once, again))
