"""A promise: what a method is held to, how that is tried, and what is said where it is broken."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, allclose

from lgfed_core.errors import ContractError, in_a_line

from .stage import Stage

NEAR = (1e-4, 1e-5)  # relative and absolute, between sums in another order


class NotTested(unittest.SkipTest):
    """A promise cannot be tried with this method or network; pytest shows it as skipped."""


class Broken(Exception):
    """What was seen in the place of what was promised."""


@dataclass(frozen=True, eq=False)
class Promise:
    """One promise of one method: call it to try it; ``str`` of it is its name.

    said: what is promised. do: what to do where it is broken.

    Raises ContractError where it is broken, and `NotTested` where it cannot be tried.
    """

    name: str
    said: str
    do: str
    tried: Callable[[Stage], None] = field(repr=False)
    stage: Stage = field(repr=False)
    trains: bool = True  # whether it is about training, and has no meaning where that fails
    finite: bool = True  # nor where a run leaves the finite numbers

    def __call__(self) -> None:
        """Try it."""
        needs = self.trains and self.name != "trains"
        if needs and (why := self.stage.fault or (self.finite and self.stage.lost)):
            raise NotTested(f"{self.stage.name} does not train: {why}")
        try:
            self.tried(self.stage)
        except NotTested:
            raise
        except Exception as error:  # `Broken`, or whatever a method may raise
            seen = str(error) if isinstance(error, Broken) else in_a_line(error)
            line = f"{self.name}: {self.said}. Seen: {seen.rstrip('.')}. Do: {self.do}."
            cause = None if isinstance(error, Broken) else error
            raise ContractError(f"{self.stage.name} breaks {line}", [line]) from cause

    def __str__(self) -> str:
        return self.name


def promise(said: str, do: str, trains: bool = True, finite: bool = True) -> Callable:
    """Mark a function of a `Stage` as what tries a promise; its name is the promise's."""

    def mark(tried: Callable[[Stage], None]) -> Callable[[Stage], Promise]:
        return lambda stage: Promise(tried.__name__, said, do, tried, stage, trains, finite)

    return mark


def expect(held: bool | Tensor, seen: str) -> None:
    """Raise `Broken` unless the promise ``held``."""
    if not held:
        raise Broken(seen)


def near(a: Tensor, b: Tensor, rtol: float = NEAR[0], atol: float = NEAR[1]) -> bool:
    """Whether two tensors have the same shape, and numbers that differ in roundings."""
    return a.shape == b.shape and allclose(a, b, rtol, atol, equal_nan=True)


def apart(a: Tensor, b: Tensor) -> str:
    """How far apart two tensors are, in words."""
    far = (a - b).detach().abs().flatten()
    return f"{float(far.max()) if len(far) else 0:.2g}"
