"""DANN, CDAN and SHOT: what must coincide, values by hand, and labels that devices make."""

import doctest
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.spatial.distance import cdist

from lgfed_core import ClientIndices, Dataset, Partition, Split, adaptation
from lgfed_core.engine import Federation, LocalTraining, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FADE, Batch, Local, cdan, fade, shot
from lgfed_core.methods.adversary import group_loss
from lgfed_core.methods.cdan import CDAN, certainty
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.fade import known
from lgfed_core.methods.shot import CDANSHOT, SHOT, information, pseudo_labels
from lgfed_core.metrics import frechet
from lgfed_core.models import cgau, count, digits, gated_unit, objects
from lgfed_core.models.digits import conditioned
from lgfed_core.models.objects import ObjectsNet, mixed

ROWS, WIDTH, CLASSES = 48, 6, 3


MODULES = [fade, cdan, shot, digits, adaptation, gated_unit, cgau, frechet]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_examples_run(module):
    found = doctest.testmod(module, extraglobs={"np": np, "torch": torch})
    assert found.attempted and not found.failed


def batch(group: int, labelled: bool = True) -> Batch:
    rng = torch.Generator().manual_seed(group)
    y = torch.arange(8) % CLASSES if labelled else torch.full((8,), -1)
    return Batch(torch.randn(8, WIDTH, generator=rng), y, groups=torch.full((8, 1), group))


def local(net: ObjectsNet) -> Local:
    return Local(net, dict(net.named_parameters()), {}, round=5)


def quiet(**more) -> ObjectsNet:
    torch.manual_seed(0)
    return ObjectsNet(WIDTH, CLASSES, dropout=0.0, **more)


def test_sizes_are_those_of_the_released_code():
    net, norm = ObjectsNet(2048, 31), ObjectsNet(2048, 31, "whole", "norm")
    assert (count(net.discriminator), count(norm.discriminator)) == (66_049, 2_032_129)
    assert (count(net.encoder), count(norm.encoder)) == (524_544, 525_056)
    assert count(ObjectsNet(9, 31, "mixed").discriminator) == 262_657
    with pytest.raises(SettingsError, match="bottleneck is 'bn'; choose relu or norm"):
        ObjectsNet(9, 3, bottleneck="bn")


def test_dann_without_smoothing_is_fade_and_without_weight_is_the_task():
    one, rows, usual = local(quiet()), batch(0), dict(rounds=10)
    assert DANN(smoothing=0, **usual).loss(one, rows) == FADE(**usual).loss(one, rows)
    method = DANN(weight=0, **usual)
    assert method.loss(one, rows) == method.task(one, rows)


def test_smoothing_gives_each_class_its_share():
    outputs, y = torch.tensor([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]), torch.tensor([0, -1])
    says = torch.log_softmax(outputs, -1)[0]
    expected = -(0.9 * says[0] + 0.1 * says.mean()) / 2  # a row without a label counts 0
    torch.testing.assert_close(known(outputs, Batch(outputs, y), 0.1), expected)


def test_cdans_weights_weigh_and_as_released_they_cancel():
    net, rows = quiet(conditional="whole"), batch(1, labelled=False)
    one = local(net)
    outputs, logits = one.net(rows.x, watch=lambda z: z)
    each = F.binary_cross_entropy_with_logits(logits[:, 0], torch.ones(8), reduction="none")
    w = 1 + (torch.softmax(outputs, -1) * torch.log_softmax(outputs, -1)).sum(-1).exp()
    weighs, cancels, none = (CDAN(entropy=e, rounds=10) for e in cdan.ENTROPY)
    game = [m.game(outputs, logits, rows, 0.5) for m in (weighs, cancels, none)]
    assert game[0].item() == pytest.approx(((w * each).sum() / w.sum()).item())
    assert game[1].item() == pytest.approx(game[2].item()) == pytest.approx(each.mean().item())
    assert game[0].item() != pytest.approx(game[2].item(), abs=1e-6)
    head = [one.params["classifier.g"]]
    through = [torch.autograd.grad(g, head, retain_graph=True, allow_unused=True)[0] for g in game]
    assert through[0] is None and through[2] is None  # weights are constants
    (up,) = torch.autograd.grad(certainty(outputs).mean(), head)
    torch.testing.assert_close(through[1], -0.5 * game[2].detach() / w.mean().detach() * up)


