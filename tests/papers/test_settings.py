"""Settings of every experiment: taken, or refused by name before anything is read or trained."""

import random
import re

import pytest
from fuzz_settings import changes
from hypothesis import given, settings, strategies as st

from lgfed_core.errors import SettingsError
from lgfed_core.papers import experiments
from lgfed_core.papers.fade.parts import Parts
from lgfed_core.papers.settings import _declared, _kinds

EXPERIMENTS = sorted(experiments.PLACES)
TEXTS = {"file"}  # of one's own: any text will do


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(EXPERIMENTS), st.integers(0, 2**32))
def test_whatever_is_set_is_planned_or_refused_by_name(name, seed):
    experiment, rng = experiments.find(name), random.Random(seed)
    changed, protocol = changes(rng, experiment), rng.choice(experiment.protocols)
    try:
        cfg = experiment.settings("smoke", protocol, **changed)
        assert experiment.plan(cfg, [0], "cpu", workers=1) or not cfg
    except SettingsError as error:
        assert any(word in str(error) for word in (*changed, "no part", "protocol")), str(error)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_number_of_any_experiment_may_be_infinite_or_of_another_type(name):
    experiment = experiments.find(name)
    for setting, kind in _kinds(experiment.Settings).items():
        if kind.many and setting not in experiment.Settings.EMPTY:
            with pytest.raises(SettingsError, match=f"{setting} is empty"):
                experiment.settings("smoke", **{setting: ()})
        wrong = {int: (-1, 2.5, True, 2**70, "3"), float: (-1.0, float("inf"), float("nan"), "1")}
        wrong |= {str: (3,), bool: (1,)}
        wrong[int] += (0,) * (setting not in _declared(experiment.Settings, "RANGES"))
        for value in wrong[kind.kinds[0]]:
            if setting in ("scale", "protocol") or (setting, value) == ("angle", -1):
                continue  # these have no place here; degrees may be negative
            several = (value,) * max(len(kind.kinds), 1 if kind.many else 0)
            value = several if kind.many or len(kind.kinds) > 1 else value
            with pytest.raises(SettingsError, match=setting):
                experiment.settings("smoke", **{setting: value})
    for scale in experiment.scales:
        for protocol in experiment.protocols:
            assert experiment.settings(scale, protocol)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_choice_of_any_experiment_may_be_another_and_no_protocol_one_that_it_lacks(name):
    experiment = experiments.find(name)
    known = _declared(experiment.Settings, "CHOICES")
    for setting, kind in _kinds(experiment.Settings).items():
        text = kind.kinds[0] is str and setting not in TEXTS
        if setting in ("scale", "protocol") or not (text or setting in known):
            continue
        other = {str: "nothing", int: 7, float: 0.123}[kind.kinds[0]]
        with pytest.raises(SettingsError, match=rf"^{setting} (has|{other!r} is none)"):
            experiment.settings("smoke", **{setting: (other,) if kind.many else other})
    if experiment.Settings.UNRELEASED:
        with pytest.raises(SettingsError, match=re.escape(experiment.Settings.UNRELEASED)):
            experiment.settings("smoke", "as_released")


@pytest.mark.parametrize(
    "name, changed, said",
    [
        ("fade.digits", dict(probabilities=()), "losses and statistics need some"),
        ("fade.digits", dict(probabilities=(0.0, 0.5)), "above 0 and below 1"),
        ("fade.digits", dict(losses=("cubed",)), r"losses has \['cubed'\]; there are vanilla, sq"),
        ("fade.digits", dict(opt_outs=(2.0,)), "has 2.0; each must be above 0 and at most 1"),
        ("fade.digits", dict(per_class=1000), ""),
        ("fade.objects", dict(per_round=(5,)), "from 1 to 4 users"),
        ("fade.objects", dict(backbone="vgg"), "backbone 'vgg'"),
        ("fade.objects", dict(noniid=3), ""),
        ("fade.impairment", dict(per_round=(40,)), "per_round is"),
        ("fade.impairment", dict(men=16), ""),
        ("fade.income", dict(males=(0, 4)), "males has 0; each must be at least 1"),
        ("fade.income", dict(per_round=3), "per_round is 3; .* at most 2"),
        ("fade.income", dict(validation=0.0), ""),
        ("cgau.cifar10", dict(own_class=False, within_classes=False), "no centroids of a class"),
        ("cgau.cifar10", dict(per_class=5_001), ""),
        ("cgau.cifar10", dict(clients=201), ""),
        ("cgau.new_clients", dict(new=3), "new is 3, and there are 3 clients"),
        ("cgau.time", dict(used=100), "used is 100; cgau.time has random numbers"),
        ("cgau.time", dict(clients=251), ""),
        ("everywhere", dict(tasks=("mnist",), methods=("fade",)), "this task has no groups"),
        ("lgfedavg.mnist", dict(alone=("local", "local")), ""),
        ("lgfedavg.mnist", dict(classes=3, devices=7), ""),
        ("lgfedavg.mnist", dict(devices=900, classes=10), ""),
        ("lgfedavg.mnist", dict(rows_per_class=(6000, 20)), ""),
        ("lgfedavg.cifar10", dict(rows_per_class=(40, 1001)), ""),
        ("lgfedavg.cifar10", dict(devices=10_000, rows_per_class=None), ""),
        ("lgfedavg.cifar10", dict(shared_layers=6), ""),
        ("lgfedavg.version1", dict(devices=5_001, rows_per_class=None), ""),
        ("lgfedavg.version1", dict(classes=5), ""),
        ("lgfedavg.rotated", dict(devices=60_001, rows_per_class=None), ""),
        ("lgfedavg.representations", dict(classes=3, devices=4), ""),
        ("lgfedavg.fairness", dict(devices=10**6), ""),
        ("lgfedavg.fairness", dict(first_rows=3), ""),
    ],
)
def test_what_cannot_be_or_no_data_could_allow_is_refused_by_name_before_any_are_read(
    name, changed, said
):
    with pytest.raises(SettingsError, match=said or next(iter(changed))):
        experiments.find(name).settings(**(dict(scale="smoke") | changed))


def test_values_that_do_not_go_together_do_not_hide_each_other():
    many = experiments.find("fade.impairment").settings("smoke", men=15, women=30, per_round=(40,))
    assert experiments.find("fade.impairment").plan(many, [0], "cpu")  # 26 people are usual
    fairness = experiments.find("lgfedavg.fairness")
    with pytest.raises(SettingsError, match="leave no part of it to run"):
        fairness.plan(fairness.settings("smoke", methods=(), losses=(), sweep=()), [0], "cpu")


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
        assert experiments.find(name).settings("smoke", **changed)


def test_without_momentum_adaptation_trains_by_plain_sgd():
    for momentum in (0.0, 0.9):
        cfg = experiments.find("fade.digits").settings("smoke", momentum=momentum)
        assert Parts(cfg, "", [0]).training().nesterov is (momentum > 0)
