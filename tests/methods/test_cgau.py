"""The conditional gated unit, its networks, and the two ways to treat client rows."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from lgfed_core import Dataset, Federation, LocalTraining, Split, models, run
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.errors import SettingsError
from lgfed_core.methods import Batch, FedAvg, Local
from lgfed_core.methods.cgau import ClientBaseline, ClientRowsAveraged, ClientRowsKept
from lgfed_core.models.cgau import Baseline, GatedMLP, client_rows, joined_clients
from lgfed_core.models.gated_unit import CGAU
from lgfed_core.papers.cgau.pooled import Pooled, judged
from lgfed_core.partition import ClientIndices, Partition
from toy import LANES, alike, named, prepared


def randomised(net: nn.Module, seed: int = 0) -> nn.Module:
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=rng) / 2)
    return net


def unconditioned(net: nn.Module) -> nn.Module:
    """With client rows of zeros."""
    for name in client_rows(net):
        net.get_parameter(name).data.zero_()
    return net


def test_equation_1_by_hand():
    layer = CGAU(1, 1, clients=2)
    with torch.no_grad():
        layer.filter.weight.fill_(2.0)
        layer.gate.weight.fill_(-1.0)
        layer.modulation.weight.copy_(torch.tensor([[0.0, 3.0]]))
        layer.expression.weight.copy_(torch.tensor([[0.0, 0.5]]))
    x, h = torch.tensor([[1.0], [1.0]]), torch.eye(2)
    by_hand = [0.9640275801 * 0.2689414214, 0.9999092043 * 0.3775406688]  # tanh 2, 5; s(-1), s(-.5)
    assert torch.allclose(layer(x, h)[:, 0], torch.tensor(by_hand), atol=1e-7)


def test_switching_off_both_is_having_no_client():
    layer = randomised(CGAU(3, 4, clients=2))
    x, h = torch.randn(5, 3), torch.eye(2)[[0, 1, 1, 0, 1]]
    without = layer.parts(x, h, off=("modulation", "expression"))
    assert all(torch.equal(a, b) for a, b in zip(without, layer.parts(x), strict=True))
    f, g = layer.parts(x, h, off=("modulation",))
    assert torch.equal(f, without[0]) and not torch.equal(g, without[1])
    with pytest.raises(SettingsError, match="filter"):
        layer.parts(x, h, off=("filter",))
    with pytest.raises(SettingsError, match="0 clients"):
        CGAU(3, 4, clients=0)


@pytest.mark.parametrize(
    "dims, baseline, gated",
    [
        ((1024, 64, 1), 69_825, 142_412),  # audio
        ((2048, 128, 10), 280_074, 564_600),  # CIFAR-10, the text
        ((1664, 64, 10), 111_370, 225_016),  # CIFAR-10, the released code
    ],
)
def test_parameter_counts_are_the_papers(dims, baseline, gated):
    assert models.count(Baseline(*dims)) == baseline
    net = GatedMLP(*dims, clients=10)
    assert models.count(net) == gated
    assert 2.0 < gated / baseline < 2.05  # claim C9: filter and gate double them
    assert models.count(net, client_rows(net)) == 10 * (4 * dims[1] + dims[2])
    text = GatedMLP(*dims, clients=10, released=False)  # equation (1) alone
    assert gated - models.count(text) == 4 * dims[1] + 11 * dims[2]


@pytest.mark.parametrize("released", [True, False])
def test_a_network_of_all_clients_says_what_each_device_says(released):
    devices = [randomised(GatedMLP(6, 4, 2, released=released)).eval() for _ in range(3)]
    unconditioned(devices[0])
    for name in client_rows(devices[2]):
        devices[2].get_parameter(name).data.add_(2)
    together, x = joined_clients(devices), torch.randn(5, 6)
    for k, net in enumerate(devices):
        h = torch.eye(3)[k].expand(5, 3)
        assert torch.allclose(together(x, h), net(x), atol=1e-6)
    assert torch.equal(together(x), devices[0](x))  # rows of zeros are as no client
    devices[1].out.bias.data.add_(1)
    with pytest.raises(SettingsError, match=r"out\.bias"):
        joined_clients(devices)


# In the engine.


class OneHotBeside(GatedMLP):
    """The released form: x and h in one input row, the rows of all clients in every device."""

    def forward(self, x):
        return super().forward(x[..., : -self.clients], x[..., -self.clients :])


def clients() -> Federation:
    """Four devices with unequal parts of two sets of 60 rows, three each for validation."""
    rng, sizes = torch.Generator().manual_seed(3), [9, 12, 18, 21]
    order = torch.randperm(60, generator=rng).split(sizes)
    split = Partition(
        "toy",
        train=ClientIndices.from_lists([mine[3:] for mine in order]),
        validation=ClientIndices.from_lists([mine[:3] for mine in order]),
        test=ClientIndices.from_lists(torch.arange(60).split(sizes)),
    )

    def part(seed: int) -> Split:
        x = torch.randn(60, 6, generator=torch.Generator().manual_seed(seed))
        return Split(x, (x[:, 0] + x[:, 1] > 0).long())

    net = unconditioned(randomised(GatedMLP(6, 5, 1, dropout=0.0), 1))
    return Federation(Dataset("toy", part(1), part(2), 2), [split], net, [0])


TRAINING = LocalTraining(0.1, 4, momentum=0.9)


@LANES
def test_averaged_rows_are_fedavg_of_the_one_hot_network(lanes):
    """Each device with its own row, moved by w_k, is the matrix of all rows, averaged."""
    fed, how = clients(), dict(lanes=lanes, workers=1)
    ours = run(fed, ClientRowsAveraged(), TRAINING, 3, **how)

    beside = randomised(OneHotBeside(6, 5, 1, clients=4, dropout=0.0), 1)
    state, own, part = fed.net.state_dict(), client_rows(fed.net), fed.partitions[0]
    for name, p in beside.named_parameters():
        p.data = state[name].repeat(1, 4) if name in own else state[name]
    data = {}
    for kind, held in (("train", (part.train, part.validation)), ("test", (part.test,))):
        h = torch.zeros(60, 4)
        for k in range(4):
            h[torch.cat([rows.of(k) for rows in held]), k] = 1
        split = getattr(fed.data, kind)
        data[kind] = replace(split, x=torch.cat([split.x, h], 1))
    whole = replace(fed, net=beside, data=replace(fed.data, **data))
    literal = run(whole, ClientBaseline(), TRAINING, 3, **how)
    theirs = named(literal)
    for name, mine in named(ours).items():  # [1, 4, ...] both
        other = theirs[name]
        if name in own:  # each device's column, of a matrix that is shared
            other = other[:, 0].unflatten(2, (4, 1)).movedim(2, 1)
        assert torch.allclose(mine, other, atol=2e-6), name
    assert ours.tensors["personal"].abs().max() > 1e-3


def test_weights_can_be_capped_or_slip():
    rows = torch.tensor([10, 40, 400])
    assert torch.allclose(ClientBaseline().weights(rows), rows / 450)
    assert torch.allclose(ClientBaseline(cap=320).weights(rows), torch.tensor([10, 40, 320]) / 370)
    slip = ClientBaseline(cap=320, per=32).weights(rows)
    assert torch.allclose(slip, torch.tensor([1, 2, 10]) / 13)
    with pytest.raises(SettingsError, match="clients=1"):
        ClientRowsKept().shared(GatedMLP(4, 2, 1, clients=3))
    with pytest.raises(SettingsError, match="GatedMLP"):
        ClientRowsKept().shared(Baseline(4, 2, 1))


def test_positive_rows_count_as_often_as_the_released_loss_says():
    fed = clients()
    x, y = fed.data.train.x[:6], fed.data.train.y[:6]
    local = Local(fed.net.eval(), {}, {})
    said = fed.net(x)[:, 0]
    each = nn.functional.binary_cross_entropy_with_logits(said, y.float(), reduction="none")
    found = ClientBaseline(positive=50).loss(local, Batch(x, y))
    assert torch.allclose(found, (each * (49 * y + 1)).mean())


# The hooks of the engine that came with it.


@LANES
def test_a_device_takes_only_so_many_batches(lanes, federation):
    all_, many, few = (
        run(federation, FedAvg(), LocalTraining(0.1, 2, batches=n), 2, lanes=lanes, workers=1)
        for n in (None, 100, 2)
    )
    assert torch.equal(all_.tensors["shared"], many.tensors["shared"])
    assert not torch.equal(all_.tensors["shared"], few.tensors["shared"])
    alike(federation, FedAvg(), LocalTraining(0.1, 2, batches=2, epochs=2))


def test_own_outputs_are_each_models_on_its_own_rows():
    fed, found = clients(), []
    phase = prepared(fed, ClientRowsKept(), TRAINING)
    shared, personal = phase.tensors["shared"], phase.tensors["personal"]
    personal.copy_(torch.randn(personal.shape, generator=torch.Generator().manual_seed(0)))
    for lanes in (Looped, Batched):
        found.append(lanes(phase).own_outputs("shared", "personal", "test"))
    assert torch.allclose(*found, atol=1e-5)
    (said,), rows = found[0], fed.partitions[0].test  # said: [K, n, 1]
    params = phase.layout.views(shared[0], personal[0, 1])
    mine = torch.func.functional_call(fed.net.eval(), params, (fed.data.test.x[rows.of(1)],))
    assert torch.allclose(said[1, : len(mine)], mine, atol=1e-5)
    assert (said[1, len(mine) :] == 0).all() and said.shape[1] == 21


def test_auc_is_the_known_one():
    ties = judged(torch.tensor([[1.0], [2.0], [2.0]]), torch.tensor([0, 1, 0]))
    assert ties["auc"] == 0.75
    assert math.isnan(judged(torch.ones(3, 1), torch.zeros(3))["auc"])
    three = judged(torch.eye(3), torch.tensor([0, 1, 0]))
    assert three["acc"] == pytest.approx(2 / 3) and "auc" not in three


@LANES
def test_the_round_with_the_lowest_validation_loss_is_remembered(lanes):
    def go(rounds):
        training = replace(TRAINING, lr=8.0)  # so wild that the loss goes up again
        how = dict(lanes=lanes, workers=1, tracker=Pooled())
        return run(clients(), ClientRowsKept(), training, rounds, **how)

    out = go(6)
    history, final = out.history, out.final.loc[0]
    best = history["validation_loss"].idxmin()
    assert final["best_round"] == history.loc[best, "round"] < 6
    assert out.tensors["best_loss"][0] == pytest.approx(history.loc[best, "validation_loss"])
    again = go(int(final["best_round"])).final.loc[0]
    for name in ("loss", "acc", "auc"):
        assert final[f"best_test_{name}"] == pytest.approx(again[f"last_test_{name}"])


def test_several_runs_at_once_are_each_run_alone():
    fed, how = clients(), dict(workers=1, tracker=Pooled())
    two = replace(fed, partitions=fed.partitions * 2, seeds=[0, 5])
    both = run(two, ClientRowsAveraged(), TRAINING, 2, **how)
    alone = run(replace(fed, seeds=[5]), ClientRowsAveraged(), TRAINING, 2, **how)
    assert torch.equal(both.tensors["personal"][1], alone.tensors["personal"][0])
    assert both.final.loc[5].to_dict() == alone.final.loc[5].to_dict()
