"""Every kind of run that keeps something between rounds resumes from its checkpoint to the bit."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from lgfed_core.engine import LocalTraining, Participation, loop, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.errors import SettingsError
from lgfed_core.methods import MTL, FedAdam, FedAvg, LGFedAvg, LocalOnly
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.schedules import Annealing
from lgfed_core.papers.cgau.pooled import Pooled
from lgfed_core.papers.lgfedavg.version1.goals import Goal
from toy import ABOVE, LANES, Toy, rounds_played, stopped, toy_federation

SGD = LocalTraining(lr=0.1, batch_size=4)
HALF = LGFedAvg(layers=ABOVE)


class Forgetful(Toy):
    """With dropout and batch normalisation: noise, and running statistics."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(6), nn.Dropout(0.5)

    def forward(self, x):
        return self.above(self.drop(self.norm(self.below(x)).relu()))


def here_and_there(net: nn.Module | None = None):
    """Two runs, in each of which half of the devices are rare."""
    fed = toy_federation((0, 1), net=net)
    there = torch.tensor([[0.15, 0.05] * 5, [0.05, 0.15] * 5])
    return replace(fed, participation=Participation(0.5, there))


CASES = {
    "momentum, patience": (HALF, replace(SGD, keep_momentum=True), Personal(patience=2), None),
    "released average": (HALF, SGD, AveragedBest(), None),
    "local, early stop": (LocalOnly(), SGD, Personal(stop_at=(0.6, 2)), None),
    "annealing": (HALF, replace(SGD, annealing=Annealing(30)), Personal(), None),
    "decay, some batches": (HALF, replace(SGD, decay=0.1, batches=2), Global((2, 4)), None),
    "pulled together": (MTL(scale=0.1), SGD, Personal(), None),
    "a goal": (FedAvg(), SGD, Goal(0.6), None),
    "pooled": (HALF, SGD, Pooled(2), None),
    "noise that protects": (FedAvg(upload=[Privacy(1.0, 0.5)]), SGD, Global(), None),
    "a server's memory": (FedAdam(), SGD, Personal(), None),
    "dropout, statistics": (HALF, replace(SGD, batch_size=2, batches=1), Personal(), Forgetful),
}


@LANES
@pytest.mark.parametrize("case", CASES)
def test_a_stopped_run_continues_to_the_same_bits(tmp_path, case, lanes):
    method, training, tracker, net = CASES[case]
    torch.manual_seed(0)
    fed = here_and_there(net and net())
    saved = tmp_path / "run.safetensors"
    arguments = dict(tracker=tracker, lanes=lanes, workers=1)
    whole = run(fed, method, training, 6, **arguments)

    with stopped(4):
        run(fed, method, training, 6, saved=saved, **arguments)
    torch.manual_seed(99)  # what the process drew before must not matter
    with rounds_played() as rounds:
        again = run(fed, method, training, 6, saved=saved, **arguments)

    assert rounds == [4, 5]
    assert whole.tensors.keys() == again.tensors.keys()
    for name, tensor in whole.tensors.items():
        assert tensor.numpy().tobytes() == again.tensors[name].numpy().tobytes(), name
    assert whole.history.equals(again.history) and whole.final.equals(again.final)


def test_lanes_that_would_pad_a_batch_to_be_normalised_are_refused_before_any_round(monkeypatch):
    monkeypatch.setattr(loop, "round_of", None)
    fed, training = toy_federation(net=Forgetful()), replace(SGD, batch_size=12)
    few = replace(fed, participation=Participation(fraction=0.1))  # whoever is drawn first
    with pytest.raises(SettingsError, match="device 0 of run 0 has 2 rows: batched lanes pad its"):
        run(few, HALF, training, 1, lanes="batched")
