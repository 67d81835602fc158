"""Auxiliary networks: what coincides with LG-FedAvg, what a puzzle is, what is refused by name."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from lgfed_core import models
from lgfed_core.data import Dataset, Split
from lgfed_core.engine import Federation, LocalTraining, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg, LGFedAvg
from lgfed_core.methods.auxiliary import Autoencoder, Auxiliary, Hiding, OwnHead, labelled
from lgfed_core.methods.interface import Batch, Local
from lgfed_core.methods.pretext import ANSWERS, Pretext, orders, rearranged
from lgfed_core.models.auxiliary import AuxiliaryMLP, auxiliary, head
from lgfed_core.models.layout import joined
from toy import stopped, toy_partition

SGD = LocalTraining(0.05, 4)
JIGSAW, ROTATION = (partial(Pretext, task=task) for task in ANSWERS)
ALL = [(OwnHead, 3), (Autoencoder, 16), (Hiding, 1), (JIGSAW, 24), (ROTATION, 4)]


def federation(outputs: int, seeds=(0,)) -> Federation:
    """Five devices with pictures of 4 x 4 pixels, three classes, one group."""
    rng = torch.Generator().manual_seed(5)
    parts = []
    for rows in (60, 30):
        y = torch.arange(rows) % 3
        x = torch.randn(rows, 16, generator=rng) + torch.eye(16)[y]
        parts.append(Split(x, y, torch.randint(2, (rows, 1), generator=rng)))
    net = models.make(partial(AuxiliaryMLP, outputs, 16, 3), 0)
    splits = [toy_partition(60, 30, 5, seed) for seed in seeds]
    return Federation(Dataset("small", *parts, 3), splits, net, list(seeds))


def trained(method, outputs, rounds=2, training=SGD, fed=None, **engine) -> torch.Tensor:
    """Every device's parameters by name, but for the auxiliary network's."""
    fed = fed or federation(outputs)
    engine = engine or dict(workers=1)
    out = run(fed, method, training, rounds, **engine)
    t = out.tensors
    values = out.layout.views(t["shared"][:, None].expand(-1, 5, -1), t["personal"])
    own = auxiliary(fed.net)
    return {name: value for name, value in values.items() if name not in own}


@pytest.mark.parametrize(("kind", "outputs"), ALL)
def test_without_weight_it_is_lg_fedavg_bit_for_bit(kind, outputs):
    layers = head(AuxiliaryMLP(1))
    plain = trained(LGFedAvg(layers=layers), outputs)
    ours = trained(kind(layers=layers, weight=0.0), outputs)
    assert all(torch.equal(plain[name], ours[name]) for name in plain)
    weighted = trained(kind(layers=layers, weight=1.0), outputs)
    assert not torch.equal(plain["fc1.weight"], weighted["fc1.weight"])


def test_of_itself_it_is_lg_fedavg_and_sharing_all_but_the_head_is_fedavg():
    fed, layers = federation(1), head(AuxiliaryMLP(1))
    plain, ours = trained(LGFedAvg(layers=layers), 1), trained(Auxiliary(layers=layers), 1)
    assert all(torch.equal(plain[name], ours[name]) for name in plain)
    everything = frozenset(n for n, _ in fed.net.named_parameters()) - auxiliary(fed.net)
    fedavg, ours = trained(FedAvg(), 1), trained(Auxiliary(layers=everything), 1)
    assert all(torch.equal(fedavg[name], ours[name]) for name in fedavg)


@pytest.mark.parametrize(("kind", "outputs"), ALL[3:])
def test_puzzles_are_drawn_alike_alone_among_others_and_after_a_kill(kind, outputs, tmp_path):
    method = kind(layers=head(AuxiliaryMLP(1)))
    alone, again = (trained(method, outputs) for _ in range(2))
    two = trained(method, outputs, fed=federation(outputs, (0, 1)), workers=2)
    assert all(torch.equal(alone[n], again[n]) for n in alone)
    assert all(torch.equal(alone[n][0], two[n][0]) for n in alone)
    how = dict(saved=tmp_path / "one.safetensors", workers=1)
    with stopped(1):
        trained(method, outputs, **how)
    resumed = trained(method, outputs, **how)
    assert all(torch.equal(alone[n], resumed[n]) for n in alone)
    batched = [trained(method, outputs, lanes="batched") for _ in range(2)]
    assert all(torch.equal(batched[0][n], batched[1][n]) for n in alone)
    assert batched[0]["fc1.weight"].isfinite().all()


@pytest.mark.parametrize("task", ANSWERS)
def test_the_answer_undoes_the_puzzle(task):
    x = torch.rand(ANSWERS[task], 2, 6, 6)
    answers = torch.arange(ANSWERS[task])
    puzzles = rearranged(x, task, answers)
    back = orders(task, 6)[answers].argsort(1)[:, None].expand(-1, 2, -1)
    assert torch.equal(puzzles.flatten(2).gather(2, back).view(x.shape), x)
    assert torch.equal(puzzles[0], x[0])  # the first answer: as it is
    assert len(orders(task, 6).unique(dim=0)) == ANSWERS[task]
    flat = rearranged(x[:, 0].flatten(1), task, answers)
    assert torch.equal(flat, puzzles[:, 0].flatten(1))
    if task == "rotation":
        assert torch.equal(puzzles[1], x[1].rot90(1, (1, 2)))
    else:  # the last order: all four tiles from the end
        tiles = x[-1].unflatten(1, (2, 3)).unflatten(3, (2, 3)).flip(1, 3)
        assert torch.equal(puzzles[-1], tiles.flatten(3, 4).flatten(1, 2))


def test_rows_without_a_label_have_no_say_in_the_task():
    outputs, y = torch.randn(6, 3), torch.tensor([0, -1, 2, -1, -1, 1])
    known = y >= 0
    mean = F.cross_entropy(outputs[known], y[known])
    assert labelled(outputs, Batch(outputs, y)) == pytest.approx(float(mean), rel=1e-6)
    weight = torch.tensor([0.25, 0.25, 0.25, 0.25, 0, 0])  # the last two are padding
    padded = labelled(outputs, Batch(outputs, y, weight))
    assert padded == pytest.approx(float(F.cross_entropy(outputs[[0, 2]], y[[0, 2]])), rel=1e-6)
    assert labelled(outputs, Batch(outputs, torch.full((6,), -1))) == 0
    bare = federation(1)
    bare.data.train.y.fill_(-1)
    still = trained(Auxiliary(layers=head(bare.net)), 1, fed=bare)
    start = dict(bare.net.named_parameters())
    assert all(torch.allclose(value[0, 0], start[name]) for name, value in still.items())


def test_an_adversary_that_is_hidden_from_reads_less():
    """Group 1 is the sign of a pixel: an encoder that plays against it gives it away less."""
    fed, layers = federation(1), head(AuxiliaryMLP(1))
    x = fed.data.train.x
    fed.data.train.groups.copy_(x[:, 5:6] > 0)
    losses = []
    for weight in (0.0, 1.0):
        method = Hiding(layers=layers, weight=weight)
        out = run(fed, method, LocalTraining(0.1, 4), 60, workers=1)
        total = 0.0
        for k in range(5):
            values = out.layout.join(out.tensors["shared"][0], out.tensors["personal"][0, k])
            torch.nn.utils.vector_to_parameters(values, fed.net.parameters())
            rows = fed.partitions[0].train.of(k)
            with torch.no_grad():
                _, read = fed.net(x[rows], watch=lambda h: h)
            total += F.binary_cross_entropy_with_logits(read, fed.data.train.groups[rows].float())
        losses.append(float(total))
    assert losses[1] > 1.5 * losses[0]


@pytest.mark.parametrize(
    ("method", "net", "said"),
    [
        (OwnHead, models.mlp_mnist, "MnistMLP has no auxiliary network for OwnHead"),
        (JIGSAW, partial(AuxiliaryMLP, 4), "jigsaw has 24 answers, the auxiliary network 4"),
        (Autoencoder, partial(AuxiliaryMLP, 4, 16, 3), "decoder gives 4 numbers for rows of 16"),
        (partial(Hiding, weight=-1), partial(AuxiliaryMLP, 1), "weight is -1"),
        (partial(Pretext, task="colours"), models.mlp_mnist, "task 'colours' is none of jigsaw"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(method, net, said):
    with pytest.raises(SettingsError, match=said):
        net = net()
        fed = replace(federation(1), net=net)
        run(fed, method(layers=frozenset()), SGD, 1, joined(net)[None], workers=1)
    with pytest.raises(SettingsError, match="no square pictures for jigsaw"):
        rearranged(torch.rand(2, 9), "jigsaw", torch.zeros(2, dtype=torch.long))
    with pytest.raises(SettingsError, match="task 'rotate' is none of jigsaw, rotation"):
        rearranged(torch.rand(2, 16), "rotate", torch.zeros(2, dtype=torch.long))


def test_auxiliary_losses_by_hand():
    rng = torch.Generator().manual_seed(0)
    rows = Batch(torch.randn(8, 16, generator=rng), torch.arange(8) % 3)
    for kind, outputs in ((OwnHead, 3), (Autoencoder, 16)):
        torch.manual_seed(0)
        net = AuxiliaryMLP(outputs, 16, 3).eval()
        said, own = net(rows.x, watch=lambda h: h)
        aside = F.cross_entropy(own, rows.y) if kind is OwnHead else F.mse_loss(own, rows.x)
        found = kind(layers=head(net), weight=0.5).loss(Local(net, {}, {}), rows)
        torch.testing.assert_close(found, F.cross_entropy(said, rows.y) + 0.5 * aside)
