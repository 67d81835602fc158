"""The speed comparison compares like with like; how fast it is, no test says."""

import copy
import json
from dataclasses import replace

import pytest
import torch
from torch import nn

import toy
from lgfed_core import bench
from lgfed_core.data import Split
from lgfed_core.engine import LocalTraining
from lgfed_core.errors import LgfedError
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices, Partition
from toy import Toy, toy_federation


class ToyTask(bench.Task):
    def federation(self, seeds, device=bench.CPU):
        return toy_federation(seeds, devices=100, net=self.net())


@pytest.fixture
def task(monkeypatch) -> ToyTask:
    monkeypatch.setattr(toy, "toy_split", lambda rows, seed: many_rows(seed))
    monkeypatch.setattr(toy, "toy_partition", wide_partition)
    torch.manual_seed(0)
    net = Toy()
    return ToyTask("toy", "mnist", lambda: net, LocalTraining(0.1, 4), 450)


def many_rows(seed):
    x = torch.randn(6000, 8, generator=torch.Generator().manual_seed(seed))
    return Split(x, torch.arange(6000) % 3)


def wide_partition(rows, tests, devices, seed):
    order = torch.randperm(6000, generator=torch.Generator().manual_seed(seed))
    mine = ClientIndices.from_lists(order.tensor_split(devices))
    return Partition("toy", train=mine, validation=None, test=mine)


def test_all_contenders_end_at_the_same_parameters(task):
    lines = bench.compare(task, 2)
    who = [line["who"] for line in lines]
    assert any(w.startswith("plain loop") for w in who)
    assert any("two seeds" in w for w in who) and any("testing" in w for w in who)
    assert all(0 < x["min_s"] <= x["median_s"] <= x["max_s"] for x in lines)


def test_both_loops_stay_together_in_float64(task):
    fed = task.federation([0])
    torch.set_default_dtype(torch.float64)
    try:
        train, test = (Split(s.x.double(), s.y) for s in (fed.data.train, fed.data.test))
        data = replace(fed.data, train=train, test=test)
        fed = replace(fed, data=data, net=copy.deepcopy(fed.net).double())
        ours, plain = bench.Ours(fed, task, workers=1), bench.Plain(fed, task)
        for number in range(10):
            ours.round(number)
            plain.round(number)
        shared = ours.phase.tensors["shared"][0]
        assert shared.dtype == torch.float64
        assert torch.allclose(joined(plain.model), shared, rtol=0, atol=1e-13)
        assert not torch.allclose(joined(fed.net), shared, atol=1e-2)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_difference_is_an_error(task):
    ours = bench.Ours(task.federation([0]), task, workers=1)
    bench._same(ours.phase.tensors["shared"][0].clone(), ours, task)
    for wrong in (1.0, float("nan")):
        with pytest.raises(LgfedError, match="must agree"):
            bench._same(ours.phase.tensors["shared"][0] + wrong, ours, task)


def test_operations_of_the_networks_by_hooks():
    """The stated operations a row: a multiply and an add per weight use, backward twice as many."""
    for task, shape in ((bench.MNIST, (784,)), (bench.CIFAR, (3, 32, 32))):
        net, uses = task.net(), []

        def count(module, inputs, output, uses=uses):
            positions = output[0, 0].numel() if isinstance(module, nn.Conv2d) else 1
            uses.append(module.weight.numel() * positions)

        for module in net.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                module.register_forward_hook(count)
        net(torch.zeros(1, *shape))
        assert task.flops_per_row == 2 * (3 * sum(uses) - uses[0])


def test_json_holds_what_was_printed(task, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "MNIST", task)
    monkeypatch.setattr(bench, "CIFAR", task)
    assert bench.main(1, str(tmp_path / "speed.json")) == 0
    written = json.loads((tmp_path / "speed.json").read_text())
    assert {"provenance", "times", "limits"} == set(written)
    assert written["times"][0]["who"] in capsys.readouterr().out
