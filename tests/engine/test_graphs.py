"""Steps played from a graph; where there is no GPU, from one of PyTorch's operations on the CPU."""

import gc
import weakref
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from unittest.mock import Mock, patch

import pytest
import torch
from cases import CASES, FALLING
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lgfed_core.engine import CPU, LocalTraining, graphs, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.graphs import LEAST, Graphs
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.methods import FedAvg, LGFedAvg, LocalOnly
from toy import ABOVE, SGD, Toy, answering, prepared, toy_federation

CUDA = torch.device("cuda")


UNASKED = patch.object(graphs, "waits", lambda: nullcontext([]))
VALUE = torch.ops.aten._local_scalar_dense.default


class Heard(TorchDispatchMode):
    """Notes every operation inside, with what it took and what came out."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, inputs=(), more=None):
        out = function(*inputs, **(more or {}))
        self.calls.append((function, inputs, more or {}, out))
        return out


@contextmanager
def values_asked():
    """As `graphs.waits`, of a CPU: which values the step inside asks for."""
    found = []
    with Heard() as heard:
        yield found
    found += [function for function, *_ in heard.calls if function is VALUE]


def tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Recorded:
    """A step's operations, done again on the very tensors: whatever Python said is said for good.

    As a real one does, the first replay does the recorded step, which here has run already.
    """

    def __init__(self, step):
        with Heard() as heard:
            step(None)
        self.calls, self.replayed = heard.calls, 0

    @torch.no_grad()
    def replay(self):
        self.replayed += 1
        for function, inputs, more, out in self.calls if self.replayed > 1 else ():
            if function.is_view:
                continue
            taken = {t.untyped_storage().data_ptr() for t in tensors((inputs, more)) if t.numel()}
            for old, new in zip(tensors(out), tensors(function(*inputs, **more)), strict=True):
                if old.numel() and old.untyped_storage().data_ptr() not in taken:
                    old.copy_(new)


class Able(Graphs):
    """On a CPU in the place of a GPU."""

    def __init__(self, made, place):
        super().__init__(CUDA)
        self.made = made

    def _record(self, step):
        self.made.append(Recorded(step))
        return self.made[-1]


@contextmanager
def recording():
    """The graphs of batched lanes that train in here."""
    made = []
    seen = patch.object(graphs, "waits", values_asked)
    with patch("lgfed_core.engine.batched.Graphs", partial(Able, made)), seen:
        yield made


def play(times, able=True, recorded=Recorded, waits=()):
    """The numbers that a step was told, and the graph if there was one."""
    told, made = [], []

    def record(self, step):
        made.append(recorded(step) if recorded else None)
        return made[-1]

    some = Graphs(CUDA if able else CPU)
    found = patch.object(graphs, "waits", lambda: nullcontext(list(waits)))
    with patch.object(Graphs, "_recorded", record), found:
        some.play(told.append, times)
    return told, made, some.able


def test_the_first_step_is_as_written_and_a_graph_plays_the_others():
    told, (graph,), able = play(10)
    assert told == [None, None] and graph.replayed == 9 and able
    assert play(10, recorded=None)[:2] == ([None, *range(1, 10)], [None])  # none can be made
    assert play(10, waits=["it asks"]) == ([None, *range(1, 10)], [], False)  # nor is it tried


@pytest.mark.parametrize("told", [dict(times=LEAST - 1), dict(times=10, able=False)])
def test_few_steps_and_those_on_a_cpu_are_not_recorded(told):
    assert play(**told)[:2] == (list(range(told["times"])), [])


@contextmanager
def faked(*faults):
    """What of `torch.cuda` a recording touches; ``capture_end`` raises these, one each time."""
    names = "Stream", "current_stream", "CUDAGraph", "graph_pool_handle", "empty_cache"
    cuda = Mock(**{"CUDAGraph.return_value.capture_end.side_effect": [*faults, None]})
    some = patch.multiple(torch.cuda, stream=nullcontext, **{n: getattr(cuda, n) for n in names})
    with some, UNASKED, patch.object(Graphs, "streams", {}):
        yield cuda


def test_after_a_refusal_nothing_is_recorded_any_more():
    told, some = [], Graphs(CUDA)
    with faked(RuntimeError("operation not permitted when stream is capturing")) as cuda:
        for _ in range(2):
            some.play(told.append, 8)
    assert cuda.CUDAGraph.call_count == 1 and not some.able and not some.held
    assert told == [None, None, *range(1, 8), *range(8)]


@pytest.mark.parametrize("times", [1, 2])
def test_where_memory_ran_out_it_is_tried_once_more(times):
    some = Graphs(CUDA)
    with faked(*[torch.OutOfMemoryError("full")] * times) as cuda:
        some.play([].append, 8)
    assert (cuda.CUDAGraph.call_count, cuda.empty_cache.call_count) == (2, times)
    assert some.able == bool(some.held) == (times == 1)


def ended(make, method, training, rounds=2):
    torch.manual_seed(0)  # of networks that are made at random
    out = run(make(), method, training, rounds, lanes="batched")
    return torch.cat([out.tensors[n].flatten() for n in ("shared", "personal")])


def alike(make, method, training, rounds=2):
    usual = ended(make, method, training, rounds)
    with recording() as made, patch.object(graphs, "LEAST", 2):
        played = ended(make, method, training, rounds)
    assert torch.equal(usual, played)
    return made


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_step_of_every_method_is_the_step(case):
    make, method = CASES[case]
    alike(make, method, FALLING if case.startswith("fade") else SGD)


HALF = LGFedAvg(layers=ABOVE)


def weighed(self, local, batch):
    """By the number of the round."""
    return LGFedAvg.loss(self, local, batch) / (1 + local.round)


TRAININGS = {
    "sgd": SGD,
    "adam": AdamTraining(0.1, 2),
    "momentum": LocalTraining(0.1, 2, keep_momentum=True, weight_decay=0.1, nesterov=True),
    "a rate that falls": replace(SGD, decay=0.5),
    "of adam": AdamTraining(0.1, 2, decay=0.5),
}


@pytest.mark.parametrize("kind", TRAININGS)
def test_one_recording_serves_a_phase(kind):
    """Of two rounds, the lanes of which are of unequal length: some rest."""
    (made,) = alike(lambda: toy_federation((0, 1)), HALF, TRAININGS[kind])
    assert made.replayed > 1


@pytest.mark.parametrize(("as_tensor", "recorded"), [(False, 3), (True, 1)])
def test_a_loss_that_asks_for_the_round_is_recorded_in_each_unless_it_takes_a_tensor(
    as_tensor, recorded
):
    method = answering(LGFedAvg, loss=weighed, round_as_tensor=as_tensor)(layers=ABOVE)
    assert len(alike(lambda: toy_federation((0, 1)), method, SGD, 3)) == recorded


@pytest.mark.parametrize("case", ["fade", "fade_opt_out"])
def test_the_game_is_recorded_once(case):
    """Its strength rises from round to round."""
    make, method = CASES[case]
    assert len(alike(make, method, FALLING, 4)) == 1


def measured(tracker, fed, method=HALF, rounds=4):
    """What a run has measured, and the graphs it has recorded."""
    with recording() as made:
        return run(fed, method, SGD, rounds, tracker=tracker, lanes="batched"), made


@pytest.mark.parametrize("tracker", [AveragedBest, Personal, partial(Global, (2,))])
def test_tests_are_played_from_their_second_time_on(tracker):
    """Steps are too few to be recorded: all graphs are of tests."""
    fed = toy_federation((0, 1))
    usual = run(fed, HALF, SGD, 4, tracker=tracker(), lanes="batched")
    played, made = measured(tracker(), fed)
    assert usual.history.equals(played.history) and usual.final.equals(played.final)
    assert len(made) >= 2 and all(graph.replayed for graph in made)


def test_devices_that_stop_are_passed_over():
    """Before that a graph plays tests of all."""
    fed, alone = toy_federation((0, 1)), LocalOnly()
    tracker = partial(Personal, "test", ties="first", patience=2)
    usual = run(fed, alone, SGD, 8, tracker=tracker(), lanes="batched")
    played, made = measured(tracker(), fed, alone, 8)
    assert usual.history.equals(played.history) and usual.tensors["done"].any() and made


def test_a_test_that_asks_is_taken_as_written():
    def forward(net, x):
        seen = torch.is_grad_enabled() or x.sum().item() is not None
        return Toy.forward(net, x) if seen else x

    fed, tracker = toy_federation((0, 1), net=Toy.passing(forward)), Global((), best_on_test=True)
    usual = run(fed, FedAvg(), SGD, 4, tracker=tracker, lanes="batched")
    played, made = measured(tracker, fed, FedAvg())
    assert not made and usual.history.equals(played.history)


def test_a_test_that_cannot_be_recorded_leaves_other_graphs_alone():
    some, told = Graphs(CUDA), []
    with faked(torch.OutOfMemoryError("full")) as cuda:
        for _ in range(4):
            some.again(told.append, "a test")
        some.play([].append, 8, "steps")
    assert told == [None] * 5 and cuda.CUDAGraph.call_count == 2  # one try, in which it ran
    assert some.able and some.held["steps"][1] and not some.held["a test"][1]


def test_lanes_that_end_let_go_of_what_knows_them():
    lanes = Batched(prepared(toy_federation((0, 1)), FedAvg()))
    lanes.correct("shared", "personal", "test")
    gone = weakref.ref(lanes)
    gc.disable()
    try:
        lanes.close()
        del lanes
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_and_the_steps_as_written_end_in_the_same_bits():
    found = []
    for least in (2, 10**9):
        with patch.object(graphs, "LEAST", least):
            there = replace(toy_federation((0, 1)), device=CUDA)
            found.append(ended(lambda there=there: there, HALF, SGD))
    assert torch.equal(*found)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("tracker", [AveragedBest, Personal, partial(Global, (2,))])
def test_tests_from_graphs_and_as_written_find_the_same_on_a_gpu(tracker):
    there, found = replace(toy_federation((0, 1)), device=CUDA), []
    for again in (Graphs.again, lambda self, step, whose: step(None)):
        with patch.object(Graphs, "again", again):
            found.append(run(there, HALF, SGD, 5, tracker=tracker()))
    assert found[0].history.equals(found[1].history) and found[0].final.equals(found[1].final)
