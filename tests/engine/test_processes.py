"""Workers beside a GPU: PyTorch's threads do not outlive a fork, on whatever device one trains.

There is none here: `torch.accelerator.is_available` is told to say so, and what PyTorch then
refuses in a worker is refused by hand. And what does not fit in memory lies on disk.
"""

import os
import warnings
from unittest.mock import patch

import pytest
import torch

from lgfed_core import LGFedAvg, paths
from lgfed_core.engine import looped, memory, run
from lgfed_core.engine.checks import losses
from lgfed_core.engine.processes import UNFORKED, Apart, Spread
from lgfed_core.errors import SettingsError
from toy import ABOVE, SGD, models, toy_federation

HERE = os.getpid()
ALONE = patch.object(torch.accelerator, "is_available", lambda *_: False)
BESIDE_A_GPU = patch.object(torch.accelerator, "is_available", lambda *_: True)


class Numbers(Spread):
    """Squares, in workers that may be unable to."""

    def __init__(self, workers, fault=""):
        super().__init__(workers)
        self.fault = fault

    def square(self, n):
        if self.fault and os.getpid() != HERE:
            raise RuntimeError(self.fault)
        return n * n, os.getpid()


def squares(numbers):
    try:
        return numbers._map(numbers.square, [(n,) for n in range(5)], 1)
    finally:
        numbers.close()


def test_jobs_are_spread():
    found = squares(Numbers(2))
    assert [n for n, _ in found] == [0, 1, 4, 9, 16] and all(pid != HERE for _, pid in found)


def test_workers_that_can_take_no_gradient_leave_it_to_this_process():
    numbers = Numbers(2, f"Unable to handle autograd's threading in combination with {UNFORKED}.")
    with pytest.warns(RuntimeWarning, match="one process does it all"):
        found = squares(numbers)
    assert found == [(n * n, HERE) for n in range(5)] and numbers.workers == 1


def test_another_fault_of_a_worker_is_one():
    with pytest.raises(RuntimeError, match="^no memory$"):
        squares(Numbers(2, "no memory"))


def test_a_call_is_apart_beside_a_gpu_only(tmp_path):
    def noted():
        (tmp_path / str(os.getpid())).touch()

    with ALONE:
        Apart(noted).call()
    assert [p.name for p in tmp_path.iterdir()] == [str(HERE)]
    with BESIDE_A_GPU:
        Apart(noted).call()
    assert len(list(tmp_path.iterdir())) == 2


class Odd(Exception):
    """One that cannot be sent from a worker to its parent."""

    def __init__(self, one, two):
        super().__init__(one + two)


@pytest.mark.parametrize("error", [SettingsError("no such loss"), Odd("of ", "theirs")])
def test_what_goes_wrong_apart_comes_as_it_is(error):
    def fails():
        raise error

    with BESIDE_A_GPU, pytest.raises(type(error), match=f"^{error}$"):
        Apart(fails).call()


@pytest.mark.skipif(torch.cuda.is_available(), reason="tells of a GPU where there is none")
def test_beside_a_gpu_no_gradient_is_taken_before_workers_are_made():
    real, taken = looped.gradients, []

    def elsewhere(*told):
        taken.append(os.getpid())
        assert os.getpid() != HERE
        return real(*told)

    def trained():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return run(toy_federation(), LGFedAvg(layers=ABOVE), SGD, 2, workers=2)

    usual = trained()
    with (
        BESIDE_A_GPU,
        patch.object(looped, "gradients", elsewhere),
        patch.object(losses, "gradients", elsewhere),
    ):
        found = trained()
    assert not taken  # in this process
    assert all(torch.equal(usual.tensors[n], found.tensors[n]) for n in ("shared", "personal"))


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
