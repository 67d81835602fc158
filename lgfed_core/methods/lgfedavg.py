"""LG-FedAvg, version 2 (Liang et al., 2020, Algorithm 1): private layers below, shared above.

A device trains all its layers with one loss and one optimiser, sends only the shared ones, and
receives their average. Version 1's auxiliary heads and separate local steps are another method.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from lgfed_core.errors import SettingsError

from .interface import Method


@dataclass(frozen=True, kw_only=True)
class LGFedAvg(Method):
    """Averages the parameters named in ``layers``; all others stay on their device.

    For the paper's MNIST network these are the last three layers (99,978 of 633,226
    parameters), see `models.last_layers`; for CIFAR-10 the two convolutions (2,872 of 64,102).
    """

    layers: frozenset[str]

    def __post_init__(self):
        super().__post_init__()
        self._as_set("layers")

    def shared(self, net: nn.Module) -> frozenset[str]:
        return self.layers

    def _as_set(self, field: str) -> None:
        names = getattr(self, field)
        if isinstance(names, str):  # which is a set of letters to Python
            raise SettingsError(f"{field} is {names!r}; give a set of names, {{{names!r}}}")
        if not isinstance(names, Iterable):
            raise SettingsError(f"{field} is {names!r}; give a set of names, frozenset() for none")
        object.__setattr__(self, field, frozenset(names))
