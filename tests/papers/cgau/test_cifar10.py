"""CGAU on CIFAR-10 end to end on made-up features; its claims on made-up rows; newcomers."""

import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core.data import Split
from lgfed_core.engine import LocalTraining
from lgfed_core.evidence import records as results
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.models.cgau import Baseline, GatedMLP, client_rows
from lgfed_core.models.layout import Layout
from lgfed_core.papers.cgau import federated
from lgfed_core.papers.cgau.audio.run import AUDIO
from lgfed_core.papers.cgau.cifar10 import (
    claims as judged,
    new_clients,
    run as cifar10,
    time as cost,
)
from lgfed_core.papers.cgau.cifar10.new_clients import NEW_CLIENTS
from lgfed_core.papers.cgau.cifar10.run import CIFAR10
from lgfed_core.papers.cgau.cifar10.time import TIME
from toy import ten_classes


@pytest.fixture(scope="module")
def toy():
    made = ten_classes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cifar10, "_load", lambda *args: made)
        yield made


def test_one_client_alone_trains_and_has_no_distances(toy):
    cfg = CIFAR10.settings("smoke", clients=1, methods=("baseline",))
    assert list(dict(CIFAR10.stages(cfg, [0], resume=False, workers=1))) == ["baseline"]


def test_only_the_audio_baseline_weighs_by_batches(toy):
    rows = torch.tensor([161, 192])
    for experiment, right in ((AUDIO, [0.5, 0.5]), (CIFAR10, [161 / 353, 192 / 353])):
        method = experiment.settings("paper", "as_released").method("baseline")
        assert method.weights(rows).tolist() == pytest.approx(right)


def test_settings_are_what_text_and_code_say():
    text, code = (CIFAR10.settings("paper", p) for p in PROTOCOLS)
    assert (text.features, text.units, text.rounds, text.lr) == ("inception_v3", 128, 500, 0.01)
    assert (text.clients, text.steps, text.batch_size, text.validation) == (10, 10, 32, 0.2)
    assert text.shuffles == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert (code.features, code.units, code.rounds) == ("cifar_cnn", 64, 50)
    assert code.used * 10 * (1 - code.validation) == pytest.approx(10_000)
    assert CIFAR10.settings("paper", features="mobilenet_v2").lr == 0.01


def test_a_hundred_clients_cost_what_ten_cost():
    ten, hundred = (CIFAR10.settings("paper", clients=k) for k in (10, 100))
    assert hundred.shuffles == (0.0, 1.0)
    assert ten.participation.cohort(10) == hundred.participation.cohort(100) == 10
    assert cifar10.tables(ten) == ("cgau_cifar10_frechet", "cgau_figure2b")
    assert cifar10.tables(hundred)[1] == "cgau_cifar10_100_clients"
    other = CIFAR10.settings("paper", features="cifar_cnn", clients=50)
    assert cifar10.tables(other)[0] == "cgau_cifar10_cifar_cnn_50_clients_frechet"


@pytest.mark.parametrize(
    ("made", "table", "classes"),  # the classes whose centroids a row may go to
    [
        ("within_classes", "cgau_cifar10_all_classes", 1),
        ("own_class", "cgau_cifar10_any_class", 10),
    ],
)
def test_the_control_and_the_other_reading_have_rows_of_their_own(toy, made, table, classes):
    cfg = CIFAR10.settings("paper", **{made: False})
    assert cfg.shuffles == (0.0,) and cifar10.tables(cfg)[1] == table
    who = federated.simulated(CIFAR10.settings("smoke", **{made: False}), toy, 0)
    far = ((who.plane[:, None, None] - who.means[:classes]) ** 2).sum(-1)  # [n, C, K]
    assert (who.client == far.reshape(len(toy), -1).argmin(1) % who.clients).all()


def test_rows_that_lie_idle_are_training_rows(toy):
    some = cifar10._some(toy, 7)
    assert some.test.sum() == toy.test.sum() and len(some) == toy.test.sum() + 70
    assert (some.x[0] == toy.x[0]).all() and cifar10._some(toy, None) is toy


def test_rows_of_a_part_of_the_pictures_are_left_out(toy, tmp_path, monkeypatch):
    cfg = CIFAR10.settings("smoke", methods=("baseline",))
    parts = CIFAR10.stages(cfg, [0], resume=False, lanes="batched")
    rows = pd.concat([CIFAR10.records(cfg, *part) for part in parts])
    assert set(rows["features"]) == {"cifar_cnn"} and set(rows["clients"]) == {3}
    rows = rows.assign(scale="paper", table=CIFAR10.table)
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    results.record(CIFAR10.name, rows.assign(stand_in="first 50 of each class"), tmp_path)
    assert cifar10.stored().empty
    results.record(CIFAR10.name, rows.assign(stand_in=""), tmp_path)
    assert set(cifar10.stored()["stand_in"]) == {""} and cifar10.stored("cifar_cnn").empty
    assert len(cifar10.stored()) == len(rows)


