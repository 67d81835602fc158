"""FedBN (Li et al., ICLR 2021): batch normalisation stays on the device, all else is averaged.

For devices whose rows look different, as of other scanners or cameras.
"""

from dataclasses import dataclass

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from lgfed_core.errors import SettingsError

from .interface import Method


@dataclass(frozen=True, kw_only=True)
class FedBN(Method):
    """Averages all parameters but those of batch normalisation; its statistics stay, too.

    Raises SettingsError for other ``batch_norm``, and for a network without such a layer.
    """

    def __post_init__(self):
        super().__post_init__()
        if self.batch_norm != "local":
            raise SettingsError(
                f'FedBN keeps statistics "local"; batch_norm is {self.batch_norm!r}'
            )

    def shared(self, net: nn.Module) -> frozenset[str]:
        normal = [n for n, m in net.named_modules() if isinstance(m, _BatchNorm)]
        if not normal:
            raise SettingsError(f"FedBN needs batch normalisation; {type(net).__name__} has none")
        names = (name for name, _ in net.named_parameters())
        return frozenset(n for n in names if n.rpartition(".")[0] not in normal)
