"""Trackers on a scripted engine: which models they keep, whom they stop, what they average."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch

from lgfed_core import ClientIndices, FedAvg, Global, LGFedAvg, LocalOnly, Personal
from lgfed_core.engine import batched_evaluation, run
from lgfed_core.engine.accuracy import accuracies, ensemble, pooled_accuracy
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.rounds import round_of
from lgfed_core.errors import SettingsError
from lgfed_core.papers.lgfedavg.version1.goals import Goal
from toy import ABOVE, LANES, SGD, holding, prepared, toy_federation


class Scripted:
    """An engine whose devices have the number of right rows, of four, that a script says."""

    def __init__(self, script: list[list[int]], tracker):
        devices = len(script[0])
        self.tensors = {"shared": torch.zeros(1, 2), "personal": torch.zeros(1, devices, 1)}
        held = [ClientIndices.from_lists([range(4)] * devices)]
        rows = {
            n: (SimpleNamespace(y=torch.zeros(4)), held) for n in ("test", "validation", "pool")
        }
        layout = SimpleNamespace(size_shared=2, size_personal=1)
        self.phase = SimpleNamespace(tensors=self.tensors, layout=layout, seeds=[0], rows=rows)
        self.script, self.tracker, self.lines, self.asked = script, tracker, [], []
        self.trained, self.hits = [(0, k) for k in range(devices)], torch.tensor(script[:1])
        tracker.allocate(self.allocate, self.phase)

    def allocate(self, name, *shape, here=False):
        self.tensors[name] = torch.zeros(shape)
        return self.tensors[name]

    def play(self, rounds=None):
        for round, hits in enumerate(self.script[:rounds], 1):
            self.hits = torch.tensor([hits])
            self.tensors["shared"].fill_(round)
            self.tensors["personal"].fill_(10 * round)
            self.lines.append(self.tracker.after(round, len(self.script), self))
        self.asked.clear()
        return self

    def of(self, name) -> list:
        """The different numbers in a tensor."""
        return self.tensors[name].unique().tolist()

    def correct(self, shared, personal, rows, only=None):
        """Notes what is asked: names, rows, whom, and the average then."""
        self.asked.append((shared, personal, rows, only, *self.of(personal)))
        return self.hits

    def mean_outputs(self, *_):
        return torch.zeros(1, 2, 1, 3)


def test_personal_keeps_each_devices_best_and_later_models_win_ties():
    engine = Scripted([[1, 4], [3, 2], [3, 1]], Personal("validation")).play()
    assert engine.tensors["best_accuracy"].tolist() == [[0.75, 1.0]]
    assert engine.tensors["best_shared"][0, :, 0].tolist() == [3, 1]
    assert engine.tensors["best_personal"][0, :, 0].tolist() == [30, 10]
    assert [line["best_validation_acc"].item() for line in engine.lines] == [0.625, 0.875, 0.875]


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
    script, stopped = [[1, 1], [2, 1], [2, 1], [2, 3]], []
    for rounds in range(1, 5):
        tracker = Personal("validation", patience=2)
        engine = Scripted(script[:rounds], tracker).play()
        stopped += tracker.stopped(engine.phase).tolist()
    assert stopped == [[False, False], [False, False], [False, True], [True, True]]
    assert engine.tensors["best_accuracy"].tolist() == [[0.5, 0.25]]  # 3 came too late


def test_the_released_early_stop_needs_both_accuracy_and_rounds():
    script = [[4, 4], [4, 4], [4, 3], [4, 4]]
    for rounds, done in ((4, [1, 1]), (3, [1, 0])):
        engine = Scripted(script[:rounds], Personal("test", stop_at=(0.99, 2))).play()
        assert engine.tensors["done"].tolist() == [done]


def test_averaged_best_averages_models_of_different_rounds():
    engine = Scripted([[4, 1], [1, 4]], AveragedBest()).play()
    assert (engine.of("mean_shared"), engine.of("mean_personal")) == ([1.5], [15.0])


@pytest.mark.parametrize(("best", "at_2"), [(True, [1.0]), (False, [2.0])])
def test_global_snapshots_differ_by_protocol(best, at_2):
    engine = Scripted([[4, 4], [1, 1], [2, 2]], Global((2,), best_on_test=best)).play()
    assert (engine.of("at_2"), engine.of("best")) == (at_2, [1.0])


@pytest.mark.parametrize(
    ("goal", "script", "round", "best"),
    [(0.5, [[1, 1], [2, 2], [1, 1], [4, 3]], 2, 4), (0.9, [[1, 1], [3, 3], [2, 2]], 0, 2)],
)
def test_the_first_model_that_reaches_the_goal_is_kept_or_the_best(goal, script, round, best):
    engine = Scripted(script, tracker := Goal(goal, best_on_test=True)).play()
    assert (engine.of("goal_round"), engine.of("best_round")) == ([round], [best])
    final = tracker.final(engine)
    assert engine.of("at_goal") == [2.0]
    assert (final["goal_round"].item(), final["reached"].item()) == (round, round > 0)


def test_evaluation_is_every_so_often_and_last():
    outcome = run(toy_federation(), FedAvg(), SGD, 7, tracker=Global((2,), every=3), workers=1)
    assert outcome.history["round"].tolist() == [2, 3, 6, 7]


@pytest.mark.parametrize("forked", [False, True])
def test_accuracies_and_ensemble_against_a_plain_loop(forked):
    federation, method = toy_federation((0, 1)), LGFedAvg(layers=ABOVE)
    phase = prepared(federation, method, SGD, Personal(), forked)
    rng = torch.Generator().manual_seed(3)
    for name in ("best_shared", "best_personal"):
        phase.tensors[name].copy_(torch.randn(phase.tensors[name].shape, generator=rng))
    engine = Looped(phase, 2 if forked else 1)
    split, mine = federation.data.test, torch.zeros(2, 10)
    outputs = torch.zeros(2, 10, len(split.y), 3)
    for r, part in enumerate(federation.partitions):
        for k, rows in enumerate(map(part.test.of, range(10))):
            vector = phase.layout.join(*phase.models("best_shared", "best_personal", r, k))
            torch.nn.utils.vector_to_parameters(vector, federation.net.parameters())
            outputs[r, k] = federation.net(split.x).detach()
            mine[r, k] = (outputs[r, k].argmax(-1) == split.y)[rows].float().mean()
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


@pytest.mark.parametrize("method", [FedAvg(), LGFedAvg(layers=ABOVE)])
def test_one_model_is_tested_on_the_whole_test_set(method):
    fed = toy_federation()
    out = run(fed, method, SGD, 3, tracker=Global(best_on_test=True))
    t, data = out.tensors, fed.data.test
    values = out.layout.views(t["shared"][0], t["personal"][0].mean(0))
    right = torch.func.functional_call(fed.net, values, data.x).argmax(1) == data.y
    assert out.history["new_test_acc"].iloc[-1] == pytest.approx(right.float().mean().item())


def test_devices_of_their_own_have_no_part_of_the_whole_test_set():
    own = prepared(toy_federation(), LGFedAvg(layers=ABOVE), SGD, Global(best_on_test=True))
    copies = prepared(toy_federation(), FedAvg(), SGD, Personal("test"))
    for phase, prefix, rows, said in (
        (own, "", "pool", "the whole test set serves one model"),
        (own, "", "more", "no 'more' rows to test on; there are train, test"),
        (copies, "best_", "pool", "'best_shared' has parameters for each device"),
    ):
        for test in (accuracies, pooled_accuracy):
            with pytest.raises(SettingsError, match=said):
                test(Looped(phase, 1), f"{prefix}shared", f"{prefix}personal", rows)
    assert len(pooled_accuracy(Looped(copies, 1), "mean_shared", "mean_personal", "pool")) == 1


@pytest.mark.parametrize("best", [True, False])
@pytest.mark.parametrize("looks", [0, 1])
def test_a_run_that_ends_before_a_look_or_a_snapshot_leaves_its_last_model(best, looks):
    engine = Scripted([[1, 1]] * 2, tracker := Global((2,), best_on_test=best)).play(looks)
    engine.tensors["shared"].fill_(5.0)
    engine.tensors["personal"].fill_(7.0)
    tracker.final(engine)
    found = [*map(engine.of, ("best", "at_2", "best_personal"))]
    assert found == ([[1.0], [1.0 if best else 5.0], [10.0]] if looks else [[5.0], [5.0], [7.0]])


def test_the_best_model_is_tested_with_what_devices_had_then():
    engine = Scripted([[4, 4], [1, 1]], tracker := Global()).play()
    tracker.final(engine)
    assert {(shared, personal, at) for shared, personal, _, _, at in engine.asked} == {
        ("best", "best_personal", 10.0),
        ("best", "mean_personal", 10.0),
    }


def test_the_last_models_are_averaged_apart_from_the_best():
    engine = Scripted([[4, 4], [1, 1]], tracker := Personal()).play()
    tracker.final(engine)
    assert {(shared, own, at) for shared, own, rows, _, at in engine.asked if rows == "pool"} == {
        ("mean_shared", "mean_personal", 10.0),
        ("shared", "mean_personal", 20.0),
    }


def test_patience_counts_rounds_with_the_device_alone():
    engine = Scripted([[1, 1]] * 4, Personal(patience=2))
    engine.trained = [(0, 0)]
    assert engine.play().tensors["done"].tolist() == [[1, 0]]


@pytest.mark.parametrize(("shared", "every", "all_"), [(0, 1, False), (2, 1, True), (0, 2, True)])
def test_who_may_have_changed_is_tested_again(shared, every, all_):
    engine = Scripted([[1, 1]] * 4, tracker := Personal(every=every))
    engine.phase.layout.size_shared = shared
    engine.trained = [(0, 0)]
    tracker.after(4, 4, engine.play())
    (judged,) = [only for *_, rows, only, _ in engine.asked if rows == "validation"]
    assert judged is None if all_ else judged == [(0, 0)]


def test_a_tie_is_no_new_peak():
    lines = Scripted([[2, 2], [2, 2], [3, 3]], AveragedBest()).play().lines
    new = [line["averaged_new_test_acc"].item() for line in lines]
    assert (new[0], new[2]) == (0.5, 0.75) and np.isnan(new[1])


def test_what_devices_begin_with_is_among_their_best():
    engine = Scripted([[1, 4]], tracker := AveragedBest())
    engine.hits = torch.tensor([[2, 2]])
    engine.tensors["shared"].fill_(9.0)
    tracker.before(engine)
    assert engine.play().tensors["best_shared"][0, :, 0].tolist() == [9.0, 1.0]


@pytest.mark.parametrize(  # calls: of networks, for two runs of ten devices
    ("method", "calls_due"), [(FedAvg(), 2), (LGFedAvg(layers=ABOVE), 2), (LocalOnly(), 1)]
)
def test_devices_that_share_a_vector_are_one_model_and_as_right_as_alone(method, calls_due):
    fed = toy_federation((0, 1))
    phase = prepared(fed, method, padded=True)
    engine = Batched(phase)
    for number in range(2):
        round_of(fed, None, engine, number, 0.1)
    calls, real = [], batched_evaluation.filled

    def counted(net, params):
        calls.append(params)
        return real(net, params)

    with patch.object(batched_evaluation, "filled", counted):
        found = accuracies(engine, "shared", "personal", "test")
    assert len(calls) == calls_due
    one_by_one = accuracies(Looped(phase, 1), "shared", "personal", "test")
    assert torch.equal(found, one_by_one)
    some = [(1, 2), (0, 7)]
    partly = accuracies(engine, "shared", "personal", "test", some)
    assert [partly[at] for at in some] == [found[at] for at in some]
    assert (partly < 0).sum() == found.numel() - len(some)
