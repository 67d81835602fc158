"""FADE's network for objects, on features of a frozen backbone, with exact counts.

==================  =============================================  ==============================
part                layers                                         parameters (d = 2,048, C = 31)
==================  =============================================  ==============================
``encoder``, G      linear (d, 256), then                          524,544
..                  "relu": ReLU, dropout (DANN, CDAN)
..                  "norm": batch normalisation (SHOT)             + 512
``classifier``, f   linear (256, C) with weight normalisation      7,998
``discriminator``   256-256-1 with ReLU and dropout                66,049
..                  256 C-256-1, on classes times features         2,032,129
==================  =============================================  ==============================

Source: Hong et al. (2021), Figure 4 and appendix B.2; widths as in the released code.
"""

import torch
from torch import Tensor, nn

from lgfed_core.errors import SettingsError

from .digits import FEATURES, Watch, WeightNormalised, conditioned

BOTTLENECKS, CONDITIONAL = ("relu", "norm"), ("", "whole", "mixed")
MIXED = 1024  # numbers that D reads of a mixed product


def mixed(z: Tensor, outputs: Tensor, maps: tuple[Tensor, Tensor]) -> Tensor:
    """`conditioned` at random in fewer dimensions: (R_z z) (R_p p) / sqrt(m), [b, m].

    maps: R_z [d, m] and R_p [C, m]; of independent entries with mean 0 and variance 1 inner
    products are those of `conditioned` in expectation. Source: Long et al. (2018), eq. 6.
    """
    on_z, on_p = (m.to(z) for m in maps)
    return (z @ on_z) * (outputs.detach().softmax(-1) @ on_p) / on_z.shape[1] ** 0.5


def random_maps(features: int, classes: int) -> tuple[Tensor, Tensor]:
    """The maps of `mixed`, standard normal, the same for everybody."""
    rng = torch.Generator().manual_seed(0)
    z, p = (torch.randn(n, MIXED, generator=rng) for n in (features, classes))
    return z, p


class ObjectsNet(nn.Module):
    """Bottleneck, classifier and discriminator of two groups, on features [n, width].

    conditional: "whole": D reads `conditioned` features (CDAN), so that it compares groups class by
        class; "mixed": reads them mixed at random; "": reads the features alone.
    below: what makes features of rows, and learns with the rest; None: rows are features.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        conditional: str = "",
        bottleneck: str = "relu",
        dropout: float = 0.5,
        below: nn.Module | None = None,
    ):
        super().__init__()
        self.below = below
        if bottleneck not in BOTTLENECKS:
            raise SettingsError(f"bottleneck is {bottleneck!r}; choose {' or '.join(BOTTLENECKS)}")
        if conditional not in CONDITIONAL:
            raise SettingsError(f"conditional is {conditional!r}; choose one of {CONDITIONAL}")
        self.conditional = conditional
        self.maps = random_maps(FEATURES, classes) if conditional == "mixed" else None
        seen = {"": FEATURES, "whole": FEATURES * classes, "mixed": MIXED}[conditional]
        relu: list[nn.Module] = [nn.ReLU(), nn.Dropout(dropout)]
        after = relu if bottleneck == "relu" else [nn.BatchNorm1d(FEATURES)]
        self.encoder = nn.Sequential(nn.Linear(width, FEATURES), *after)
        self.classifier = WeightNormalised(FEATURES, classes)
        self.discriminator = nn.Sequential(
            nn.Linear(seen, 256), nn.ReLU(), nn.Dropout(dropout), nn.Linear(256, 1)
        )

    def forward(
        self, x: Tensor, watch: Watch | None = None, with_features: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, width] -> logits [n, C].

        watch: a function of the features [n, 256]; then also what D makes of watch(z): logits
            [n, 1] of group 1. with_features: logits and features side by side, [n, C + 256].
        """
        z = self.encoder(self.below(x) if self.below else x)  # [n, 256]
        outputs = self.classifier(z)  # [n, C]
        if with_features:
            return torch.cat([outputs, z], -1)
        if watch is None:
            return outputs
        seen = watch(z)
        if self.conditional:
            seen = mixed(seen, outputs, self.maps) if self.maps else conditioned(seen, outputs)
        return outputs, self.discriminator(seen)
