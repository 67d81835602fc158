"""Models are tested as cheaply as they are alike: one that all devices share goes through once."""

from unittest.mock import patch

import pytest
import torch

from lgfed_core.engine import batched_evaluation
from lgfed_core.engine.accuracy import accuracies
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.rounds import round_of
from lgfed_core.methods import FedAvg, LGFedAvg, LocalOnly
from toy import ABOVE, prepared, toy_federation

METHODS = {"all shared": FedAvg(), "some": LGFedAvg(layers=ABOVE), "none": LocalOnly()}
CALLS = {"all shared": 2, "some": 2, "none": 1}  # of networks, for two runs of ten devices


@pytest.mark.parametrize("how", METHODS)
def test_devices_that_share_a_vector_are_one_model_and_as_right_as_alone(how):
    fed = toy_federation((0, 1))
    phase = prepared(fed, METHODS[how], padded=True)
    engine = Batched(phase)
    for number in range(2):
        round_of(fed, None, phase, engine, number, 0.1)
    calls, real = [], batched_evaluation.filled

    def counted(net, params):
        calls.append({name: value.dim() for name, value in params.items()})
        return real(net, params)

    with patch.object(batched_evaluation, "filled", counted):
        found = accuracies(engine, "shared", "personal", "test")
    assert len(calls) == CALLS[how]
    one_by_one = accuracies(Looped(phase, 1), "shared", "personal", "test")
    assert torch.equal(found, one_by_one)
    some = [(1, 2), (0, 7)]
    partly = accuracies(engine, "shared", "personal", "test", some)
    assert [partly[at] for at in some] == [found[at] for at in some]
    assert (partly < 0).sum() == found.numel() - len(some)
