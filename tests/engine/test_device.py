"""Batched lanes on a device that is none: PyTorch's fake tensors have a shape and a place only.

Whoever asks one for its value, or joins two places in one operation, gets an error: so a round of
each method shows, without a GPU, that it never waits for one.
"""

from dataclasses import replace

import pytest
import torch
from cases import CASES, FALLING
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from lgfed_core import LGFedAvg, LocalTraining
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.rounds import round_of
from lgfed_core.engine.training import AdamTraining
from lgfed_core.errors import SettingsError
from toy import ABOVE, SGD, answering, models, prepared, toy_federation

HALF = LGFedAvg(layers=ABOVE)
PLACE = torch.device("lazy")  # of no builds' own kernels; fake tensors need none


class Pretended(Batched):
    """Lanes whose steps run on fake tensors at `PLACE`, after the host has said all it knows."""

    def _play(self, given, steps, round, lr):
        mode, real = FakeTensorMode(), self.phase
        train, rows = real.rows["train"]
        (x, y, groups) = (there(mode, part) for part in (train.x, train.y, train.groups))
        tensors = {name: there(mode, t) for name, t in real.tensors.items()}
        self.phase = replace(real, tensors=tensors, rows={"train": (Bare(x, y, groups), rows)})
        lanes, told = (
            {name: there(mode, t) for name, t in part.items()} for part in (given.lanes, given.told)
        )
        with mode, NoWayBack():
            far = given._replace(lanes=lanes, told=self.spoilt(mode, told))
            super()._play(far, steps, round, lr)
        self.phase, self.played = real, True

    def spoilt(self, mode, told):
        return told


class Bare:
    """Rows without the checks of `Split`, which ask for values."""

    def __init__(self, x, y, groups):
        self.x, self.y, self.groups = x, y, groups


class NoWayBack(TorchDispatchMode):
    """Nothing is copied to the host."""

    def __torch_dispatch__(self, function, types, inputs=(), more=None):
        out = function(*inputs, **(more or {}))
        taken = [i for i in inputs if isinstance(i, torch.Tensor) and i.device.type == PLACE.type]
        if "_to_copy" in str(function) and taken and out.device.type == "cpu":
            raise AssertionError("a tensor is copied to the host")
        return out


def there(mode, value):
    """A fake of ``value`` at `PLACE`; what is no tensor as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    like = mode.from_tensor(value.detach())
    with mode:
        return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=PLACE)


def play(federation, method, training=SGD, lanes=Pretended):
    phase = prepared(federation, method, training)
    engine = lanes(phase)
    round_of(federation, None, engine, 0, 0.1)
    assert engine.played


@pytest.mark.parametrize("case", CASES)
def test_no_method_asks_the_device_in_a_round(case):
    make, method = CASES[case]
    play(make(), method, FALLING if case.startswith("fade") else SGD)


KEPT = LocalTraining(0.1, 4, keep_momentum=True, weight_decay=0.1, epochs=2, batches=1)


@pytest.mark.parametrize("training", [AdamTraining(0.1, 4), KEPT])
def test_no_way_to_train_asks_the_device(training):
    play(toy_federation((0, 1)), HALF, training)


class Left(Pretended):
    """Forgets to send the weights of rows."""

    def spoilt(self, mode, told):
        return told | {"weight": mode.from_tensor(torch.ones(told["weight"].shape))}


def asks(self, local, batch):
    """Looks at its loss."""
    loss = LGFedAvg.loss(self, local, batch)
    return loss if loss.detach().sum() > 0 else 2 * loss


def test_what_was_left_on_the_host_or_asks_is_found():
    with pytest.raises(RuntimeError, match="same device|different devices"):
        play(toy_federation(), HALF, lanes=Left)
    with pytest.raises(RuntimeError):
        play(toy_federation(), answering(LGFedAvg, loss=asks)(layers=ABOVE))


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
    with pytest.raises(SettingsError, match="not even one device's training fits: too much"):
        play(toy_federation(), HALF, lanes=Small)
