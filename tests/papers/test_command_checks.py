from dataclasses import fields

import pytest

from lgfed_core.errors import SettingsError
from lgfed_core.methods import LGFedAvg
from lgfed_core.papers import command_checks, experiments


def test_changes_take_the_type_of_the_setting():
    pairs = "starts=400,800 softmax=true local_stop=0.9,50 decay=none fraction=1 alone="
    mnist = experiments.find("lgfedavg.mnist").Settings
    changes = command_checks.changes(mnist, pairs.split())
    wanted = dict(starts=(400, 800), softmax=True, local_stop=(0.9, 50), decay=None, fraction=1.0)
    assert changes == wanted | dict(alone=()) and isinstance(changes["fraction"], float)


def test_names_that_belong_together_are_joined_by_commas():
    found = command_checks.changes(LGFedAvg, ["layers=head,tail"])
    assert found == dict(layers=frozenset({"head", "tail"}))
    assert command_checks.changes(LGFedAvg, ["layers=head"])["layers"] == frozenset({"head"})


def test_a_place_is_a_file_or_a_module_and_a_name(tmp_path):
    (tmp_path / "mine.py").write_text("")
    assert command_checks.place(f"{tmp_path}/mine.py:Mine") == (f"{tmp_path}/mine.py", "Mine")
    assert command_checks.place("a.module:Mine") == ("a.module", "Mine")
    for text, said in {
        "mine.py": "names no method",
        "no.py:Mine": "there is no file no.py",
    }.items():
        with pytest.raises(SettingsError, match=said):
            command_checks.compare((text, None), "paper", "auto", None)


@pytest.mark.parametrize("name", experiments.PLACES)
def test_every_setting_can_be_said_on_the_command_line(name):
    experiment = experiments.find(name)
    usual = experiment.settings("paper", "as_described")
    pairs, wanted = [], {}
    for field in fields(usual):
        value = getattr(usual, field.name)
        if field.name not in ("scale", "protocol"):
            words = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            pairs.append(f"{field.name}={words}")
            wanted[field.name] = value
    assert command_checks.changes(experiment.Settings, pairs) == wanted