# The claims.


def made_up(gain, base=lambda p: 78.0, spread=0.1, seeds=5, stand_in=""):
    rng, lines = np.random.default_rng(0), []
    for seed in range(seeds):
        for p in np.linspace(0, 1, 6).round(1):
            level = base(p) + spread * rng.normal()
            for selection in ("best_val", "last"):
                cgau = level + gain(p) + spread * rng.normal()
                for method, value in (("baseline", level), ("cgau_kept", cgau)):
                    lines.append((seed, p, method, selection, "test_acc", value))
            gamma = 1000 * (1.01 - p) + rng.normal()
            lines.append((seed, p, "", "last", federated.GAMMA, gamma))
    columns = ["seed", "shuffle_proportion", "method", "selection", "metric", "value"]
    rows = pd.DataFrame(lines, columns=columns)
    return rows.assign(table=CIFAR10.table, protocol="as_described", stand_in=stand_in)


def judge(*found: pd.DataFrame) -> pd.DataFrame:
    return judged.judged(judged.Found(*found))


def timed(ratio, seeds=5):
    """Rounds of which every second repetition ran on a machine half as fast."""
    cost = {("looped", "baseline"): 20.0, ("looped", "cgau_kept"): 20.0 * ratio}
    cost |= {("batched", "baseline"): 10.0, ("batched", "cgau_kept"): 50.0}
    lines = [
        (*what, seed, (1 + seed % 2) * ms + 0.001 * seed)
        for seed in range(seeds)
        for what, ms in cost.items()
    ]
    return pd.DataFrame(lines, columns=["way", "method", "seed", "value"])


def test_what_the_paper_says_would_be_confirmed():
    found = made_up(lambda p: 3.0 - 2.5 * p)
    lines = judge(found, made_up(lambda p: 0.3), timed(1.85))
    assert list(lines.index) == ["C3", "C4", "C5", "C6", "C7", "C9"]
    assert lines["verdict"].eq("confirmed").all()
    assert lines.loc[["C4", "C6", "C7"], "at"].str.endswith("in points").all()


def test_what_holds_on_some_proportions_alone_is_not_confirmed():
    found, itself = made_up(lambda p: 3.0 - 2.5 * p), made_up(lambda p: 0.3)
    for out in (0.0, 0.4, 1.0):
        lines = judge(found[found["shuffle_proportion"] != out], itself, timed(1.85))
        assert not lines.drop("C9")["verdict"].eq("confirmed").any(), out
        assert lines.loc["C3", "said"].startswith("confirmed so far, 5 of 6 comparisons")
    lost = made_up(lambda p: -1.0)
    only = judge(lost[lost["shuffle_proportion"] == 0.2])
    assert only.loc["C3", "verdict"] == "refuted"


def test_what_it_does_not_say_would_not():
    found = made_up(lambda p: -1.0 + p, base=lambda p: 78 + 5 * p)
    other = made_up(lambda p: 2.0, stand_in="a small CNN")
    lines = judge(found, other, timed(4.0))
    assert lines.loc[["C3", "C4", "C6", "C9"], "verdict"].tolist() == ["refuted"] * 4
    assert lines.loc["C9", "at"] == "the seconds' ratio less 1.85"
    assert lines.loc["C7", "said"] == "on stand-in data (a small CNN): refuted"
    level = judge(made_up(lambda p: 0.0))["verdict"]
    assert "C7" not in level and "C9" not in level
    assert not level[["C3", "C4"]].eq("confirmed").any()


def test_a_part_of_cifar10_is_no_cifar10():
    found = made_up(lambda p: 3.0 - 2.5 * p, stand_in="first 100 of each class")
    assert judge(found)["said"].str.startswith("on stand-in data (first 100").all()
    assert judge(found.iloc[:0]).empty


def test_times_are_compared_within_a_repetition():
    found = cost.ratios(timed(1.5)).groupby(["way", "method"])["ratio"]
    assert found.mean()["looped", "cgau_kept"] == pytest.approx(1.5, abs=1e-3)
    assert found.std()["batched", "cgau_kept"] < 1e-3


def test_without_the_baseline_there_is_nothing_to_compare_with():
    found, times = made_up(lambda p: 1.0), timed(1.5)
    ratios = cost.ratios(times)
    none = cost.ratios(times[times["method"] != "baseline"])
    assert none.empty and list(none) == list(ratios)
    kept = found[found["method"] != "baseline"]
    lines = judge(kept, kept, times[times["method"] != "baseline"])
    assert not lines["verdict"].isin(["confirmed", "refuted"])[lines.index != "C5"].any()


def test_rounds_are_timed_in_turn(tmp_path):
    cfg = TIME.settings("smoke", methods=("baseline", "cgau_kept"))
    parts = list(TIME.stages(cfg, [0, 1], resume=False, workers=1))
    order = ["looped_baseline", "looped_cgau_kept", "batched_baseline", "batched_cgau_kept"]
    assert [name for name, _ in parts] == 2 * order
    rows = pd.concat([TIME.records(cfg, name, outcome) for name, outcome in parts])
    assert (rows["value"] > 0).all() and set(rows["seed"]) == {0, 1}
    results.record(TIME.name, rows, tmp_path)
    assert len(cost.ratios(results.load(TIME.name, tmp_path))) == 4


