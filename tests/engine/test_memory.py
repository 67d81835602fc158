"""What does not fit in memory lies on disk, with the same result, and leaves nothing there."""

import os

import pytest
import torch

from lgfed_core import paths
from lgfed_core.engine import memory, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import LGFedAvg
from toy import ABOVE, SGD, models, toy_federation


@pytest.mark.parametrize("workers", [1, 2])
def test_personal_layers_on_disk_learn_the_same(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    fed = toy_federation([0, 1])
    expected = run(fed, LGFedAvg(layers=ABOVE), SGD, 3, workers=workers)
    used = []
    monkeypatch.setattr(memory, "available", lambda: 0.0)
    there = memory._on_disk
    monkeypatch.setattr(memory, "_on_disk", lambda *what: used.append(what) or there(*what))
    found = run(fed, LGFedAvg(layers=ABOVE), SGD, 3, workers=workers)
    assert len(used) >= 3, "shared, personal, uploads"
    assert torch.equal(models(expected), models(found))
    assert not list((tmp_path / "runs").iterdir())


def test_no_room_at_all_is_named(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    with pytest.raises(SettingsError, match=r"10000000 x 100000000 .* set LGFED_RUNS to a folder"):
        memory.zeros(10**7, 10**8, forked=True)


def test_this_machine_says_what_it_has():
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < memory.available() <= there
