"""Batched lanes on a device that is none (`pretended`): they end where those of the CPU do, and a
round waits for the device once, and once more for each measure.
"""

from dataclasses import replace

import pytest
import torch
from cases import CASES, FALLING
from pretended import PLACE, Pretended

from lgfed_core import LGFedAvg, LocalTraining
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.engine.round_plan import Host
from lgfed_core.engine.rounds import round_of
from lgfed_core.engine.trackers import Global, Personal, Tracker
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg, LocalOnly
from toy import ABOVE, SGD, answering, models, prepared, run, toy_federation

HALF = LGFedAvg(layers=ABOVE)


class Counted:
    """A tracker's looks, and how often the device was waited for until each."""

    def __init__(self, tracker, there):
        self.tracker, self.there, self.waits = tracker, there, []
        self.look, tracker.after = tracker.after, self.after

    def after(self, *told):
        found = self.look(*told)
        self.waits.append([self.there.count(what) for what in ("asks", "tells")])
        return found

    @property
    def of_a_round(self):
        """The last one: values asked for, and values sent."""
        return [after - before for before, after in zip(*self.waits[-2:], strict=True)]


def on(make, method, training=SGD, tracker=Tracker, rounds=3):
    """The waits of a round there; it ends as on the CPU."""

    def ends(place):
        torch.manual_seed(0)  # of networks that are made at random
        own = tracker()
        with Pretended() as there:
            counted = Counted(own, there)
            fed = replace(make(), device=place)
            out = run(fed, method, training, rounds, tracker=own, lanes="batched")
        return out, counted

    (here, _), (there, counted) = ends(torch.device("cpu")), ends(PLACE)
    got = {name: getattr(there.tensors[name], "here", None) for name in ("shared", "personal")}
    for name, far in got.items():
        assert torch.equal(here.tensors[name], far)
    assert here.history.equals(there.history) and here.final.equals(there.final)
    return counted


@pytest.mark.parametrize("case", CASES)
def test_a_round_of_each_method_asks_the_device_once(case):
    """Whether all that was sent is finite."""
    make, method = CASES[case]
    training = FALLING if case.startswith("fade") else SGD
    noise = 20 if case == "fedavg_private" else 0  # of ten uploads, twice, each sent by itself
    assert on(make, method, training).of_a_round == [1, noise]


KEPT = LocalTraining(0.1, 4, keep_momentum=True, weight_decay=0.1, epochs=2, batches=1)


@pytest.mark.parametrize("training", [AdamTraining(0.1, 4), KEPT])
def test_no_way_to_train_asks_for_more(training):
    assert on(lambda: toy_federation((0, 1)), HALF, training).of_a_round == [1, 0]


def stopping():
    return Personal("test", ties="first", patience=1, stop_at=(0.9, 1))


MEASURED = {  # the method, the tracker, and how many numbers of each device it looks at in a round
    "one model, chosen on test rows": (FedAvg(), lambda: Global((2,), best_on_test=True), 1),
    "one model": (FedAvg(), lambda: Global((2,)), 3),
    "one model, with layers of one's own": (HALF, lambda: Global((2,), best_on_test=True), 1),
    "personal models": (HALF, Personal, 2),
    "personal models and their average": (HALF, AveragedBest, 2),
    "devices alone, which stop": (LocalOnly(), stopping, 1),
}


@pytest.mark.parametrize("case", MEASURED)
def test_a_measure_asks_once(case):
    method, tracker, looks = MEASURED[case]
    counted = on(lambda: toy_federation(range(10)), method, tracker=tracker, rounds=4)
    asked, told = counted.of_a_round
    peaks = case == "personal models and their average"  # where there is one, it is looked at
    assert told == 0 and asked in (1 + looks, 1 + looks + peaks)


def test_the_next_round_is_laid_out_before_the_answer_is_waited_for(monkeypatch):
    """Those who stop in between are not in it, which `on` has seen above."""
    seen, plan = [], Host._plan

    def noted(self, jobs, round):
        seen.append(round)
        return plan(self, jobs, round)

    monkeypatch.setattr(Host, "_plan", noted)
    on(lambda: toy_federation((0, 1)), HALF, rounds=3)
    assert seen == [0, 1, 2, 0, 1, 2, 3]  # on the CPU one after the other; there one ahead


def test_who_asks_or_was_left_on_the_host_is_found(monkeypatch):
    asking = answering(LGFedAvg, weights=lambda self, rows: rows / float(rows.sum().to(PLACE)))
    assert on(toy_federation, asking(layers=ABOVE)).of_a_round == [2, 1]
    asking = answering(FedAvg, server_update=lambda self, old, new: new * float(new.sum() < 1e9))
    assert on(toy_federation, asking()).of_a_round == [2, 0]
    monkeypatch.setattr("lgfed_core.engine.round_plan.to_device", lambda value, place: value)
    with pytest.raises(AssertionError, match="joins two places"):
        on(toy_federation, HALF)


class Small(Batched):
    """A device with room for so many lanes."""

    room = 3

    def _play(self, given, steps, round, lr):
        if len(given.lanes["run"]) > self.room:
            raise torch.OutOfMemoryError("too much")
        super()._play(given, steps, round, lr)


def test_lanes_that_do_not_fit_train_in_parts():
    found = []
    for lanes in (Batched, Small):
        federation = toy_federation((0, 1))
        phase = prepared(federation, HALF)
        engine = lanes(phase)
        for number in range(2):
            round_of(federation, None, engine, number, 0.1)
        found.append(models(phase))
    assert engine.most == 3 and torch.allclose(*found, atol=1e-6)


def test_what_does_not_fit_alone_is_named(monkeypatch):
    monkeypatch.setattr(Small, "room", 0)
    federation = toy_federation()
    with pytest.raises(SettingsError, match="not even one device's training fits: too much"):
        round_of(federation, None, Small(prepared(federation, HALF)), 0, 0.1)
