"""FedRep (Collins et al., 2021, Algorithm 1): the head first, then what it reads.

A device fits its own head to the representation as received, then moves the representation with
the head fixed, and sends the representation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from lgfed_core.errors import SettingsError

from .fedper import FedPer
from .interface import Step


@dataclass(frozen=True, kw_only=True)
class FedRep(FedPer):
    """Averages ``layers``, the representation.

    head: the share of a device's batches in a round that fit the head, between 0 and 1. The paper
        takes ten passes for it and one for the representation, which is 10/11 of eleven epochs.
    """

    head: float = 10 / 11

    def __post_init__(self):
        super().__post_init__()
        if not 0 < self.head < 1:
            raise SettingsError(f"head is {self.head}; it must lie between 0 and 1")

    def steps(self, net: nn.Module) -> Sequence[Step]:
        above = frozenset(name for name, _ in net.named_parameters()) - self.layers
        return (
            Step(self.loss, above, part=(0, self.head)),  # line 8
            Step(self.loss, self.layers, part=(self.head, 1)),  # line 10
        )
