from dataclasses import fields

import pytest

from lgfed_core.papers import command_checks, experiments


def test_changes_take_the_type_of_the_setting():
    pairs = "classes=5 lr=0.2 starts=400,800 rows_per_class=40,20 softmax=true patience=3"
    pairs += " local_stop=0.9,50 decay=none fraction=1"
    changes = command_checks.changes(experiments.find("lgfedavg.mnist").Settings, pairs.split())
    assert changes == {
        "classes": 5,
        "lr": 0.2,
        "starts": (400, 800),
        "rows_per_class": (40, 20),
        "softmax": True,
        "patience": 3,
        "local_stop": (0.9, 50),
        "decay": None,
        "fraction": 1.0,
    }
    assert isinstance(changes["fraction"], float)
    cifar10 = experiments.find("lgfedavg.cifar10")
    assert command_checks.changes(cifar10.Settings, ["alone=local,mtl"]) == {
        "alone": ("local", "mtl")
    }
    assert command_checks.changes(cifar10.Settings, ["alone="]) == {"alone": ()}


@pytest.mark.parametrize("name", experiments.ALL)
def test_every_setting_can_be_said_on_the_command_line(name):
    experiment = experiments.ALL[name]
    usual = experiment.settings("paper", "as_described")
    pairs, wanted = [], {}
    for field in fields(usual):
        value = getattr(usual, field.name)
        if field.name not in ("scale", "protocol"):
            words = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            pairs.append(f"{field.name}={words}")
            wanted[field.name] = value
    assert command_checks.changes(experiment.Settings, pairs) == wanted
