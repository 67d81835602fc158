"""Settings of every experiment: taken, or refused by name before anything is read or trained."""

import random
from types import SimpleNamespace

import pytest
from fuzz_settings import changes
from hypothesis import given, settings, strategies as st

from lgfed_core.errors import SettingsError
from lgfed_core.papers import experiments
from lgfed_core.papers.fade.digits import run as digits
from lgfed_core.papers.fade.objects import adaptation as objects
from lgfed_core.papers.settings import _kinds

EXPERIMENTS = sorted(experiments.ALL)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(EXPERIMENTS), st.integers(0, 2**32))
def test_whatever_is_set_is_planned_or_refused_by_name(name, seed):
    experiment, rng = experiments.ALL[name], random.Random(seed)
    changed, protocol = changes(rng, experiment), rng.choice(experiment.protocols)
    try:
        cfg = experiment.settings("smoke", protocol, **changed)
        assert experiment.plan(cfg, [0], "cpu", workers=1) or not cfg
    except SettingsError as error:
        assert any(word in str(error) for word in (*changed, "no part", "protocol")), str(error)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_number_of_any_experiment_may_be_infinite_or_of_another_type(name):
    experiment = experiments.ALL[name]
    for setting, kind in _kinds(experiment.Settings).items():
        wrong = {int: (-1, 2.5, True, 2**70, "3"), float: (float("inf"), float("nan"), "1")}
        wrong |= {str: (3,), bool: (1,)}
        for value in wrong[kind.kinds[0]]:
            if setting in ("scale", "protocol") or (setting, value) == ("angle", -1):
                continue  # these have no place here; degrees may be negative
            several = (value,) * max(len(kind.kinds), 1 if kind.many else 0)
            value = several if kind.many or len(kind.kinds) > 1 else value
            with pytest.raises(SettingsError, match=setting):
                experiment.settings("smoke", **{setting: value})


@pytest.mark.parametrize(
    "name, changed",
    [  # each ended in a traceback, or was taken without a word
        ("fade.digits", dict(looks=0)),
        ("fade.digits", dict(pretraining=0)),
        ("fade.digits", dict(directions=())),
        ("fade.digits", dict(probabilities=())),
        ("fade.digits", dict(tested=0)),
        ("fade.digits", dict(tested=-1)),
        ("fade.objects", dict(momentum=float("inf"))),
        ("fade.impairment", dict(losses=())),
        ("lgfedavg.version1", dict(budgets=())),
        ("lgfedavg.version1", dict(lg_shrink=float("nan"))),
        ("lgfedavg.version1", dict(goal=-1.0)),
        ("lgfedavg.mnist", dict(mtl_scale=-1.0)),
        ("lgfedavg.mnist", dict(decay=float("inf"))),
        ("cgau.audio", dict(shuffles=())),
        ("cgau.audio", dict(rounds=0)),
        ("cgau.audio", dict(units=0)),
        ("cgau.audio", dict(dropout=-1.0)),
        ("cgau.audio", dict(positive=float("nan"))),
        ("cgau.cifar10", dict(per_class=0)),
        ("cgau.time", dict(ways=())),
        ("cgau.time", dict(rows=0)),
        ("lgfedavg.fairness", dict(dropout=-1.0)),
        ("lgfedavg.fairness", dict(head_layers=0)),
        ("lgfedavg.fairness", dict(probed=0)),
        ("lgfedavg.fairness", dict(released_rounds=0)),
        ("lgfedavg.mnist", dict(alone=("local", "local"))),
    ],
)
def test_what_once_ended_in_a_traceback_is_refused_by_name(name, changed):
    with pytest.raises(SettingsError, match=next(iter(changed))):
        experiments.ALL[name].settings("smoke", **changed)


def test_values_that_do_not_go_together_do_not_hide_each_other():
    many = experiments.find("fade.impairment").settings("smoke", men=15, women=30, per_round=(40,))
    assert experiments.find("fade.impairment").plan(many, [0], "cpu")  # 26 people are usual
    fairness = experiments.find("lgfedavg.fairness")
    with pytest.raises(SettingsError, match="leave no part of it to run"):
        fairness.plan(fairness.settings("smoke", methods=(), losses=(), sweep=()), [0], "cpu")


@pytest.mark.parametrize(
    "name, changed",
    [
        ("lgfedavg.mnist", dict(classes=3, devices=7)),
        ("lgfedavg.mnist", dict(devices=900, classes=10)),
        ("lgfedavg.mnist", dict(rows_per_class=(6000, 20))),
        ("lgfedavg.cifar10", dict(rows_per_class=(40, 1001))),
        ("lgfedavg.cifar10", dict(devices=10_000, rows_per_class=None)),
        ("lgfedavg.cifar10", dict(shared_layers=6)),
        ("lgfedavg.version1", dict(devices=5_001, rows_per_class=None)),
        ("lgfedavg.rotated", dict(devices=60_001, rows_per_class=None)),
        ("lgfedavg.representations", dict(classes=3, devices=4)),
        ("lgfedavg.fairness", dict(devices=10**6)),
        ("lgfedavg.fairness", dict(first_rows=3)),
        ("lgfedavg.version1", dict(classes=5)),
        ("cgau.audio", dict(validation=0.0)),
        ("fade.income", dict(validation=0.0)),
        ("lgfedavg.vqa", dict(validation=0.0)),
        ("cgau.cifar10", dict(per_class=5_001)),
        ("cgau.cifar10", dict(clients=201)),
        ("cgau.time", dict(clients=251)),
        ("fade.digits", dict(per_class=1000)),
        ("fade.objects", dict(noniid=3)),
        ("fade.impairment", dict(men=16)),
    ],
)
def test_what_no_data_could_allow_is_refused_before_any_are_read(name, changed):
    experiment = experiments.ALL[name]
    with pytest.raises(SettingsError, match=next(iter(changed))):
        experiment.settings("smoke", **changed)
    for scale in experiment.scales:
        for protocol in experiment.protocols:
            assert experiment.settings(scale, protocol)


def test_what_just_fits_is_taken():
    for name, changed in {
        "lgfedavg.mnist": dict(devices=200, classes=10),
        "lgfedavg.cifar10": dict(devices=5000, classes=2, rows_per_class=None),
        "lgfedavg.version1": dict(devices=5_000, rows_per_class=None),
        "cgau.cifar10": dict(clients=200),
        "cgau.time": dict(clients=250),
        "fade.objects": dict(noniid=4),
        "fade.impairment": dict(men=15),
    }.items():
        assert experiments.ALL[name].settings("smoke", **changed)


def test_without_momentum_adaptation_trains_by_plain_sgd():
    for name, training in (
        ("fade.digits", digits.Parts.training),
        ("fade.objects", objects.Parts.training),
    ):
        for momentum in (0.0, 0.9):
            cfg = experiments.ALL[name].settings("smoke", momentum=momentum)
            assert training(SimpleNamespace(cfg=cfg)).nesterov is (momentum > 0)