@pytest.mark.parametrize(
    "method", [CDAN(rounds=9), CDAN(rounds=9, entropy="cancels"), CDANSHOT(rounds=9)]
)
def test_padding_does_not_move_a_loss_and_of_padding_alone_the_gradient_is_zero(method):
    one, rows = local(quiet(conditional="mixed")), batch(1, labelled=False)
    more = Batch(
        torch.cat([rows.x, torch.randn(3, WIDTH)]),
        torch.cat([rows.y, torch.zeros(3, dtype=torch.long)]),
        torch.cat([torch.full((8,), 1 / 8), torch.zeros(3)]),
        torch.cat([rows.groups, torch.ones(3, 1, dtype=torch.long)]),
    )
    torch.testing.assert_close(method.loss(one, rows), method.loss(one, more))
    nothing = method.loss(one, replace(batch(1), weight=torch.zeros(8)))
    grads = torch.autograd.grad(nothing, list(one.params.values()), allow_unused=True)
    assert all(g is None or (g == 0).all() for g in grads)


def test_mixed_products_keep_inner_products():
    rng = torch.Generator().manual_seed(1)
    z, outputs = (torch.randn(40, n, generator=rng) for n in (256, 31))
    whole, some = conditioned(z, outputs), mixed(z, outputs, objects.random_maps(256, 31))
    ratio = some.square().sum(-1) / whole.square().sum(-1)
    assert ratio.mean().item() == pytest.approx(1, abs=0.1)


def moved(net, method) -> set[str]:
    (step,) = method.steps(net)
    return {name.split(".")[0] for name in step.params}


def test_shot_leaves_the_source_its_labels_and_the_classifier_alone():
    net, method = quiet(bottleneck="norm").eval(), SHOT(rounds=10)
    assert moved(net, method) == {"encoder"}
    assert moved(net, CDANSHOT()) == {"encoder", "discriminator"}
    one, source, target = local(net), batch(0), batch(1, labelled=False)
    torch.testing.assert_close(method.task(one, source), DANN(rounds=10).task(one, source))
    outputs = one.net(target.x)
    torch.testing.assert_close(method.task(one, target), information(outputs, target))
    told = batch(1)
    plain = F.cross_entropy(outputs, told.y)
    for a, r in ((1.0, 0.3), (0.0, 0.1), (2.0, 0.0)):  # the two terms, and 1 and 0.3 by default
        weighed = dict(information=a, relabelled=r) if r != 0.3 else {}
        found = SHOT(rounds=10, **weighed).task(one, told)
        torch.testing.assert_close(found, a * information(outputs, target) + r * plain)


