"""The speed comparison compares like with like; how fast it is, no test says."""

import json
import os
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import toy
from lgfed_core import bench
from lgfed_core.bench import apart
from lgfed_core.bench.times import flops_per_row
from lgfed_core.data import Split
from lgfed_core.engine import LocalTraining, Participation
from lgfed_core.errors import LgfedError, SettingsError
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices, Partition
from toy import Toy, in_float64, toy_federation


class ToyTask(bench.Task):
    def federation(self, seeds, device=bench.CPU):
        many = toy_federation(seeds, devices=100)  # a `Toy` of the same start each time
        return replace(many, participation=Participation(0.1))


@pytest.fixture
def task(monkeypatch) -> ToyTask:
    monkeypatch.setattr(toy, "toy_split", lambda rows, seed: many_rows(seed))
    monkeypatch.setattr(toy, "toy_partition", wide_partition)
    return ToyTask("toy", "mnist", Toy, LocalTraining(0.1, 4))


def many_rows(seed):
    x = torch.randn(6000, 8, generator=torch.Generator().manual_seed(seed))
    return Split(x, torch.arange(6000) % 3)


def wide_partition(rows, tests, devices, seed):
    order = torch.randperm(6000, generator=torch.Generator().manual_seed(seed))
    mine = ClientIndices.from_lists(order.tensor_split(devices))
    return Partition("toy", train=mine, validation=None, test=mine)


def test_all_contenders_end_at_the_same_parameters(task, monkeypatch):
    monkeypatch.setenv("LGFED_WORKERS", "2")
    lines = bench.compare(task, 2)
    who = [line["who"] for line in lines]
    assert {"plain loop, 1 thread", "plain loop, 2 processes"} <= set(who)
    assert any("two seeds" in w for w in who) and any("testing" in w for w in who)
    assert all(0 < x["min_s"] <= x["median_s"] <= x["max_s"] for x in lines)


@pytest.mark.parametrize("processes, epochs", [(0, 1), (2, 1), (0, 3)])
def test_both_loops_stay_together_in_float64(task, processes, epochs):
    task = replace(task, training=replace(task.training, epochs=epochs))
    with in_float64():
        fed = task.federation([0])
        ours = bench.Ours(fed, task, workers=1)
        plain = bench.Spread(fed, task, processes) if processes else bench.Plain(fed, task)
        for number in range(10):
            ours.round(number)
            plain.round(number)
        shared = ours.parameters()
        assert shared.dtype == torch.float64
        assert torch.allclose(plain.parameters(), shared, rtol=0, atol=1e-13)
        assert not torch.allclose(joined(fed.net), shared, atol=1e-2)
        plain.close()


def test_a_difference_is_an_error(task):
    ours = bench.Ours(task.federation([0]), task, workers=1)
    bench.same(ours.parameters().clone(), ours.parameters(), "toy")
    for wrong in (1.0, float("nan")):
        with pytest.raises(LgfedError, match="must agree"):
            bench.same(ours.parameters() + wrong, ours.parameters(), "toy")


def test_ten_seeds_in_one_stack_end_where_each_ends_alone(task, monkeypatch):
    """By ours and by a plain loop; a CPU in the place of the GPU."""
    monkeypatch.setenv("LGFED_WORKERS", "1")
    lines = bench.on_gpu(task, 1, bench.CPU)
    assert [line["seeds"] for line in lines] == [10] * 3 and "plain" in lines[-1]["who"]
    assert lines[-1]["plain_over_this"] == 1


FRAMEWORK = """
import torch
from lgfed_core.bench.apart import read
from lgfed_core.models.layout import joined

def play(path, workers, orders):
    given = read(path)
    net = given.net
    for number in orders(lambda: joined(net)):
        print("said by the way")
        if number == 3:
            raise RuntimeError("out of breath")
        sizes, sums = 0, 0.0
        start = joined(net)
        for k in given.chosen(number):
            torch.nn.utils.vector_to_parameters(start.clone(), net.parameters())
            many = given.train(net, k, number)
            sizes, sums = sizes + many, sums + many * joined(net)
        torch.nn.utils.vector_to_parameters(sums / sizes, net.parameters())
"""


# Flower whose only actor is a thread, as Ray is not among what tests need.
THREAD = """
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

class Backend:
    num_workers = 1

    def __init__(self, config):
        assert config["init_args"]["num_cpus"] == 2
        assert config["client_resources"]["num_cpus"] == 1

    def build(self, app_fn):
        self.app = app_fn()

    def process_message(self, message, context):
        return self.app(message=message, context=context), context

    def terminate(self):
        pass

ray = sys.modules["ray"] = ModuleType("ray")
ray.__spec__ = ModuleSpec("ray", None)
at = "flwr.server.superlink.fleet.vce.backend.raybackend"
sys.modules[at] = ModuleType(at)
sys.modules[at].RayBackend = Backend

from lgfed_core.bench.flower import play
"""


@pytest.fixture
def framework(tmp_path, monkeypatch) -> apart.Rival:
    """One that is a short loop, as two processes which do the same."""
    (tmp_path / "short_loop.py").write_text(FRAMEWORK)
    monkeypatch.syspath_prepend(tmp_path)
    return apart.Rival("Short", ("torch",), "torch", "short_loop", ranks=True)


