"""A killed run continues to the same bytes, whatever it keeps; a foreign file is refused."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from lgfed_core.engine import LocalTraining, Participation, checkpoint, loop, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.errors import CheckpointError
from lgfed_core.methods import MTL, FedAdam, FedAvg, FedProx, LGFedAvg, LocalOnly
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.schedules import Annealing
from lgfed_core.papers.cgau.pooled import Pooled
from lgfed_core.papers.lgfedavg.version1.goals import Goal
from toy import ABOVE, LANES, SGD, Toy, reading, rounds_played, stopped, toy_federation


@pytest.mark.parametrize("tracker", [Personal(), AveragedBest(light=True)])
def test_a_finished_run_is_read_not_run(tmp_path, monkeypatch, tracker):
    def go(kind):
        how = dict(tracker=tracker, workers=1, saved=kind(tmp_path / "run.safetensors"))
        return run(toy_federation(), HALF, SGD, 3, **how)

    first = go(str)
    monkeypatch.setattr(loop, "round_of", None)  # any round would now fail
    again = go(Path)
    assert all(torch.equal(first.tensors[n], again.tensors[n]) for n in first.tensors)
    assert first.history.equals(again.history) and first.final.equals(again.final)
    assert again.seconds == first.seconds
    assert getattr(tracker, "light", False) == (set(again.tensors) == {"best_accuracy"})


HALF = LGFedAvg(layers=ABOVE)


CHANGES = [  # of one word or number each
    *(dict(lr=0.2), dict(rounds=4), dict(seed=1), dict(mu=0.1), dict(judge="test")),
    *(dict(softmax=True), dict(brighter=0.5), dict(fewer=1), dict(numbers=2), dict(groups=1)),
    *(dict(lanes="batched"), dict(turned=True), dict(tests=1.0), dict(labels=1)),
    *(dict(fraction=0.3), dict(there=[[0.2] * 5 + [0.0] * 5]), dict(noise=0.6)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, monkeypatch):
    saved = tmp_path / "run.safetensors"
    usual = dict(lr=0.1, rounds=3, seed=0, mu=0.0, judge="validation", softmax=False, brighter=0.0)
    usual |= dict(fewer=0, numbers=1, groups=0, lanes="looped", turned=False, tests=0.0, labels=0)
    usual |= dict(fraction=0.5, there=[[0.1] * 10], noise=0.5)

    def go(**changed):
        is_ = SimpleNamespace(**usual | changed)
        monkeypatch.setattr(loop, "NUMBERS", is_.numbers)
        fed = toy_federation((is_.seed,))
        fed.net.softmax = is_.softmax  # the same layers and text form, other outputs
        train, test, part = fed.data.train, fed.data.test, fed.partitions[0]
        train.x.add_(is_.brighter)
        test.x.add_(is_.tests)
        test.y.add_(is_.labels).remainder_(3)
        part.validation.size.sub_(is_.fewer)
        if is_.turned:
            part.test.index.copy_(part.test.index.flip(0))
        fed = reading(fed, groups=torch.full((len(train.y), 1), is_.groups))
        fed = replace(fed, participation=Participation(is_.fraction, is_.there))
        how = dict(tracker=Personal(is_.judge), lanes=is_.lanes, workers=1, saved=saved)
        method = FedProx(mu=is_.mu, upload=[Privacy(1.0, is_.noise)])
        run(fed, method, LocalTraining(is_.lr, 4), is_.rounds, **how)

    go()
    before = saved.read_bytes()
    go()  # itself is not refused
    with pytest.raises(CheckpointError, match="belongs to another run"):
        go(**change)
    assert saved.read_bytes() == before


def test_changed_settings_and_other_seeds_have_folders_of_their_own():
    other, more = replace(SGD, lr=0.2), replace(SGD, lr=0.2, decay=0.1)
    runs = [(SGD, [0]), (SGD, [1]), (SGD, [0, 1]), (other, [0]), (more, [0])]
    names = [checkpoint.folder_name("run", cfg, SGD, seeds) for cfg, seeds in runs]
    assert names[:2] == ["run-seed0", "run-seed1"] and len(set(names)) == len(names)


def test_what_a_kill_left_half_written_is_cleared_away(tmp_path):
    saved, left = tmp_path / "run.safetensors", tmp_path / ".run.safetensors.writing"
    left.mkdir()
    (left / ".tmpA1b2C3").write_bytes(b"half")  # as safetensors names what it has begun
    checkpoint.save(saved, {"a": torch.ones(2)}, {"round": 1}, "me")
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]
    assert checkpoint.load(saved, "me")[1] == {"round": 1}


def test_seconds_of_earlier_sittings_count(tmp_path):
    sittings = []

    class Slow(AveragedBest):
        def after(self, round, rounds, engine):
            time.sleep(1.5 * (round == 1))
            return super().after(round, rounds, engine)

    def sit():
        sittings.append(time.perf_counter())
        how = dict(tracker=Slow(), workers=1, saved=tmp_path / "run.safetensors")
        return run(toy_federation(), HALF, SGD, 2, **how)

    with stopped(1):
        sit()
    seconds = sit().seconds
    assert seconds > 1.5 and time.perf_counter() - sittings[1] < seconds


class Forgetful(Toy):
    """With dropout and batch normalisation: noise, and running statistics."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(6), nn.Dropout(0.5)

    def forward(self, x):
        return self.above(self.drop(self.norm(self.below(x)).relu()))


def here_and_there(net=Toy):
    """Two runs, in each of which half of the devices are rare."""
    fed = toy_federation((0, 1), net=net)
    there = torch.tensor([[0.15, 0.05] * 5, [0.05, 0.15] * 5])
    return replace(fed, participation=Participation(0.5, there))


CASES = {
    "momentum, patience": (HALF, replace(SGD, keep_momentum=True), Personal(patience=2), Toy),
    "released average": (HALF, SGD, AveragedBest(), Toy),
    "local, early stop": (LocalOnly(), SGD, Personal(stop_at=(0.6, 2)), Toy),
    "annealing": (HALF, replace(SGD, annealing=Annealing(30)), Personal(), Toy),
    "decay, some batches": (HALF, replace(SGD, decay=0.1, batches=2), Global((2, 4)), Toy),
    "pulled together": (MTL(scale=0.1), SGD, Personal(), Toy),
    "a goal": (FedAvg(), SGD, Goal(0.6), Toy),
    "pooled": (HALF, SGD, Pooled(2), Toy),
    "noise that protects": (FedAvg(upload=[Privacy(1.0, 0.5)]), SGD, Global(), Toy),
    "a server's memory": (FedAdam(), SGD, Personal(), Toy),
    "dropout, statistics": (HALF, replace(SGD, batch_size=2, batches=1), Personal(), Forgetful),
}


@LANES
@pytest.mark.parametrize("case", CASES)
def test_a_stopped_run_continues_to_the_same_bits(tmp_path, case, lanes):
    method, training, tracker, net = CASES[case]
    fed = here_and_there(net)
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
