"""Workers beside a GPU: PyTorch's threads do not outlive a fork, on whatever device one trains.

There is none here: `torch.accelerator.is_available` is told to say so, and what PyTorch then
refuses in a worker is refused by hand.
"""

import os
import warnings
from unittest.mock import patch

import pytest
import torch

from lgfed_core.engine import looped, run
from lgfed_core.engine.checks import losses
from lgfed_core.engine.processes import UNFORKED, Apart, Spread
from lgfed_core.errors import SettingsError
from lgfed_core.methods import LGFedAvg
from toy import ABOVE, SGD, toy_federation

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


def test_what_is_refused_apart_is_refused_here():
    def refuse():
        raise SettingsError("no such loss")

    with BESIDE_A_GPU, pytest.raises(SettingsError, match="^no such loss$"):
        Apart(refuse).call()


class Odd(Exception):
    """One that cannot be sent from a worker to its parent."""

    def __init__(self, one, two):
        super().__init__(one + two)


def test_an_error_of_somebody_elses_comes_as_it_is():
    def fails():
        raise Odd("of ", "theirs")

    with BESIDE_A_GPU, pytest.raises(Odd, match="^of theirs$"):
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
