"""`gpu-check` with batched lanes on the CPU in the place of a GPU: it agrees, or it notices."""

from unittest.mock import patch

import pytest
import torch
from pretended import PLACE, Pretended

from lgfed_core import gpu_check
from lgfed_core.engine import CPU
from lgfed_core.engine.batched import Batched
from lgfed_core.errors import NotAvailable, SettingsError
from lgfed_core.papers import experiments


def first(name: str = "lgfedavg.version1") -> gpu_check.Line:
    """The first part of an experiment."""
    return next(gpu_check.compared(experiments.find(name), "as_described", CPU))


def test_both_kinds_of_lanes_end_alike():
    line = first()
    assert line.good and 0 < line.apart < 1e-4 and not line.noisy


def test_a_step_too_far_is_noticed():
    play = Batched._play

    def further(self, given, *more):
        play(self, given, *more)
        self.phase.tensors["uploads"].mul_(1.1)

    with patch.object(Batched, "_play", further):
        assert not first().good


def test_an_error_is_a_line():
    with patch.object(Batched, "_play", side_effect=RuntimeError("no kernel\nand more")):
        line = first()
    assert not line.good and line.error == "RuntimeError: no kernel"


def test_a_stopped_run_goes_on():
    assert gpu_check.goes_on(CPU)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    with pytest.raises(SettingsError, match="sees no GPU here"):
        gpu_check.main()


@pytest.mark.parametrize("name", experiments.PLACES)
def test_every_experiment_keeps_to_one_place(name):
    """On a device that is pretended: whoever joins its tensors with the CPU's gets an error."""
    experiment = experiments.find(name)
    try:
        with Pretended():
            cfg = experiment.settings("smoke", experiment.protocols[0])
            assert dict(experiment.stages(cfg, [0, 1], PLACE, resume=False))
    except NotAvailable as error:
        pytest.skip(str(error))
