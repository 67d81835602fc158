"""q-FFL: with q = 0 federated averaging, and otherwise a step longer by the loss to the q."""

import pytest
import torch

from lgfed_core.errors import SettingsError
from lgfed_core.methods import QFFL, Batch, Local, cross_entropy


def test_its_gradient_is_that_of_the_loss_times_the_loss_to_the_q():
    torch.manual_seed(0)
    net, batch = torch.nn.Linear(4, 3), Batch(torch.randn(5, 4), torch.randint(3, (5,)))
    local = Local(net, {}, {})
    plain = cross_entropy(net(batch.x), batch)
    slope = torch.autograd.grad(plain, net.weight)[0]
    for q, unit in ((0.0, 1.0), (2.0, 1.0), (2.0, 0.5)):
        method = QFFL(q=q, unit=unit)
        found = torch.autograd.grad(method.loss(local, batch), net.weight)[0]
        assert torch.allclose(found, slope * (plain.detach() / unit) ** q, rtol=1e-5)


def test_the_server_moves_by_beta():
    before, average = torch.tensor([0.0]), torch.tensor([1.0])
    assert QFFL(beta=0.25).server_update(before, average).item() == 0.25
    with pytest.raises(SettingsError, match="q is -1"):
        QFFL(q=-1.0)