def test_on_a_device_with_both_groups_each_rows_own_share_counts():
    net = quiet(bottleneck="norm").eval()
    one, method = local(net), SHOT(rounds=10)
    some = batch(0)
    half = torch.tensor([0, 1] * (len(some.y) // 2))
    both = replace(some, y=some.y.masked_fill(half == 1, -1), groups=half[:, None])
    source, target = (
        replace(both, x=both.x[half == g], y=both.y[half == g], groups=both.groups[half == g])
        for g in (0, 1)
    )
    expected = (method.task(one, source) + method.task(one, target)) / 2
    torch.testing.assert_close(method.task(one, both), expected)


def test_information_is_zero_where_all_rows_look_alike_or_are_unsure():
    for rows in (torch.tensor([[9.0, 0.0, 0.0]] * 4), torch.zeros(4, 3)):
        assert information(rows, Batch(rows, torch.zeros(4))).item() == pytest.approx(0, abs=1e-5)


def test_rare_classes_lose_their_centroid():
    outputs = torch.tensor([[5.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    said = torch.cat([outputs, torch.eye(3)[[0, 0, 1]]], 1)
    assert pseudo_labels(said, width=3).tolist() == [0, 0, 1]
    assert pseudo_labels(said, least=1, width=3).tolist() == [0, 0, 0]
    assert pseudo_labels(said, least=5, width=3).tolist() == [0, 0, 1]  # nobody: predictions
    method = SHOT(rounds=9, start=5, every=3, least=1, width=3)
    assert [n for n in range(5, 12) if method.relabel(n)] == [5, 8, 11]  # from its first round on
    assert method.relabel(5)(said).tolist() == [0, 0, 0]


@pytest.fixture
def three() -> Federation:
    """A source and two users without labels, whose rows lie elsewhere."""
    rng, y = torch.Generator().manual_seed(0), torch.arange(ROWS) % CLASSES
    group = (torch.arange(ROWS) >= 24).long()[:, None]
    x = 3 * torch.eye(WIDTH)[y] + 0.3 * torch.randn(ROWS, WIDTH, generator=rng) + 0.5 * group
    hidden = torch.where(group[:, 0] == 1, -1, y)
    data = Dataset("three", Split(x, hidden, group), Split(x, y, group), CLASSES)
    rows = ClientIndices.from_lists(np.split(np.arange(ROWS), [24, 36]))
    return Federation(data, [Partition("", rows, None, rows)] * 2, quiet(), [0, 1])


def labelled(fed: Federation, method=SHOT(rounds=4, every=2), **more):  # noqa: B008
    training = LocalTraining(0.05, 12, 0.9, keep_momentum=True)
    return run(fed, method, training, 4, workers=1, **more)


def test_devices_label_their_own_rows_in_each_run_and_lanes_agree(three):
    looped, batched = labelled(three), labelled(three, lanes="batched")
    labels = looped.tensors["labels"].long()  # [R, n]
    assert torch.equal(labels[:, :24], three.data.train.y[:24].expand(2, -1))
    assert (labels[:, 24:] >= 0).all() and (three.data.train.y[24:] == -1).all()
    assert "labels" not in labelled(three, DANN(rounds=2)).tensors
    assert torch.equal(batched.tensors["labels"].long(), labels)
    torch.testing.assert_close(batched.tensors["shared"], looped.tensors["shared"])
    names = three.net.state_dict()
    moved = looped.layout.views(looped.tensors["shared"], looped.tensors["personal"][:, 0])
    still = [n for n in names if torch.equal(moved[n][0], names[n])]
    assert sorted(still) == sorted(n for n in names if not n.startswith("encoder."))


def test_users_with_statistics_of_their_own_are_predicted_by_these():
    rng = np.random.default_rng(0)
    y, user = np.arange(120) % 3, np.repeat([0, 1, 2], 40)
    x = 4 * np.eye(3)[y] + 0.3 * rng.standard_normal((120, 3)) + 3 * user[:, None]
    own = adaptation.adapt(x, y, user, SHOT(batch_norm="local"), rounds=10)
    assert (own.predict(x, user) == y).mean() > 0.9
    assert (own.predict(x[user == 2], 2) == own.predict(x, user)[user == 2]).all()
    assert not torch.equal(own.outputs(x, user), own.outputs(x, 0))
    for told, said in (
        ((x,), "say by user whose x is"),
        ((x, 7), "user 7 is none of 0, 1, 2"),
        ((x[:, :2], user), r"x is \[120, 2\]; it must be \[n, 3\]"),
        ((x, user[:3]), r"user is \[3\]; it must be one, or \[120\]"),
    ):
        with pytest.raises(SettingsError, match=said):
            own.predict(*told)


def test_pseudo_labels_are_those_of_the_released_code():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        outputs, z = rng.normal(size=(40, 4)), rng.normal(size=(40, 3))
        p, one = np.exp(outputs), np.c_[z, np.ones(40)]
        p, one = p / p.sum(1, keepdims=True), one / np.linalg.norm(one, axis=1, keepdims=True)
        for _ in range(2):
            centroid = p.T @ one / p.sum(0)[:, None]
            label = cdist(one, centroid, "cosine").argmin(1)
            p = np.eye(4)[label]
        said = torch.from_numpy(np.c_[outputs, z])
        assert pseudo_labels(said, width=3).tolist() == label.tolist()


@pytest.mark.parametrize("each", [False, True])
def test_the_games_weight_and_power_count(each):
    one, rows = local(quiet()), batch(1)
    _, logits = one.net(rows.x, watch=lambda z: z)
    method = DANN(rounds=10, weight=0.5, power=2.0, per_sample=each)
    expected = method.task(one, rows) + 0.5 * group_loss(logits, rows, 2.0, each)
    torch.testing.assert_close(method.loss(one, rows), expected)
    first = replace(rows, weight=torch.eye(8)[0])  # the others are padding
    one_row = replace(rows, x=rows.x[:1], y=rows.y[:1], groups=rows.groups[:1])
    assert group_loss(logits, first, 2.0, each) == group_loss(logits[:1], one_row, 2.0, each)
