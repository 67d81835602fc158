"""Trackers on a scripted engine: which models they keep, whom they stop, what they average."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch

from lgfed_core.engine import LocalTraining, batched_evaluation, run
from lgfed_core.engine.accuracy import accuracies, ensemble, pooled_accuracy
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.rounds import round_of
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg, LGFedAvg, LocalOnly
from lgfed_core.papers.lgfedavg.version1.goals import Goal
from lgfed_core.partition import ClientIndices
from toy import ABOVE, LANES, holding, prepared, toy_federation

SGD = LocalTraining(lr=0.1, batch_size=4)


class Scripted:
    """An engine whose devices have the number of right rows that a script says."""

    def __init__(self, script: list[list[int]], tracker, rows=4):
        devices = len(script[0])
        sizes = ClientIndices(
            torch.zeros(devices, rows, dtype=torch.long), torch.full((devices,), rows)
        )
        tensors = {"shared": torch.zeros(1, 2), "personal": torch.zeros(1, devices, 1)}
        self.phase = SimpleNamespace(
            tensors=tensors,
            layout=SimpleNamespace(size_shared=2, size_personal=1),
            seeds=[0],
            rows={
                n: (SimpleNamespace(y=torch.zeros(1)), [sizes])
                for n in ("test", "validation", "pool")
            },
        )

        def allocate(name, *shape):
            tensors[name] = torch.zeros(shape)
            return tensors[name]

        tracker.allocate(allocate, self.phase)
        self.script, self.tracker = script, tracker
        self.trained = [(0, k) for k in range(devices)]

    def play(self) -> list[dict]:
        out = []
        for round, hits in enumerate(self.script, 1):
            self.hits = torch.tensor([hits])
            self.phase.tensors["shared"].fill_(round)
            self.phase.tensors["personal"].fill_(10 * round)
            out.append(self.tracker.after(round, len(self.script), self))
        return out

    def correct(self, shared, personal, rows, only=None):
        return self.hits


def test_personal_keeps_each_devices_best_and_later_models_win_ties():
    engine = Scripted([[1, 4], [3, 2], [3, 1]], Personal("validation"))
    lines = engine.play()
    t = engine.phase.tensors
    assert t["best_accuracy"].tolist() == [[0.75, 1.0]]
    assert t["best_shared"][0, :, 0].tolist() == [3, 1]
    assert t["best_personal"][0, :, 0].tolist() == [30, 10]
    assert [line["best_validation_acc"].item() for line in lines] == [0.625, 0.875, 0.875]


@LANES
def test_a_device_without_test_rows_is_none_of_a_mean(lanes):
    fed, how = toy_federation(), dict(tracker=Global(best_on_test=True), lanes=lanes, workers=1)
    rows = [fed.partitions[0].test.of(k) for k in range(10)]
    for kept, least in ((rows[:-1], 0.0), (rows[:0], torch.nan)):
        some = holding(fed, test=[*kept, *([[]] * (10 - len(kept)))])
        final = run(some, FedAvg(), SGD, 1, **how).final.loc[0]
        assert final["best_new_test_acc"] > 0.3
        found = final["best_local_test_acc"]
        assert least < found <= 1 if len(kept) else found != found


def test_what_personal_keeps_of_an_average_is_of_the_best_models():
    outcome = run(toy_federation(), LGFedAvg(layers=ABOVE), SGD, 6, tracker=Personal(ties="first"))
    t = outcome.tensors
    for part in ("shared", "personal"):
        assert torch.equal(t[f"mean_{part}"], t[f"best_{part}"].mean(1))
    assert not torch.equal(t["mean_personal"], t["personal"].mean(1))


def test_patience_counts_evaluations_without_a_strict_gain():
    tracker = Personal("validation", patience=2)
    engine = Scripted([[1, 1], [2, 1], [2, 1], [2, 3]], tracker)
    stopped = []
    after = tracker.after
    tracker.after = lambda *a: (after(*a), stopped.append(tracker.stopped(engine.phase).tolist()))
    engine.play()
    assert stopped == [[[False, False]], [[False, False]], [[False, True]], [[True, True]]]
    assert engine.phase.tensors["best_accuracy"].tolist() == [[0.5, 0.25]]  # 3 came too late


def test_the_released_early_stop_needs_both_accuracy_and_rounds():
    script = [[4, 4], [4, 4], [4, 3], [4, 4]]
    for rounds, done in ((4, [1, 1]), (3, [1, 0])):
        engine = Scripted(script[:rounds], Personal("test", stop_at=(0.99, 2)))
        engine.play()
        assert engine.phase.tensors["done"].tolist() == [done]


def test_averaged_best_averages_models_of_different_rounds():
    engine = Scripted([[4, 1], [1, 4]], AveragedBest())
    engine.play()
    assert engine.phase.tensors["mean_shared"].tolist() == [[1.5, 1.5]]
    assert engine.phase.tensors["mean_personal"].tolist() == [[15.0]]


def test_global_snapshots_differ_by_protocol():
    script = [[4, 4], [1, 1], [2, 2]]
    best, last = Global((2,), best_on_test=True), Global((2,))
    for tracker, expected in ((best, 1.0), (last, 2.0)):
        engine = Scripted(script, tracker)
        engine.play()
        assert engine.phase.tensors["at_2"].unique().tolist() == [expected]
        assert engine.phase.tensors["best"].unique().tolist() == [1.0]


def test_the_goal_keeps_the_first_model_that_reaches_it():
    tracker = Goal(0.5, best_on_test=True)
    engine = Scripted([[1, 1], [2, 2], [1, 1], [4, 3]], tracker)
    engine.play()
    t = engine.phase.tensors
    assert (t["goal_round"].tolist(), t["best_round"].tolist()) == ([2], [4])
    assert t["at_goal"].unique().tolist() == [2.0]
    final = tracker.final(engine)
    assert (final["goal_round"].item(), final["reached"].item()) == (2, 1)


def test_a_goal_that_is_never_reached_leaves_the_best_model():
    tracker = Goal(0.9)
    engine = Scripted([[1, 1], [3, 3], [2, 2]], tracker)
    engine.play()
    final = tracker.final(engine)
    assert (final["goal_round"].item(), final["reached"].item()) == (0, 0)
    assert engine.phase.tensors["at_goal"].unique().tolist() == [2.0]


def test_evaluation_is_every_so_often_and_last():
    federation = toy_federation()
    outcome = run(federation, FedAvg(), SGD, 7, tracker=Global((2,), every=3), workers=1)
    assert outcome.history["round"].tolist() == [2, 3, 6, 7]


def test_devices_without_rows_to_judge_by_are_named():
    federation = toy_federation()
    federation.partitions[0].validation.size[4] = 0
    with pytest.raises(SettingsError, match="device 4 of run 0 has no validation rows"):
        run(federation, FedAvg(), SGD, 1, tracker=Global(), workers=1)
    with pytest.raises(SettingsError, match="with_validation"):
        run(holding(federation, validation=None), FedAvg(), SGD, 1, tracker=Personal(), workers=1)


@pytest.mark.parametrize("forked", [False, True])
def test_accuracies_and_ensemble_against_a_plain_loop(forked):
    federation, method = toy_federation((0, 1)), LGFedAvg(layers=ABOVE)
    phase = prepared(federation, method, SGD, Personal(), forked)
    rng = torch.Generator().manual_seed(3)
    for name in ("best_shared", "best_personal"):
        phase.tensors[name].copy_(torch.randn(phase.tensors[name].shape, generator=rng))
    engine = Looped(phase, 2 if forked else 1)
    split = federation.data.test
    outputs = torch.zeros(2, 10, len(split.y), 3)
    for r in range(2):
        for k in range(10):
            vector = phase.layout.join(*phase.models("best_shared", "best_personal", r, k))
            torch.nn.utils.vector_to_parameters(vector, federation.net.parameters())
            outputs[r, k] = federation.net(split.x).detach()
    right = outputs.argmax(-1) == split.y  # [R, K, n]
    mine = torch.stack(
        [
            torch.stack([right[r, k, p.test.of(k)].float().mean() for k in range(10)])
            for r, p in enumerate(federation.partitions)
        ]
    )
    try:
        assert torch.allclose(accuracies(engine, "best_shared", "best_personal", "test"), mine)
        found = ensemble(engine, "best_shared", "best_personal")
        kinds = {"outputs": outputs, "probabilities": outputs.softmax(-1)}
        assert len(found) == len(kinds)
        for way, averaged in kinds.items():
            together = (averaged.mean(1).argmax(-1) == split.y).float().mean(1)
            assert torch.allclose(found[f"new_test_acc_{way}"], together), way
    finally:
        engine.close()


def sorted_by_label(fed):
    """The same test set, in another order of its rows."""
    order = fed.data.test.y.sort(stable=True).indices
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    parts = [
        replace(p, test=ClientIndices.from_lists([place[p.test.of(k)] for k in range(len(p))]))
        for p in fed.partitions
    ]
    return replace(fed, data=replace(fed.data, test=fed.data.test.take(order)), partitions=parts)


@pytest.mark.parametrize("method", [FedAvg(), LGFedAvg(layers=ABOVE)])
def test_one_model_is_tested_on_the_whole_test_set_in_any_order(method):
    fed, found = toy_federation(), []
    for one in (fed, sorted_by_label(fed)):
        out = run(one, method, SGD, 3, tracker=Global(best_on_test=True))
        finals = out.final.iloc[-1][["best_new_test_acc", "best_local_test_acc"]]
        found.append({"new_test_acc": out.history.iloc[-1]["new_test_acc"]} | dict(finals))
    assert found[0] == pytest.approx(found[1])
    t, data = out.tensors, fed.data.test
    values = out.layout.views(t["shared"][0], t["personal"][0].mean(0))
    said = torch.func.functional_call(fed.net, values, data.x)
    assert found[0]["new_test_acc"] == pytest.approx(
        float((said.argmax(1) == data.y).float().mean())
    )


def test_devices_of_their_own_have_no_part_of_the_whole_test_set():
    tracker = Global(best_on_test=True)
    phase = prepared(toy_federation(), LGFedAvg(layers=ABOVE), SGD, tracker)
    for test in (accuracies, pooled_accuracy):
        with pytest.raises(SettingsError, match="the whole test set serves one model"):
            test(Looped(phase, 1), "shared", "personal", "pool")
        with pytest.raises(SettingsError, match="no 'more' rows to test on; there are train, test"):
            test(Looped(phase, 1), "shared", "personal", "more")


def test_nor_have_copies_of_what_is_shared_that_devices_keep():
    phase = prepared(toy_federation(), FedAvg(), SGD, Personal("test"))
    with pytest.raises(SettingsError, match="'best_shared' has parameters for each device"):
        pooled_accuracy(Looped(phase, 1), "best_shared", "best_personal", "pool")
    assert len(pooled_accuracy(Looped(phase, 1), "mean_shared", "mean_personal", "pool")) == 1


def heard(engine):
    """What the engine is asked to test: names, rows, whom, and the average then."""
    asked, t = [], engine.phase.tensors

    def correct(shared, personal, rows, only=None):
        asked.append((shared, personal, rows, only, t[personal].unique().tolist()))
        return engine.hits

    engine.correct = correct
    engine.mean_outputs = lambda *_: torch.zeros(1, 2, 1, 3)
    return asked


@pytest.mark.parametrize("best", [True, False])
def test_a_run_that_ends_before_a_look_leaves_its_last_model(best):
    tracker = Global((2,), best_on_test=best)
    engine = Scripted([[1, 1]], tracker)
    engine.hits = torch.tensor([[1, 1]])
    t = engine.phase.tensors
    t["shared"].fill_(5.0)
    t["personal"].fill_(7.0)
    tracker.final(engine)
    found = [t[n].unique().tolist() for n in ("best", "at_2", "best_personal")]
    assert found == [[5.0], [5.0], [7.0]]


def test_the_best_model_is_tested_with_what_devices_had_then():
    tracker = Global()
    engine = Scripted([[4, 4], [1, 1]], tracker)
    engine.play()
    asked = heard(engine)
    tracker.final(engine)
    assert {(s, p, *at) for s, p, _, _, at in asked} == {
        ("best", "best_personal", 10.0),
        ("best", "mean_personal", 10.0),
    }


def test_the_last_models_are_averaged_apart_from_the_best():
    tracker = Personal()
    engine = Scripted([[4, 4], [1, 1]], tracker)
    engine.play()
    asked = heard(engine)
    tracker.final(engine)
    pooled = {(s, p, *at) for s, p, rows, _, at in asked if rows == "pool"}
    assert pooled == {("mean_shared", "mean_personal", 10.0), ("shared", "mean_personal", 20.0)}


def test_patience_counts_rounds_with_the_device_alone():
    engine = Scripted([[1, 1]] * 4, Personal(patience=2))
    engine.trained = [(0, 0)]
    engine.play()
    assert engine.phase.tensors["done"].tolist() == [[1, 0]]


@pytest.mark.parametrize(("shared", "every", "all_"), [(0, 1, False), (2, 1, True), (0, 2, True)])
def test_who_may_have_changed_is_tested_again(shared, every, all_):
    engine = Scripted([[1, 1]] * 4, Personal(every=every))
    engine.phase.layout.size_shared = shared
    engine.trained, asked = [(0, 0)], heard(engine)
    engine.play()
    judged = [only for *_, rows, only, _ in asked if rows == "validation"]
    assert judged[-1] is None if all_ else judged[-1] == [(0, 0)]


def test_a_tie_is_no_new_peak():
    lines = Scripted([[2, 2], [2, 2], [3, 3]], AveragedBest()).play()
    new = [line["averaged_new_test_acc"].item() for line in lines]
    assert (new[0], new[2]) == (0.5, 0.75) and np.isnan(new[1])


def test_what_devices_begin_with_is_among_their_best():
    tracker = AveragedBest()
    engine = Scripted([[1, 4]], tracker)
    engine.hits = torch.tensor([[2, 2]])
    engine.phase.tensors["shared"].fill_(9.0)
    tracker.before(engine)
    engine.play()
    assert engine.phase.tensors["best_shared"][0, :, 0].tolist() == [9.0, 1.0]


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
