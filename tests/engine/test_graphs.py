"""Steps played from a graph; where there is no GPU, from one that a test makes."""

from unittest.mock import patch

import pytest
import torch

from lgfed_core.engine import CPU, LocalTraining, graphs, run
from lgfed_core.engine.graphs import LEAST, Graphs
from lgfed_core.engine.training import AdamTraining
from lgfed_core.methods import LGFedAvg
from toy import ABOVE, SGD, toy_federation

CUDA = torch.device("cuda")


class Recorded:
    """A graph that takes a step as it was written."""

    def __init__(self, step):
        self.step, self.replayed = step, 0

    def replay(self):
        self.replayed += 1
        self.step()


def play(times, able=True, recorded=Recorded):
    """How often a step was taken, and the graph if there was one."""
    taken, made = [], []

    def record(self, step):
        made.append(recorded(step) if recorded else None)
        return made[-1]

    graphs = Graphs(CUDA if able else CPU)
    with patch.object(Graphs, "_recorded", record):
        graphs.play(lambda: taken.append(1), times)
    return len(taken), made


def test_the_first_step_is_as_written_and_a_graph_plays_the_others():
    taken, (graph,) = play(10)
    assert taken == 10 and graph.replayed == 9


@pytest.mark.parametrize("told", [dict(times=LEAST - 1), dict(times=10, able=False)])
def test_few_steps_and_those_on_a_cpu_are_not_recorded(told):
    assert play(**told) == (told["times"], [])


def test_what_cannot_be_recorded_is_taken_as_written():
    assert play(10, recorded=None) == (10, [None])


def test_after_a_refusal_nothing_is_recorded_any_more():
    """A step that CUDA refuses, as it does one that waits for the host, raises in the recording."""

    class Graph:
        def capture_begin(self, pool):
            self.recording = True

        def capture_end(self):
            raise RuntimeError("invalidated")

        def reset(self):
            pass

    class Stream:
        def wait_stream(self, other):
            pass

    class Entered:
        def __init__(self, stream):
            pass

        def __enter__(self):
            pass

        def __exit__(self, *_):
            pass

    cuda = graphs.torch.cuda
    steps, refused = [], []

    def step():
        if len(steps) == 1 and not refused:
            refused.append(1)
            raise RuntimeError("operation not permitted when stream is capturing")
        steps.append(1)

    with patch.multiple(
        cuda,
        Stream=lambda place: Stream(),
        current_stream=lambda place: Stream(),
        stream=Entered,
        CUDAGraph=Graph,
        graph_pool_handle=lambda: (0, 1),
    ):
        some = Graphs(CUDA)
        some.play(step, 8)
    assert len(steps) == 8 and refused and not some.able and some.held is None


@pytest.mark.parametrize(
    "training",
    [
        SGD,
        AdamTraining(0.1, 2),
        LocalTraining(0.1, 2, keep_momentum=True, weight_decay=0.1, epochs=2, nesterov=True),
    ],
)
def test_a_step_finds_its_rows_by_itself(training):
    """Whoever plays it, a step of lanes of unequal length is the same one after the other."""

    def models():
        out = run(toy_federation((0, 1)), LGFedAvg(layers=ABOVE), training, 2, lanes="batched")
        return torch.cat([out.tensors[n].flatten() for n in ("shared", "personal")])

    made = []

    def record(self, step):
        made.append(Recorded(step))
        return made[-1]

    class Able(Graphs):
        def __init__(self, place):
            super().__init__(CUDA)

    usual = models()
    with (
        patch("lgfed_core.engine.batched.Graphs", Able),
        patch.object(Graphs, "_recorded", record),
        patch.object(graphs, "LEAST", 2),
    ):
        played = models()
    assert made and all(graph.replayed for graph in made) and torch.equal(usual, played)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_and_the_steps_as_written_end_in_the_same_bits():
    from dataclasses import replace

    found = []
    for least in (2, 10**9):
        with patch.object(graphs, "LEAST", least):
            fed = toy_federation((0, 1))
            fed = replace(fed, device=CUDA)
            out = run(fed, LGFedAvg(layers=ABOVE), SGD, 3, lanes="batched")
        found.append(torch.cat([out.tensors[n].flatten() for n in ("shared", "personal")]))
    assert torch.equal(*found)
