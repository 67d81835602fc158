"""What an update gives away, against layers and pictures of which everything is known."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core.metrics import inversion


@pytest.fixture
def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield nn.Sequential(nn.Linear(16, 40), nn.ReLU(), nn.Linear(40, 3))


def gradients(net, x, y):
    return torch.autograd.grad(F.cross_entropy(net(x), y), list(net.parameters()))


def test_one_row_comes_back_whole_with_its_label(net):
    for label in range(3):
        x = torch.randn(1, 16)
        weight, bias, _, last = gradients(net, x, torch.tensor([label]))
        for scale in (1.0, -0.1):  # a change of weights is a multiple of a gradient
            found = inversion.only_input(scale * weight, scale * bias)
            torch.testing.assert_close(found, x[0], rtol=1e-3, atol=1e-4)
        assert inversion.only_label(last) == label
        alone = inversion.inputs(weight, bias)
        assert 0 < len(alone) < 40  # the others rest
        torch.testing.assert_close(alone, x.expand_as(alone), rtol=1e-2, atol=1e-3)
        small = inversion.inputs(1e-13 * weight, 1e-13 * bias)  # of a network that is sure
        torch.testing.assert_close(small, alone)


def test_several_rows_come_back_mixed(net):
    x = torch.randn(4, 16)
    weight, bias, *_ = gradients(net, x, torch.tensor([0, 1, 2, 0]))
    said = inversion.inputs(weight, bias)
    shares = torch.linalg.lstsq(x.T, said.T).solution  # [4, units]
    torch.testing.assert_close(shares.sum(0), torch.ones(len(said)), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(shares.T @ x, said, rtol=1e-2, atol=1e-2)


@pytest.fixture
def seen(net):
    """Layers, others, five rows, what the first make of them, and many rows of the kind."""
    rng = torch.Generator().manual_seed(1)
    public, mine = torch.rand(400, 16, generator=rng), torch.rand(5, 16, generator=rng)
    other = nn.Sequential(nn.Linear(16, 40), nn.ReLU())
    return net[:2], other, mine, net[:2](mine).detach(), public


def test_who_knows_the_layers_below_finds_the_row_and_who_does_not_does_not(seen):
    layers, other, mine, h, public = seen
    how = dict(low=0.0, high=1.0, steps=150, smooth=0.0)
    known = inversion.behind(layers, h, public, **how)
    foreign = inversion.behind(other, h, public, **how)
    assert known.min() >= 0 and known.max() <= 1
    near, far = (inversion.correlation(x, mine).mean().item() for x in (known, foreign))
    assert near > 0.95 and far < 0.6
    assert torch.equal(known, inversion.behind(layers, h, public, **how))


def test_measures_by_hand():
    a = torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    b = torch.tensor([[0.0, -2.0, -4.0], [0.0, 1.0, 0.0]])
    assert inversion.correlation(a, b).tolist() == pytest.approx([-1.0, 0.0])
    ten = inversion.psnr(torch.zeros(4), torch.full((4,), 0.1), 1.0)
    assert ten.item() == pytest.approx(20.0, abs=1e-4)


def test_a_linear_map_does_not_depend_on_the_unit_of_what_it_reads():
    rng = torch.Generator().manual_seed(0)
    x, mine = torch.rand(80, 4, generator=rng), torch.rand(3, 4, generator=rng)
    layer = torch.randn(4, 6, generator=rng)
    near, far = (inversion.decoded(c * mine @ layer, c * x @ layer, x, 0.1) for c in (1.0, 100.0))
    torch.testing.assert_close(near, far, rtol=1e-3, atol=1e-4)


def test_smoother_pictures_where_that_is_asked_and_lengths_of_a_stranger_are_left_out(seen):
    layers, other, _, h, public = seen
    rough, smooth = (
        inversion.behind(layers, h, public, 0.0, 1.0, steps=60, smooth=s) for s in (0.0, 0.2)
    )
    varies = [x.view(-1, 4, 4).diff(dim=-1).abs().mean().item() for x in (rough, smooth)]
    assert varies[1] < 0.98 * varies[0]
    near, far = (inversion.behind(other, c * h, public, 0.0, 1.0, steps=5) for c in (1.0, 3.0))
    torch.testing.assert_close(near, far, rtol=1e-3, atol=1e-3)
