"""FADE's network for UCI Adult: encoder, classifier, discriminator (Hong et al. 2021, Figure 5).

==================  =====================================================  ==========
part                layers                                                 parameters
==================  =====================================================  ==========
``encoder``, G      linear (110, 100), ReLU, dropout, linear (100, 64)     17,564
``classifier``, f   linear (64, 32), ReLU, dropout, linear (32, 2)         2,146
``discriminator``   linear (64, 32), ReLU, dropout, linear (32, 1)         2,113
==================  =====================================================  ==========

Widths and the dropout of 0.25 are those of the released code. With fewer inputs G is smaller.
"""

from torch import Tensor, nn

from .adult import Dropout
from .digits import Watch

INPUTS, FEATURES = 110, 64


class IncomeNet(nn.Module):
    """Two classes of income, and D, which guesses the group from the features."""

    def __init__(self, inputs: int = INPUTS, dropout: float = 0.25):
        super().__init__()
        self.encoder = _two(inputs, 100, FEATURES, dropout)
        self.classifier = _two(FEATURES, 32, 2, dropout)
        self.discriminator = _two(FEATURES, 32, 1, dropout)

    def forward(self, x: Tensor, watch: Watch | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, inputs] -> logits [n, 2]; with ``watch``, a function of the features [n, 64], also
        what D makes of watch(z): logits [n, 1] of group 1."""
        z = self.encoder(x)  # [n, 64]
        outputs = self.classifier(z)  # [n, 2]
        return outputs if watch is None else (outputs, self.discriminator(watch(z)))


def _two(inputs: int, hidden: int, outputs: int, dropout: float) -> nn.Sequential:
    """Two linear layers with ReLU and, unless it is 0, dropout between them."""
    drop = [Dropout(dropout)] if dropout else []
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), *drop, nn.Linear(hidden, outputs))
