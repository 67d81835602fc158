"""How a device optimises: SGD with momentum, or Adam (Kingma & Ba 2015) at its defaults."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from lgfed_core import require
from lgfed_core.data.augment import CropFlip
from lgfed_core.errors import SettingsError
from lgfed_core.methods.schedules import Annealing

MEAN, SQUARE, LEAST = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class LocalTraining:
    """How a device optimises: SGD with momentum, ``epochs`` passes in batches of ``batch_size``.

    Momentum starts from zero in every round unless ``keep_momentum``. The learning rate is
    lr / (1 + decay t) in round t, where t goes on from ``before`` in the first round of a phase.
    With ``annealing`` it also falls with the steps that the device itself has taken so far.
    With ``batches``, a device takes only the first so many batches of each pass. Raises
    SettingsError for impossible values.
    """

    lr: float
    batch_size: int
    momentum: float = 0.5
    epochs: int = 1
    weight_decay: float = 0.0
    keep_momentum: bool = False
    decay: float | None = None
    before: int | None = None  # rounds of earlier phases
    augment: CropFlip | None = None
    nesterov: bool | None = None
    annealing: Annealing | None = None  # by a device's own steps
    batches: int | None = None

    adam: ClassVar[bool] = False

    def __post_init__(self):
        counts = dict.fromkeys(("batch_size", "epochs", "batches"), 1)
        least = counts | dict.fromkeys(("lr", "momentum", "weight_decay", "decay", "before"), 0)
        usual = {f.name: f.default for f in fields(self)}
        given = {n: getattr(self, n) for n in least}
        given = {n: v for n, v in given.items() if v is not None or usual[n] is not None}
        below = {"momentum": 1}
        wrong = {
            n: repr(v)
            for n, v in given.items()
            if not isinstance(v, Real)
            or not least[n] <= v < below.get(n, math.inf)
            or (n in counts and v % 1)
        }
        for name, does in (("augment", "apply"), ("annealing", "factor")):
            v = getattr(self, name)
            if isinstance(v, type) or (v is not None and not hasattr(v, does)):
                wrong[name] = f"{v!r}, which is no object with a method `{does}`"
        if wrong:
            raise SettingsError(
                "training cannot have "
                + ", ".join(f"{n} {v}" for n, v in wrong.items())
                + ": batches and epochs are whole numbers from 1, rates and decays are 0 or more, "
                "and finite, momentum is 0 or more, and below 1"
            )
        require.at_most(10**6, batch_size=self.batch_size, batches=self.batches)
        require.at_most(10**4, epochs=self.epochs)  # a round draws the order of all its passes
        if self.nesterov and not self.momentum:
            raise SettingsError(
                "nesterov looks ahead by the momentum, which is 0; give it one, or leave it out"
            )
        for name in counts.keys() & given.keys():
            object.__setattr__(self, name, int(given[name]))

    def seen(self, rows: int) -> int:
        """How many of a device's ``rows`` it visits in one pass."""
        return rows if self.batches is None else min(rows, self.batches * self.batch_size)

    def batches_of(self, rows: int) -> int:
        """How many batches a device with so many ``rows`` takes in a round."""
        return self.epochs * -(-self.seen(rows) // self.batch_size)

    def rate(self, t: int) -> float:
        """The learning rate in round ``t`` of a phase, from 0."""
        return self.lr / (1 + (self.decay or 0.0) * ((self.before or 0) + t))


@dataclass(frozen=True)
class AdamTraining(LocalTraining):
    """The same by Adam; its moments start from zero in every round, and ``momentum`` has no say."""

    adam: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if self.keep_momentum or self.annealing:
            raise SettingsError(
                "Adam starts afresh in every round, at one rate: leave out keep_momentum and "
                "annealing, or train by SGD"
            )


class Adam:
    """For one lane or a stack of lanes: moments of each parameter, from zero.

    A parameter counts the steps that it takes itself. values: parameters by any key, [L, ...] with
    ``lanes``, else of one lane. `change` is what a parameter is moved by, against the gradient, at
    a learning rate of one.
    """

    def __init__(self, values: Mapping[Any, Tensor], lanes: int | None = None):
        self.moments = {n: (torch.zeros_like(v), torch.zeros_like(v)) for n, v in values.items()}
        shape = () if lanes is None else (lanes,)
        self.taken = {n: torch.zeros(shape, device=v.device) for n, v in values.items()}

    def forget(self) -> None:
        """Start from zero again, in the same tensors."""
        for name, moments in self.moments.items():
            for tensor in (*moments, self.taken[name]):
                tensor.zero_()

    def change(self, name: Hashable, grad: Tensor, on: Tensor | None = None) -> Tensor:
        """Of one step; lanes that are not ``on`` [L] do not move, and keep their moments."""
        mean, square = self.moments[name]
        on = torch.ones_like(self.taken[name], dtype=torch.bool) if on is None else on
        self.taken[name] += on
        wide = on.view(*on.shape, *[1] * (grad.dim() - on.dim()))
        mean.copy_(torch.where(wide, MEAN * mean + (1 - MEAN) * grad, mean))
        square.copy_(torch.where(wide, SQUARE * square + (1 - SQUARE) * grad**2, square))
        taken = self.taken[name].clamp(min=1).view(wide.shape)
        size = (square / (1 - SQUARE**taken)).sqrt() + LEAST
        return torch.where(wide, mean, 0) / (1 - MEAN**taken) / size
