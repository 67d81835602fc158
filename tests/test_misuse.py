"""Measures and arrays of one's own: shapes, types and ranges that cannot be meant are named."""

import numpy as np
import pytest
import torch

from lgfed_core import methods
from lgfed_core.data import Dataset, Split
from lgfed_core.engine import LocalTraining, run
from lgfed_core.errors import LgfedError
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.shot import SHOT, pseudo_labels
from lgfed_core.metrics import fairness, frechet, information, inversion, probes
from lgfed_core.metrics.linear import linear_probe
from lgfed_core.models.adult import AdultNet
from lgfed_core.models.cgau import CGAU, GatedMLP, joined_clients
from lgfed_core.partition import feature_clusters
from lgfed_core.testing import privacy_oracle
from lgfed_core.testing.privacy_oracle import Claimed
from toy import Toy, toy_federation

A, G = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
X = np.random.default_rng(0).standard_normal((8, 3))
ROWS = Split(torch.from_numpy(X).float(), torch.arange(8) % 2)
PRIVATE = Privacy(1.0, 1.0)
H, GROUPS = torch.from_numpy(X).float()[None], (torch.arange(8) % 2)[:, None]
Y, TRAINING = A.repeat(2), np.zeros(8, int)


def clustered(x=X, y=Y, part=TRAINING, clients=2, seed=0):
    return feature_clusters.simulate(x, y, part, clients, seed)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("one for each", lambda: fairness.auc(A, A[:2])),
        (r"labels are \[0 2\]", lambda: fairness.auc(A, 2 * A)),
        ("shapes are decisions", lambda: fairness.demographic_parity(A, A[:2])),
        ("shapes are decisions", lambda: fairness.demographic_parity(A[:0], A[:0])),
        ("decisions are", lambda: fairness.demographic_parity(7 * A, A)),
        ("shapes are", lambda: fairness.equalised_odds(A, A[:2], A)),
        ("shapes are", lambda: fairness.equalised_odds(A[:0], A[:0], A[:0])),
        ("labels are", lambda: fairness.delta_eo(A, 7 * A, G)),
        ("decisions are", lambda: fairness.delta_eo(A * np.nan, A, G)),
        ("shapes are", lambda: fairness.delta_eo(A, A[:2], G)),
        ("one for each", lambda: fairness.label_leak(A, A[:2])),
        ("rows have 3 and 2 numbers", lambda: frechet.samples(X, X[:, :2])),
        ("not finite", lambda: probes.probe(
            torch.full((1, 8, 3), torch.nan), (torch.arange(8) % 2)[:, None], 4)),
        ("clip is inf", lambda: Privacy(float("inf"), 1.0)),
        ("uploads is -1", lambda: PRIVATE.epsilon(-1, 1e-5)),
        ("delta 2.0", lambda: PRIVATE.epsilon(1, 2.0)),
        ("one for each row", lambda: feature_clusters.parts(A, A[:2], 0.1, 0)),
        ("seed is -1", lambda: feature_clusters.parts(A, A == 2, 0.1, -1)),
        ("seed is '0'", lambda: clustered(seed="0")),
        (r"labels \(7,\)", lambda: clustered(y=np.zeros(7, int))),
        (r"parts \(9,\)", lambda: clustered(part=np.zeros(9, int))),
        ("labels are <U1", lambda: clustered(y=np.array(["a", "b"] * 4))),
        ("parts bool", lambda: clustered(part=np.zeros(8, bool))),
        ("from 0 to 7", lambda: clustered(part=np.full(8, 7) * (np.arange(8) == 0))),
        ("finite numbers", lambda: clustered(x=X * np.nan)),
        ("1 training rows", lambda: clustered(part=2 * np.minimum(np.arange(8), 1), clients=1)),
        ("means", lambda: frechet.gaussians([3], np.eye(2), [0, 0], np.eye(2))),
        ("means", lambda: frechet.gaussians([np.nan, 0], np.eye(2), [0, 0], np.eye(2))),
        ("symmetric", lambda: frechet.gaussians([0, 0], [[1, 0.9], [0, 1]], [0, 0], np.eye(2))),
        ("symmetric", lambda: frechet.gaussians([0, 0], np.eye(3), [0, 0], np.eye(2))),
        ("sums to 40", lambda: information.information([[20, 0], [0, 20]])),
        ("sums to nan", lambda: information.entropy([0.5, np.nan])),
        ("sums to 1", lambda: information.entropy([1.5, -0.5])),
        (r"labels \[7\]", lambda: linear_probe(X, A.repeat(2), X, np.full(8, 7))),
        (r"groups \[8\]", lambda: probes.probe(H, torch.arange(8) % 2, 4)),
        (r"representations are \[8, 3\]", lambda: probes.probe(H[0], GROUPS, 4)),
        ("fit -20", lambda: probes.probe(H, GROUPS, -20)),
        ("fit 4.5", lambda: probes.probe(H, GROUPS, 4.5)),
        (r"groups are \[1, 2\]", lambda: probes.probe(H, GROUPS + 1, 4)),
        (r"groups are \[0, 1, 2\]", lambda: probes.probe(H, (torch.arange(8) % 3)[:, None], 4)),
        (r"judged on \[8, 1\] and \[8\]", lambda: linear_probe(X, Y, X[:, :1], Y)),
        (r"judged on \[8, 3\] and \[4\]", lambda: linear_probe(X, Y, X, A)),
        (r"judged on \[0, 3\] and \[0\]", lambda: linear_probe(X, Y, X[:0], Y[:0])),
        (r"fitted to \[8, 3\] and \[4\]", lambda: linear_probe(X, A, X, Y)),
        (r"fitted to \[8\] and \[8\]", lambda: linear_probe(X[:, 0], Y, X, Y)),
        ("all rows are of group 1", lambda: fairness.demographic_parity(A, 0 * A + 1)),
        ("all rows are of group 1", lambda: fairness.equalised_odds(A, A, 0 * A + 1)),
        (r"law of shape \[2, 2, 2\]", lambda: information.information(np.full((2, 2, 2), 1 / 8))),
        (r"law of shape \[2\]", lambda: information.information([0.5, 0.5])),
        ("no values", lambda: information.entropy([])),
        ("no values", lambda: information.information([[]])),
        ("strength is -1", lambda: methods.FADE(strength=-1.0)),
        ("weight is -1", lambda: DANN(weight=-1.0)),
        ("information is -1", lambda: SHOT(information=-1.0)),
        ("least is 0.5", lambda: SHOT(least=0.5)),
        ("lambda_local is nan", lambda: methods.FairLGFedAvg(lambda_local=float("nan"))),
        ("power is 0.5", lambda: methods.FairLGFedAvg(power=0.5)),
        ("adversary_steps is 1.5", lambda: methods.FairLGFedAvg(adversary_steps=1.5)),
        ("no parameters in local, own, adversary, head", lambda: methods.FairLGFedAvg().steps(
            torch.nn.Linear(2, 2))),
        ("no parameters in head", lambda: methods.FairLGFedAvg().steps(AdultNet(0))),
        ("no part called classifier", lambda: SHOT().steps(torch.nn.Linear(2, 2))),
        ("width is 9, of 9 logits", lambda: pseudo_labels(torch.zeros(4, 9), width=9)),
        ("SHOT needs groups", lambda: SHOT().learnt(
            torch.zeros(2, 3), methods.Batch(torch.zeros(2, 1), torch.zeros(2).long()))),
        ("cap is 0", lambda: methods.ClientBaseline(cap=0)),
        ("per is -2", lambda: methods.ClientBaseline(per=-2)),
        ("positive is -3", lambda: methods.ClientBaseline(positive=-3.0)),
        ("auxiliary is 'own'", lambda: methods.LGFedAvgV1(layers={"a"}, auxiliary="own")),
        ("devices is 3, sampling 0.4", lambda: Claimed(1.0, 0.1, 3, sampling=0.4)),
        ("calls is 1", lambda: privacy_oracle.check(lambda u, g: u, Claimed(1.0, 0.1, 4), calls=1)),
        (r"h is \[2, 2\]", lambda: CGAU(4, 2, 3)(torch.zeros(2, 4), torch.zeros(2, 2))),
        (r"h is \[3\]", lambda: CGAU(4, 2, 3)(torch.zeros(2, 4), torch.zeros(3))),
        ("own networks", lambda: joined_clients([])),
        ("own networks", lambda: joined_clients([GatedMLP(4, 2, 1, clients=2)])),
        ("classes is '2'", lambda: Dataset("mine", ROWS, ROWS, "2")),
        ("a test row", lambda: Dataset("mine", ROWS, Split(ROWS.x[:, :2], ROWS.y), 2)),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_named(said, asked):
    with pytest.raises(LgfedError, match=said):
        asked()


