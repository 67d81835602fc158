"""Blocks of a trained network that go on learning, from where they were, at a tenth of the rate."""

from dataclasses import replace

import torch
from torch import nn

from lgfed_core.data.features import objects
from lgfed_core.methods import FedAvg
from lgfed_core.models.layout import joined
from lgfed_core.models.objects import ObjectsNet
from lgfed_core.models.upper_blocks import RATE, UpperBlocks
from toy import alike, toy_federation

SHAPE = (2, 2, 2)


def blocks():
    net = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
    net[1].running_mean.fill_(0.1)
    return net


def test_they_begin_as_they_were_and_rest_in_their_statistics():
    before, x = blocks().eval(), torch.randn(5, 8)
    upper = UpperBlocks(before, SHAPE).train()
    torch.testing.assert_close(upper(x), before(x.view(5, *SHAPE)).mean((2, 3)))
    assert not [*upper.buffers()] and not joined(upper).any()
    assert before[1].running_mean.eq(0.1).all()


def test_a_step_of_sgd_moves_a_weight_a_tenth_as_far():
    x, usual = torch.randn(5, 8), blocks().eval()
    start = usual[0].weight.detach().clone()
    upper = UpperBlocks(blocks(), SHAPE)
    upper.held[0].load_state_dict(usual.state_dict())
    for net, out in ((usual, usual(x.view(5, *SHAPE)).mean((2, 3))), (upper, upper(x))):
        out.square().sum().backward()
        torch.optim.SGD(net.parameters(), lr=0.5).step()
    moved = RATE**0.5 * upper.moved["0_weight"]
    torch.testing.assert_close(moved, RATE * (usual[0].weight - start))


def test_lanes_in_a_stack_learn_as_one_by_one():
    net = ObjectsNet(4, 3, below=UpperBlocks(blocks(), SHAPE), dropout=0.0)
    found = alike(toy_federation(net=net), FedAvg(batch_norm="frozen"))
    learnt = found.layout.views(found.tensors["shared"], found.tensors["personal"][:, 0])
    assert all(v.any() for name, v in learnt.items() if name.startswith("below."))


def test_maps_and_upper_blocks_make_the_features_of_the_whole_network(tmp_path, monkeypatch):
    from lgfed_core.data._torchvision import torchvision

    torch.manual_seed(0)
    torch.save(torchvision.models.mobilenet_v2().state_dict(), tmp_path / "weights.pth")
    whole, below = (objects.BACKBONES[name] for name in ("mobilenet_v2", "mobilenet_v2_maps"))
    own = replace(below, weights=lambda: tmp_path / "weights.pth")
    monkeypatch.setitem(objects.BACKBONES, "mobilenet_v2_maps", own)
    images = torch.randint(256, (2, 3, 224, 224), dtype=torch.uint8)
    maps = below.make(tmp_path / "weights.pth", "float32")(images)
    assert maps.shape == (2, below.width)
    again = UpperBlocks(*objects.upper_blocks())(maps.clone())
    torch.testing.assert_close(again, whole.make(tmp_path / "weights.pth", "float32")(images))
