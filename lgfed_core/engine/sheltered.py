"""A network as losses and tests call it: on copies of what they give, and with other values."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.func import functional_call


def sheltered(net: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``net`` on copies of what it is given: one that works in place changes nobody else's rows."""

    def call(*inputs, **more):
        more = {name: own(value) for name, value in more.items()}
        return net(*map(own, inputs), **more)

    return call


def filled(net: nn.Module, params: dict[str, Tensor]) -> Callable[..., Tensor]:
    """``net`` with other values, on copies of what it is given."""

    def call(*inputs, **more):
        return functional_call(net, params, inputs, more)

    return sheltered(call)


class Elsewhere(NamedTuple):
    """A network at other parameters, for losses that look there (`Local.at`)."""

    module: nn.Module
    statistics: dict[str, Tensor]  # where those are not the module's own

    @property
    def moving(self) -> list[str]:
        """Names of the parameters that are not frozen."""
        return moving(self.module, None)

    def net(self, params: dict[str, Tensor]) -> Callable[..., Tensor]:
        """With ``params``; running statistics move."""
        return filled(self.module, self.statistics | params)

    def apart(self, params: dict[str, Tensor]) -> Callable[..., Tensor]:
        """With ``params``; running statistics stay."""
        held = dict(self.module.named_buffers()) | self.statistics
        return filled(self.module, {n: v.clone() for n, v in held.items()} | params)


def moving(net: nn.Module, names: frozenset[str] | None) -> list[str]:
    """Which parameters a step on ``names`` (None: all) moves: never those that are frozen."""
    held = dict(net.named_parameters())
    return [n for n, p in held.items() if p.requires_grad and (names is None or n in names)]


def own(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
