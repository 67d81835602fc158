"""A killed run continues to the same bytes; a damaged or foreign file is refused by name."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lgfed_core.engine import LocalTraining, Participation, checkpoint, loop, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Personal
from lgfed_core.errors import CheckpointError
from lgfed_core.methods import FedAvg, FedProx, LGFedAvg
from lgfed_core.methods.privacy import Privacy
from toy import ABOVE, Toy, reading, stopped, toy_federation

SGD = LocalTraining(lr=0.1, batch_size=4)


def test_a_finished_run_is_read_not_run(tmp_path, monkeypatch):
    saved = tmp_path / "run.safetensors"
    arguments = dict(tracker=Personal(), workers=1, saved=saved)
    method = LGFedAvg(layers=ABOVE)
    first = run(toy_federation(), method, SGD, 3, **arguments)
    monkeypatch.setattr(loop, "round_of", None)  # any round would now fail
    again = run(toy_federation(), method, SGD, 3, **arguments)
    assert all(torch.equal(first.tensors[n], again.tensors[n]) for n in first.tensors)
    assert first.history.equals(again.history) and first.final.equals(again.final)
    assert again.seconds == first.seconds


def test_a_method_with_settings_of_its_own_is_checkpointed(tmp_path):
    saved, arguments = tmp_path / "run.safetensors", dict(lanes="batched", workers=1)
    for _ in range(2):
        private = FedAvg(upload=[Privacy(1.0, 0.5)])
        run(toy_federation(), private, SGD, 2, saved=saved, **arguments)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        other = FedAvg(upload=[Privacy(1.0, 0.6)])
        run(toy_federation(), other, SGD, 2, saved=saved, **arguments)


def test_light_trackers_keep_little(tmp_path):
    saved = tmp_path / "run.safetensors"
    arguments = dict(tracker=AveragedBest(light=True), workers=1, saved=saved)
    for _ in range(2):
        outcome = run(toy_federation(), LGFedAvg(layers=ABOVE), SGD, 2, **arguments)
        assert set(outcome.tensors) == {"best_accuracy"}


class Softened(Toy):
    """The same layers and the same text form, other outputs."""

    def __init__(self, softmax: bool):
        super().__init__()
        self.softmax = softmax


CHANGES = [  # of one word or number each
    *(dict(lr=0.2), dict(rounds=4), dict(seed=1), dict(mu=0.1), dict(judge="test")),
    *(dict(softmax=True), dict(brighter=0.5), dict(fewer=1), dict(numbers=2), dict(groups=1)),
    *(dict(lanes="batched"), dict(turned=True), dict(tests=1.0), dict(labels=1)),
    *(dict(fraction=0.3), dict(there=[[0.2] * 5 + [0.0] * 5])),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, monkeypatch):
    saved = tmp_path / "run.safetensors"
    usual = dict(lr=0.1, rounds=3, seed=0, mu=0.0, judge="validation", softmax=False, brighter=0.0)
    usual |= dict(fewer=0, numbers=1, groups=0, lanes="looped", turned=False, tests=0.0, labels=0)
    usual |= dict(fraction=0.5, there=[[0.1] * 10])

    def go(**changed):
        is_ = SimpleNamespace(**usual | changed)
        monkeypatch.setattr(loop, "NUMBERS", is_.numbers)
        torch.manual_seed(0)
        fed = toy_federation((is_.seed,), net=Softened(is_.softmax))
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
        run(fed, FedProx(mu=is_.mu), LocalTraining(is_.lr, 4), is_.rounds, **how)

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


def test_a_pickle_is_not_loaded(tmp_path):
    saved = tmp_path / "run.safetensors"
    torch.save({"shared": torch.zeros(3)}, saved)
    with pytest.raises(CheckpointError, match="no checkpoint of a run"):
        run(toy_federation(), FedAvg(), SGD, 1, workers=1, saved=saved)


def test_what_a_kill_left_half_written_is_cleared_away(tmp_path):
    saved = tmp_path / "run.safetensors"
    left = tmp_path / ".run.safetensors.writing"
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
        return run(toy_federation(), LGFedAvg(layers=ABOVE), SGD, 2, **how)

    with stopped(1):
        sit()
    seconds = sit().seconds
    assert seconds > 1.5 and time.perf_counter() - sittings[1] < seconds