def test_slopes_by_hand():
    found = made_up(lambda p: 4.0 - 2.0 * p, spread=0.0)
    level, tilted, more = (part.evidence for part in judged.slopes(judged.Found(found)))
    assert level.estimate == pytest.approx(0) and tilted.estimate == pytest.approx(2.0)
    assert more.estimate == pytest.approx(2.0)
    both = found.assign(value=found["value"] - 3.0 * found["shuffle_proportion"])
    level, tilted, more = (part.evidence for part in judged.slopes(judged.Found(both)))
    assert level.estimate == pytest.approx(-3) and level.p > 0.5  # the baseline falls, too
    assert tilted.estimate == pytest.approx(5.0) and more.estimate == pytest.approx(2.0)


# Newcomers.


def test_the_last_clients_stay_away(toy):
    cfg = NEW_CLIENTS.settings("smoke")
    who = federated.simulated(cfg, toy, 0).partition()
    known, new = new_clients.known_and_new(who, 1)
    assert (len(known), len(new)) == (2, 1)
    assert known.train.of(1).tolist() == who.train.of(1).tolist()
    assert new.test.of(0).tolist() == who.test.of(2).tolist()


def test_a_fitted_row_learns_what_is_special_about_the_newcomer():
    """It has one class only, of which a random network knows nothing."""
    torch.manual_seed(0)
    net = GatedMLP(2, 4, 2, dropout=0.0, released=False)
    layout = Layout(net, {n for n, _ in net.named_parameters()} - client_rows(net))
    shared = torch.randn(layout.size_shared)
    before, known = shared.clone(), torch.randn(3, layout.size_personal)
    x = torch.randn(200, 2)
    mine = Split(x, torch.zeros(200, dtype=torch.long))
    training = LocalTraining(0.5, 32, 0.9)

    def rows() -> dict[str, torch.Tensor]:
        found = new_clients.ways(net, layout, shared, known, mine, training, (1, 50), seed=0)
        return {way: row for way, *_, row in found}

    found = rows()
    assert list(found) == ["zero", "mean", "fitted_1", "fitted_50"]
    assert not found["zero"].any() and torch.allclose(found["mean"], known.mean(0))
    right = {w: new_clients.right(net, layout, shared, row, mine) for w, row in found.items()}
    assert right["fitted_50"] > max(right["zero"], 150)
    assert torch.equal(rows()["fitted_50"], found["fitted_50"])
    assert torch.equal(shared, before), "nothing that is shared moves"


def test_a_network_without_client_rows_fits_a_part_of_its_own():
    torch.manual_seed(0)
    net = Baseline(2, 4, 2, dropout=0.0)
    plain = Layout(net, {n for n, _ in net.named_parameters()})
    shared, x = torch.randn(plain.size_shared), torch.randn(200, 2)
    mine, training = Split(x, torch.zeros(200, dtype=torch.long)), LocalTraining(0.5, 32, 0.9)
    before = new_clients.right(net, plain, shared, torch.empty(0), mine)
    none = torch.empty(3, 0)
    each = new_clients.ways(net, plain, shared, none, mine, training, (1, 50), 0)
    found = {way: rest for way, *rest in each}
    assert list(found) == ["as_it_is", "biases_1", "biases_50", "last_1", "last_50"]
    assert set(found["biases_50"][0].personal) == {"fc1.bias", "fc2.bias", "out.bias"}
    assert set(found["last_50"][0].personal) == {"out.weight", "out.bias"}
    for layout, rest, own in (found["biases_50"], found["last_50"]):
        assert new_clients.right(net, layout, rest, own, mine) > max(before, 150)
        now, then = (dict(plain.views(v, v[:0])) for v in (layout.join(rest, own), shared))
        for name in layout.shared:
            assert torch.equal(now[name], then[name]), "nothing else moves"


def test_newcomers_from_end_to_end(toy, tmp_path):
    cfg = NEW_CLIENTS.settings("smoke")
    outcomes = dict(NEW_CLIENTS.stages(cfg, [0, 1], resume=False, lanes="batched"))
    rows = pd.concat([NEW_CLIENTS.records(cfg, part, o) for part, o in outcomes.items()])
    each = rows.groupby("method")["way"].agg(set)
    assert each["baseline"] == {"known", "as_it_is", "biases_2", "last_2"}
    assert each["cgau_kept"] == {"known", "zero", "mean", "fitted_2"}
    assert len(rows) == 2 * 2 * (4 + 4 + 4) and rows["value"].between(0, 100).all()
    results.record(NEW_CLIENTS.name, rows, tmp_path)
    assert outcomes["cgau_kept"].tensors["personal"].shape[1] == cfg.clients - 1
