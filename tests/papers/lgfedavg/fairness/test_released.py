"""The re-enactment of the released loop against a plain one: modules, optimisers, one user."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core.errors import SettingsError
from lgfed_core.papers.lgfedavg.fairness import released, released_users as users
from lgfed_core.papers.lgfedavg.fairness.run import FAIRNESS


@pytest.fixture
def lanes():
    cfg = FAIRNESS.settings("smoke", "as_released", devices=2, first_rows=600)
    out = users.Lanes(cfg, [0, 1], "iid", 2)
    for part in out.net.modules():  # no noise, so that two programs can agree
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return out


@pytest.fixture
def params(lanes):
    return lanes.fresh(alike=False)


def of_adversary(params):
    return {n: torch.zeros_like(v) for n, v in params.items() if n.startswith("adversary.")}


def test_users_are_no_more_than_the_shards_and_the_probed_no_more_than_the_users(lanes, params):
    with pytest.raises(SettingsError, match="devices is 20.* there can be 10 at most"):
        users.users_rows(torch.arange(1000) % 2, 20, "noniid", 0)
    assert lanes.users == 2
    two, three = (users.probed(lanes, params, n) for n in (2, 3))
    assert two.equals(three)


@pytest.mark.parametrize("adv", [True, False])
def test_joint_phase_is_the_released_one(lanes, params, adv):
    """Two backward passes without clearing, an optimiser that holds another head."""
    lane, net = 3, copy.deepcopy(lanes.net)
    net.load_state_dict({name: value[lane] for name, value in params.items()})
    batches = list(lanes.batches())[:4]
    x, _, z = (b[lane] for b in batches[0])
    loss = 30.0 * F.binary_cross_entropy(net.adversary(net.local(x).detach()).sigmoid(), z)
    loss.backward()
    left_over = of_adversary(params)
    for name, stale in left_over.items():
        stale[lane] = net.get_parameter(name).grad
    local = torch.optim.SGD([*net.local.parameters(), *net.own.parameters()], 0.1)
    adversary = torch.optim.SGD(net.adversary.parameters(), 0.1)
    original = net.head
    head_optimiser = torch.optim.Adam(original.parameters(), 0.01)
    trained = copy.deepcopy(original)

    for number, batch in enumerate(batches):
        x, y, z = (tensor[lane] for tensor in batch)
        local.zero_grad()
        trained.zero_grad()
        h = net.local(x)
        p = trained(h).sigmoid()[:, 0]
        push = 0.03 * F.binary_cross_entropy(net.adversary(h).sigmoid(), z)
        task = F.binary_cross_entropy(p, y)
        (task - push if adv else task).backward(retain_graph=True)
        push.backward()
        for optimiser in (local, head_optimiser, adversary):
            optimiser.step()
        released.joint_step(lanes, params, left_over, batch, adv, look=number % 2 == 1)
    for name, value in net.named_parameters():
        assert torch.allclose(params[name][lane], value, atol=2e-6), name
    assert all(map(torch.equal, trained.parameters(), original.parameters()))


def test_with_adv_the_gradients_cancel_and_the_same_step_comes_again(lanes, params):
    stale = {n: torch.randn_like(v) for n, v in of_adversary(params).items()}
    left_over, before = dict(stale), {n: params[n].clone() for n in stale}
    for step, batch in enumerate(list(lanes.batches())[:3], 1):
        (seen,) = released.joint_step(lanes, params, left_over, batch, adv=True, look=True)
        assert seen["share_local"].abs().max() < 1e-3
        for name in stale:
            assert torch.allclose(params[name], before[name] - step * 0.1 * stale[name], atol=1e-4)


def looked(lanes, params):
    """One step without ``adv``, and with nothing left over from before."""
    left_over, batch = of_adversary(params), next(lanes.batches())
    (seen,) = released.joint_step(lanes, params, left_over, batch, adv=False, look=True)
    return seen


def test_without_adv_the_local_model_helps_the_adversary(lanes, params):
    seen = looked(lanes, params)
    assert (seen["share_local"] + 1).abs().max() < 1e-3
    assert (seen["cos_adversary"] - 1).abs().max() < 1e-5, "the first time"


def test_a_cosine_lies_within_one_however_small_the_gradient_and_that_of_none_is_missing():
    small = {"w": torch.tensor([[3e-30, 4e-30], [1e-42, 0.0], [0.0, 0.0]])}
    step = {"w": torch.tensor([[3e3, 4e3], [-1e3, 0.0], [1.0, 1.0]])}
    found = released._cos(small, step)
    assert found[:2].tolist() == pytest.approx([1, -1]) and found[2].isnan()
    assert released._norm(small)[0].item() == pytest.approx(5e-30)


def test_an_adversary_that_is_sure_has_no_gradient_and_is_in_no_mean(lanes, params):
    last = [*of_adversary(params)][-1]  # biases of its two outputs
    _, _, z = next(lanes.batches())
    sure = z.mean(1).round().mul(2e3).sub(1e3)  # far beyond where a sigmoid is 0 or 1
    for lane in (0, 2, 3):
        params[last][lane] = sure[lane]
    seen = looked(lanes, params)
    assert seen["zero_gradient"].tolist() == [1, 0, 1, 1]
    for name in ("cos_adversary", "share_local"):
        assert seen[name].isnan().tolist() == [True, False, True, True]
    first, second = released._by_run(lanes, seen).to_dict("records")
    assert first["cos_adversary"] == pytest.approx(seen["cos_adversary"][1].item())
    assert first["zero_gradient"] == 0.5 and second["cos_adversary"] != second["cos_adversary"]


def test_of_a_push_below_rounding_no_share_is_told(lanes, params):
    """The applied gradient is that of the task alone, whatever the push: it is not counted as 0."""
    params[next(iter(of_adversary(params)))].mul_(1e-12)  # the adversary hardly sees h
    seen = looked(lanes, params)
    assert seen["share_local"].isnan().all() and (seen["zero_gradient"] == 0).all()


def test_users_and_their_rows(lanes):
    y = lanes.adult.train.y
    first, second = (users.users_rows(y, 2, "iid", s) for s in (0, 1))
    assert len(first.unique()) == first.numel() and not torch.equal(first, second)
    frozen = [users.users_rows(y, 10, "noniid", s) for s in (0, 1)]
    assert torch.equal(*frozen), "a default argument that is appended to"
    share = y[frozen[0]].float().mean(1)
    assert share.std() > 0.03
