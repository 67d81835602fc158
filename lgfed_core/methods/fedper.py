"""FedPer (Arivazhagan et al., 2019): shared layers below, personal layers above.

LG-FedAvg the other way round. A device trains both with one loss, and sends those below.
"""

from dataclasses import dataclass

from .lgfedavg import LGFedAvg


@dataclass(frozen=True, kw_only=True)
class FedPer(LGFedAvg):
    """Averages ``layers``, the base layers; all others, the personalisation layers, stay."""
