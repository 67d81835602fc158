"""Auxiliary networks: what coincides with LG-FedAvg, what a puzzle is, what is refused by name."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from lgfed_core import Dataset, FedAvg, Federation, LGFedAvg, LocalTraining, Split, models, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods.adversary import adversary_loss
from lgfed_core.methods.auxiliary import Autoencoder, Auxiliary, Hiding, OwnHead, labelled
from lgfed_core.methods.interface import Batch, Local
from lgfed_core.methods.pretext import ANSWERS, Pretext, orders, rearranged
from lgfed_core.models.auxiliary import AuxiliaryMLP, auxiliary, head
from lgfed_core.models.layout import joined
from toy import named, toy_federation

SGD = LocalTraining(0.05, 4)
JIGSAW, ROTATION = (partial(Pretext, task=task) for task in ANSWERS)
ALL = [(OwnHead, 3), (Autoencoder, 16), (Hiding, 1), (JIGSAW, 24), (ROTATION, 4)]


def federation(outputs: int, seeds=(0,)) -> Federation:
    """Five devices with pictures of 4 x 4 pixels, three classes, one group."""
    rng = torch.Generator().manual_seed(5)

    def pictures(y: torch.Tensor) -> Split:
        x = torch.randn(len(y), 16, generator=rng) + torch.eye(16)[y]
        return Split(x, y, torch.randint(2, (len(y), 1), generator=rng))

    fed = toy_federation(seeds, 5, lambda: AuxiliaryMLP(outputs, 16, 3))
    parts = (pictures(split.y) for split in (fed.data.train, fed.data.test))
    return replace(fed, data=Dataset("small", *parts, 3))


def trained(method, outputs, fed=None, **engine) -> dict[str, torch.Tensor]:
    """Every device's parameters by name, but for the auxiliary network's."""
    fed = fed or federation(outputs)
    out = run(fed, method, SGD, 2, **(engine or dict(workers=1)))
    return {n: value for n, value in named(out).items() if n not in auxiliary(fed.net)}


def same(one, other) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("kind", "outputs"), ALL)
def test_without_weight_it_is_lg_fedavg_bit_for_bit(kind, outputs):
    layers = head(AuxiliaryMLP(1))
    plain = trained(LGFedAvg(layers=layers), outputs)
    assert same(plain, trained(kind(layers=layers, weight=0.0), outputs))
    weighted = trained(kind(layers=layers, weight=1.0), outputs)
    assert not torch.equal(plain["fc1.weight"], weighted["fc1.weight"])


def test_of_itself_it_is_lg_fedavg_and_sharing_all_but_the_head_is_fedavg():
    fed = federation(1)
    everything = frozenset(n for n, _ in fed.net.named_parameters()) - auxiliary(fed.net)
    for layers, method in ((head(fed.net), LGFedAvg(layers=head(fed.net))), (everything, FedAvg())):
        plain, ours = trained(method, 1), trained(Auxiliary(layers=layers), 1)
        assert same(plain, ours)


@pytest.mark.parametrize(("kind", "outputs"), ALL[3:])
def test_puzzles_are_drawn_alike_alone_and_among_others(kind, outputs):
    go = partial(trained, kind(layers=head(AuxiliaryMLP(1))), outputs)
    alone, two = go(), go(fed=federation(outputs, (0, 1)), workers=2)
    assert same(alone, go()) and same(alone, {n: value[:1] for n, value in two.items()})
    batched = go(lanes="batched")
    assert same(batched, go(lanes="batched")) and batched["fc1.weight"].isfinite().all()


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


@pytest.mark.parametrize(
    ("kind", "outputs", "aside", "own", "below"),  # what the loss aside counts for a, and for f
    [
        (OwnHead, 3, lambda said, rows: F.cross_entropy(said, rows.y), 0.5, 0.5),
        (Autoencoder, 16, lambda said, rows: F.mse_loss(said, rows.x), 0.5, 0.5),
        (Hiding, 1, adversary_loss, 1.0, -0.5),
    ],
)
def test_auxiliary_losses_by_hand(kind, outputs, aside, own, below):
    net, x = models.make(partial(AuxiliaryMLP, outputs, 16, 3), 0), torch.randn(8, 16)
    rows = Batch(x, torch.arange(8) % 3, groups=torch.arange(8)[:, None] % 2)
    said, beside = net(x, watch=lambda h: h)
    task, more = F.cross_entropy(said, rows.y), aside(beside, rows)
    found = kind(layers=head(net), weight=0.5).loss(Local(net, {}, {}), rows)
    torch.testing.assert_close(found, task + own * more)
    for part, due in ((net.own1.weight, own * more), (net.fc1.weight, task + below * more)):
        grads = [torch.autograd.grad(loss, part, retain_graph=True)[0] for loss in (found, due)]
        torch.testing.assert_close(*grads)