def test_one_output_is_for_two_labels():
    one_output = Toy.passing(lambda net, x: Toy.forward(net, x)[:, :1])
    fed, training = toy_federation(net=one_output), LocalTraining(0.1, 4)
    with pytest.raises(LgfedError, match="one output, .* those of the rows go up to 2"):
        run(fed, methods.ClientBaseline(), training, 1)


def test_clients_may_have_any_names():
    rng = np.random.default_rng(0)
    x, who = rng.standard_normal((90, 3)), np.arange(90) % 3
    x[who == 2] += 10
    gamma = frechet.heterogeneity(x, who)
    assert frechet.heterogeneity(x, np.array([0.25, 0.5, 0.75])[who]) == gamma
    found = frechet.per_client(x, np.array(["01", "1", "b"])[who])
    assert list(found) == ["01", "1", "b"] and np.mean(list(found.values())) == gamma


def test_a_row_is_read_off_the_smallest_gradient():
    d, x = torch.tensor([[0.5], [-0.25]]), torch.tensor([[3.0, 4.0]])
    for much in (1.0, 1e-6, 1e-12):
        weight, bias = much * d @ x, much * d[:, 0]
        assert torch.allclose(inversion.only_input(weight, bias), x[0])
        assert torch.allclose(inversion.inputs(weight, bias), x.expand(2, 2))
    assert inversion.only_input(torch.zeros(2, 2), torch.zeros(2)).tolist() == [0, 0]
    a = torch.randn(1, 9, generator=torch.Generator().manual_seed(0))
    assert inversion.correlation(1e-7 * a, 1e-7 * a).item() == pytest.approx(1)
    for one, other in ((100.3, 50.7), (0.3, 0.7)):  # constant, but for roundings
        flat = torch.full((1, 9), one), torch.full((1, 9), other)
        assert inversion.correlation(*flat).item() == 0 == inversion.correlation(a, flat[0]).item()


