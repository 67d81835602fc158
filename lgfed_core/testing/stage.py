"""Where promises are tried: a small network, four devices with a few rows each, short runs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import FrozenInstanceError, dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from lgfed_core.data import Dataset, Split
from lgfed_core.engine import Federation, LocalTraining, Outcome, Participation, looped, run
from lgfed_core.engine.checks.layers import has_batch_norm
from lgfed_core.errors import SettingsError, in_a_line
from lgfed_core.methods import Method
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices, Partition

from .network import FOUR

TESTS = 20  # test rows
SEED = 3


class Listens:
    """An upload's treatment that writes down what devices send."""

    def __init__(self):
        self.sent: list[Tensor] = []

    def treat(self, before: Tensor, upload: Tensor, rng: object) -> Tensor:
        """``upload`` [P_s] itself."""
        self.sent.append(upload.clone())
        return upload


@dataclass(frozen=True, eq=False)
class Stage:
    """A method on its network; each run has a method of its own, as before anything ran.

    shape: of a row. classes, groups: how many; groups 0: rows have none.
    """

    method: Method
    net: nn.Module
    shape: tuple[int, ...] = (FOUR,)
    classes: int = FOUR
    groups: int = FOUR
    said: list[str] = field(default_factory=list)  # warnings of the last run

    @property
    def name(self) -> str:
        """The method's."""
        return type(self.method).__name__

    @cached_property
    def fault(self) -> str:
        """Why a round does not work; nothing where it does."""
        try:
            self.go()
        except FrozenInstanceError as error:
            kept = "a parameter, or in the server's memory (`server_memory`)"
            return f"{in_a_line(error)}; what a round needs of earlier ones is {kept}"
        except Exception as error:  # whatever a method may raise
            return in_a_line(error)
        return ""

    @cached_property
    def lost(self) -> str:
        """How a run leaves the finite numbers; nothing where it does not, or does not work."""
        if self.fault:
            return ""
        found = self.go()
        if not found.diverged and models(found).isfinite().all():
            return ""
        why = "; ".join(self.said) or "NaN"
        return f"{why}; or a gradient is NaN, as that of a root or a norm is at 0"

    @cached_property
    def lanes(self) -> tuple[str, ...]:
        """The kinds of lanes that take the method; `training.lanes` says where one does not."""
        try:
            self.go(lanes="batched")
        except Exception:
            return ("looped",)
        return ("looped", "batched")

    @cached_property
    def noisy(self) -> bool:
        """Whether training draws from PyTorch's generator, as dropout does."""
        before = models(self.go())
        with mock.patch.object(looped, "draw", lambda s, t, k: s + 50):
            return not torch.allclose(before, models(self.go()), 1e-4)

    @cached_property
    def normalises(self) -> bool:
        """Whether the network has batch normalisation: no batch of one row, and no padding."""
        return has_batch_norm(self.net)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of the devices."""
        return (4, 4, 4, 4) if self.normalises else (2, 5, 3, 4)

    @property
    def small(self) -> LocalTraining:
        """Several batches in a pass."""
        return LocalTraining(lr=0.1, batch_size=2 if self.normalises else 3, momentum=0.5)

    @cached_property
    def lasting(self) -> LocalTraining:
        """The same with a momentum that outlasts the round, where the method takes one."""
        kept = replace(self.small, keep_momentum=True)
        try:
            self.go(training=kept)
        except SettingsError:
            return self.small
        return kept

    @property
    def full(self) -> LocalTraining:
        """All rows in one batch: nothing is shuffled."""
        return replace(self.small, batch_size=4 if self.normalises else 8)

    @property
    def start(self) -> Tensor:
        """The network's parameters [P]."""
        return joined(self.net)

    def fresh(self, **answers: object) -> Method:
        """The method as before anything ran, with some ``answers`` of another kind."""
        try:
            found = copy.deepcopy(self.method)
        except Exception:  # it holds what cannot be copied
            found = copy.copy(self.method)
        for name, answer in answers.items():
            object.__setattr__(found, name, answer)
        return found

    def federation(
        self,
        order: Iterable[int] = range(4),
        sizes: Sequence[int] = (),
        who: Participation | None = None,
    ) -> Federation:
        """Device k has the rows of device ``order[k]``; what is no device's comes first (row 0)."""
        rng, sizes = torch.Generator().manual_seed(1), sizes or self.sizes
        total, numbers = 1 + sum(sizes), prod(self.shape)

        def rows(n: int) -> Split:
            y = torch.arange(n) % self.classes
            x = torch.randn(n, numbers, generator=rng) + 1.5 * torch.eye(numbers)[y % numbers]
            groups = torch.randint(2, (n, self.groups), generator=rng) if self.groups else None
            return Split(x.view(n, *self.shape), y, groups)

        held = (1 + torch.arange(sum(sizes))).split(list(sizes))
        train = ClientIndices.from_lists([held[k] for k in order if k < len(held)])
        tests = ClientIndices.from_lists(torch.arange(TESTS).tensor_split(len(sizes)))
        data = Dataset("made up", rows(total), rows(TESTS), self.classes)
        part = Partition("made up", train, None, tests)
        return Federation(data, [part], self.net, [SEED], participation=who or Participation())

    def go(
        self,
        method: Method | None = None,
        fed: Federation | None = None,
        rounds: int = 1,
        lanes: str = "looped",
        training: LocalTraining | None = None,
        **more: Any,
    ) -> Outcome:
        """A run; its warnings are in ``said``, and PyTorch's generator is as before it."""
        with warnings.catch_warnings(record=True) as heard, torch.random.fork_rng(devices=[]):
            warnings.simplefilter("always")
            method, fed = method or self.fresh(), fed or self.federation()
            kind = training or self.small
            found = run(fed, method, kind, rounds, lanes=lanes, workers=1, **more)
        self.said[:] = [str(one.message) for one in heard if one.category is RuntimeWarning]
        return found


def models(outcome: Outcome) -> Tensor:
    """All devices' parameters [K, P] of a run."""
    t = outcome.tensors
    return outcome.layout.join(t["shared"][:, None], t["personal"])[0]
