"""Local only: nothing is shared, every device trains alone. One round is one local epoch."""

from dataclasses import dataclass

from torch import nn

from .interface import Method


@dataclass(frozen=True, kw_only=True)
class LocalOnly(Method):
    """No parameter is averaged."""

    def shared(self, net: nn.Module) -> frozenset[str]:
        return frozenset()