def test_a_linear_probe_takes_any_two_labels():
    y = np.arange(8) % 2
    h = X + 9 * y[:, None]
    for labels in ([0, 1], [1, 2], [-1, 1], ["a", "b"]):
        named = np.array(labels)[y]
        assert linear_probe(h, named, h, named) == (1.0, 1.0)


def test_a_unit_that_is_silent_while_a_probe_is_fitted_does_not_drown_the_others():
    rng = np.random.default_rng(0)
    g = (rng.random((600, 1)) < 0.5).astype(int)
    told = g + 0.5 * rng.standard_normal((600, 1))
    silent = np.where(np.arange(600)[:, None] < 300, 0.0, 1e-3 * rng.standard_normal((600, 1)))
    alone, beside = (probes.probe(h[None], g, 300) for h in (told, np.hstack([told, silent])))
    for kind in ("logistic", "network"):  # judged rows alone have it, a thousandth of the other
        assert beside[kind] == pytest.approx(alone[kind], abs=0.02), kind


def test_probes_take_arrays_as_other_measures_do():
    rng = np.random.default_rng(0)
    g = np.arange(40)[:, None] % 2
    h = rng.standard_normal((1, 40, 3)) + 9 * g
    found, again = probes.probe(h, g, 20), probes.probe(torch.tensor(h), torch.tensor(g), 20)
    assert all(np.array_equal(found[kind], again[kind]) for kind in probes.KINDS)
    lists = [array.tolist() for array in (h[0], g[:, 0])]
    assert linear_probe(*lists, *lists) == (1.0, 1.0)


def test_few_rows_to_fit_on_hold_one_out():
    rng = torch.Generator().manual_seed(0)
    groups = (torch.arange(40) % 2)[:, None]
    h = (torch.randn(40, 3, generator=rng) + 9 * groups).double()[None].requires_grad_()
    assert probes.probe(h, groups, 4)["network"].item() > 0.9


def test_client_numbers_may_be_whole_and_switches_hold_without_a_client():
    layer = CGAU(4, 2, 3, client_bias=True)
    for p in layer.parameters():
        torch.nn.init.normal_(p)
    x, h = torch.randn(2, 4), torch.eye(3)[:2]
    assert torch.equal(layer(x, h), layer(x, h.long()))
    off = ("modulation",)
    nobody = zip(layer.parts(x, None, off), layer.parts(x, torch.zeros(2, 3), off), strict=True)
    assert all(torch.allclose(a, b) for a, b in nobody)
    nets = [GatedMLP(4, 2, 1).double()] * 2
    assert joined_clients(nets).out.weight.dtype == torch.float64
