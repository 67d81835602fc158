"""Who takes part in a round: a share of the devices, each as often as it is there."""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
import torch
from torch import Tensor

from lgfed_core import require
from lgfed_core.errors import SettingsError


@dataclass(frozen=True, eq=False)
class Participation:
    """How many of K devices take part in a round, and which.

    fraction: C of McMahan et al. (2017), the share of devices in a round; by default everybody.
    availability: [R, K], how probable it is that a device is drawn, for each run; None: all alike.
    keep_out: what becomes of a device that sends a NaN or an infinite number, or goes too far.
        False: its run ends there. True: it alone is out of that round, and its parameters are as
        before it; the others go on. Either way it is named in a warning, and never averaged.
    farthest: how far is too far: the largest distance (2-norm) of what a device sends from what it
        received. By default every finite number is averaged, however large.

    Raises SettingsError for a fraction outside (0, 1], a ``farthest`` that is not above zero, or
    probabilities that do not sum to 1.
    """

    fraction: float = 1.0
    availability: Tensor | None = None
    keep_out: bool = False
    farthest: float = math.inf

    def __post_init__(self):
        require.share(fraction=self.fraction)
        if not isinstance(self.farthest, Real) or not self.farthest > 0:
            raise SettingsError(f"farthest is {self.farthest!r}; it must be above 0")
        if self.availability is not None:
            object.__setattr__(self, "availability", torch.as_tensor(self.availability))
            sums = self.availability.double().sum(-1)
            one = torch.allclose(sums, torch.ones_like(sums))
            if not one or (self.availability < 0).any():
                raise SettingsError(
                    f"availability has rows that sum to {sums.tolist()}; nothing can be negative, "
                    "and each run's must sum to 1"
                )

    def cohort(self, devices: int) -> int:
        """m, the largest number of ``devices`` in one round: max(1, C K)."""
        return max(1, int(self.fraction * devices + 1e-9))

    def chosen(self, rng: np.random.Generator, devices: int, run: int = 0) -> np.ndarray:
        """Indices of the devices in this round, `cohort` of them, sorted.

        With an availability they are drawn one after the other, without replacement. Raises
        SettingsError where fewer devices than `cohort` can be drawn at all.
        """
        m = self.cohort(devices)
        if self.availability is None:
            return np.arange(devices) if m == devices else np.sort(rng.permutation(devices)[:m])
        there = self.availability[run].cpu().numpy()  # [K]
        if np.count_nonzero(there) < m:
            raise SettingsError(
                f"{m} devices are drawn a round, but only {np.count_nonzero(there)} have an "
                "availability above zero; lower the fraction"
            )
        total = there.sum(dtype=float)  # numpy wants 1 to eight digits
        there = there if abs(total - 1) < 1e-9 else there.astype(float) / total
        return np.sort(rng.choice(devices, m, replace=False, p=there))