def follows_the_plain_loop(seat, task, rounds: int) -> None:
    plain = bench.Plain(task.federation([0]), task)
    for number in range(rounds):
        plain.round(number)
        seat.round(number)
        bench.same(plain.parameters(), seat.parameters(), "toy")


@pytest.mark.slow
def test_a_framework_in_processes_of_its_own(task, framework):
    """It ends at the parameters of the plain loop; where it fails, what it said is in the error."""
    with closing(framework.seat(task.federation([0]), task, 2)) as seat:
        follows_the_plain_loop(seat, task, 1)
        with pytest.raises(LgfedError, match=r"short_loop has ended(?s:.)*out of breath"):
            seat.round(3)
    assert not seat.folder.exists()


@pytest.mark.slow
def test_flower_ends_at_the_parameters_of_the_plain_loop(task, tmp_path, monkeypatch):
    pytest.importorskip("flwr")
    (tmp_path / "flower_in_a_thread.py").write_text(THREAD)
    monkeypatch.syspath_prepend(tmp_path)
    rival = apart.Rival("Flower", (), "", "flower_in_a_thread")
    with closing(rival.seat(task.federation([0]), task, 2)) as seat:
        follows_the_plain_loop(seat, task, 2)


@pytest.mark.slow
def test_a_framework_that_does_not_start_is_left_out_by_name(task, capsys):
    lost = apart.Rival("Lost", (), "", "no_such_module")
    who = [line["who"] for line in bench.compare(task, 1, [lost])]
    assert len(who) > 3 and not any("Lost" in name for name in who)
    said = capsys.readouterr().out
    assert "left out" in said and "No module named 'no_such_module'" in said


def test_a_framework_that_does_something_else_is_not_timed(task):
    class Cheat(bench.Plain):
        def trained(self, chosen, number):
            return super().trained(chosen, number + 1)

    rival = SimpleNamespace(name="Cheat", seat=lambda fed, task, workers: Cheat(fed, task))
    with pytest.raises(LgfedError, match="Cheat, .*must agree"):
        bench.compare(task, 1, [rival])


def test_json_holds_what_was_printed_and_who_is_not_here_is_left_out_by_name(
    task, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(bench, "TASKS", dict.fromkeys(bench.TASKS, task))
    absent = apart.Rival("Nobody", ("torch", "no_such_package"), "nobody", "nobody")
    monkeypatch.setitem(bench.RIVALS, "flower", absent)
    assert bench.main(1, str(tmp_path / "speed.json"), ["flower"]) == 0
    said, written = capsys.readouterr().out, json.loads((tmp_path / "speed.json").read_text())
    assert {"provenance", "times", "limits"} == set(written)
    assert written["times"][0]["who"] in said
    assert "Nobody is left out: no_such_package not installed; python -m pip install nobody" in said
    assert "Nobody, " not in said
    with pytest.raises(SettingsError, match="'blazefl' is none of flower, pfl"):
        bench.main(1, None, ["blazefl"])


def test_the_simulators_own_settings_take_as_many_steps_as_they_say():
    for task, steps in ((bench.TASKS["blazefl"], 25_000 // 5), (bench.TASKS["pfl"], 50 * 5)):
        fed = task.federation([0])
        sizes = fed.partitions[0].train.size[: task.cohort]  # all devices have as many rows
        each = -(-sizes // task.training.batch_size) * task.training.epochs
        assert int(each.sum()) == steps
        assert not (sizes % task.training.batch_size).any(), "epochs can be joined"


@pytest.mark.parametrize(
    ("task", "shape", "first", "above"),  # uses of weights by a row: 10x10 places x 2,400, ...
    [
        (bench.MNIST, (784,), 401_408, 230_656),
        (bench.CIFAR, (3, 32, 32), 28 * 28 * 450, 240_000 + 61_000),
    ],
)
def test_operations_of_a_row_by_hand(task, shape, first, above):
    """A multiply and an add for each, twice that backward, but for the gradient of the input."""
    found = flops_per_row(task.net(), torch.zeros(1, *shape))
    assert found == 2 * (3 * (first + above) - first)


def own_process(*told):
    return [os.getpid(), *told]


def test_beside_a_gpu_each_task_has_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(bench, "compare", own_process)
    assert bench._compared(3) == [os.getpid(), 3]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    there, told = bench._compared(3)
    assert there != os.getpid() and told == 3


@pytest.mark.slow
def test_how_a_round_grows_is_measured_point_by_point(tmp_path, monkeypatch, capsys):
    at = [(4, 2, 1), (4, 2, 3)]
    monkeypatch.setattr(bench.scaling, "AXES", {"seeds at once": at})
    assert bench.scale_up(str(tmp_path / "scaling.json")) == 0
    points = json.loads((tmp_path / "scaling.json").read_text())["points"]
    assert [(p["devices"], p["cohort"], p["seeds"]) for p in points] == at
    assert [p["steps"] for p in points] == [4, 12]
    assert all(0 < p["min_s"] <= p["median_s"] <= p["max_s"] for p in points)
    assert all(p["memory"] > 50e6 for p in points), "at least PyTorch itself"
    monkeypatch.setattr(bench.scaling, "AXES", {"seeds at once": [(4, 2, 0)]})
    with pytest.raises(LgfedError, match="0 partitions for 0 seeds"):
        bench.scale_up(None)
