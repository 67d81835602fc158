"""FedBABU (Oh et al., 2022, Algorithm 1): only the body is trained; the head is never moved.

All devices read the body through the same random head, so that bodies stay comparable. A device
then fine-tunes the model on its own rows, by `LocalOnly` in a second run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from .fedper import FedPer
from .interface import Step


@dataclass(frozen=True, kw_only=True)
class FedBABU(FedPer):
    """Trains and averages ``layers``, the body; all others stay as they begin."""

    def steps(self, net: nn.Module) -> Sequence[Step]:
        return (Step(self.loss, self.layers),)
