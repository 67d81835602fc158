"""Differential privacy for what a device sends: clip the change, add Gaussian noise.

FADE (Hong et al. 2021, section 3) refers to McMahan et al. (2018). Here every device adds the noise
itself, before it sends, so that nobody else has to be trusted; on a node of Flower it draws what no
seed of the run gives. `epsilon` comes from Opacus, an optional package.
"""

import math
import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lgfed_core import require
from lgfed_core.errors import SettingsError

LARGE = 50.0  # an epsilon that protects nobody; a bound on it will do, and takes no memory
NOTHING, ANY_TWO = 1.0, 2.0  # how far apart two changes are at most, in lengths C: `epsilon`


class Treatment(Protocol):
    """What is done to an upload before it leaves the device; `Method.upload` lists them."""

    def treat(self, before: Tensor, upload: Tensor, rng: np.random.Generator) -> Tensor:
        """What leaves the device instead of ``upload`` [P_s]; ``before`` [P_s] is what it got.

        ``rng`` is the device's own, anew in each round.
        """


@dataclass(frozen=True)
class Privacy:
    """The Gaussian mechanism on a device's change of the shared parameters.

    clip: C, the largest Euclidean length of the change; a longer one is scaled down.
    noise: sigma, the noise multiplier: each number gets noise of standard deviation sigma C.
    """

    clip: float
    noise: float

    def __post_init__(self):
        require.numbers(clip=self.clip, noise=self.noise)
        if not (self.clip > 0 and self.noise >= 0):
            raise SettingsError(
                f"clip is {self.clip} and noise {self.noise}; the first must be positive, the "
                "second at least 0"
            )

    def treat(self, before: Tensor, upload: Tensor, rng: np.random.Generator) -> Tensor:
        """The change from ``before`` to ``upload`` [P_s], clipped and blurred; see `Treatment`."""
        change = upload - before  # [P_s]
        change = change * (self.clip / change.norm().clamp(min=1e-12)).clamp(max=1)
        noise = torch.from_numpy(rng.standard_normal(len(change), dtype=np.float32))
        return before + change + self.noise * self.clip * noise.to(change)

    def epsilon(self, uploads: int, delta: float, apart: float = 1.0) -> float:
        """The epsilon of one device towards the server, after it has sent ``uploads`` times.

        For neighbouring federations that differ in whether this device's data exist at all: without
        them its change is zero, so that the two are at most C apart (`NOTHING`). Between any two
        changes, one device's data and another's, it is 2C (`ANY_TWO`), as of half the noise.
        Sampling amplifies nothing, as the server sees who sends.

        apart: the distance of the two, in units of C. Infinite without noise. Raises SettingsError
        where Opacus is not installed.
        """
        if not (isinstance(uploads, Integral) and uploads >= 0 and 0 < delta < 1):
            raise SettingsError(
                f"uploads is {uploads}, delta {delta}; they are a whole number from 0 and a "
                "probability between 0 and 1"
            )
        if not 0 < apart < math.inf:
            raise SettingsError(f"apart is {apart}; it must be positive and finite")
        return spent(self.noise / apart, 1.0, uploads, delta)


def spent(noise: float, sampling: float, times: int, delta: float) -> float:
    """The epsilon of a Gaussian mechanism of sensitivity 1, by the accountant of Opacus.

    noise: its deviation. sampling: the probability that a device is drawn at all (Poisson), each of
    so many ``times``. Raises SettingsError where Opacus is not installed.
    """
    if noise == 0 or times == 0:
        return 0.0 if times == 0 else float("inf")
    try:
        from opacus.accountants import PRVAccountant, RDPAccountant
    except ImportError as error:
        raise SettingsError("an epsilon needs the package opacus: pip install opacus") from error
    bound, tight = RDPAccountant(), PRVAccountant()
    bound.history = tight.history = [(noise, sampling, times)]
    with warnings.catch_warnings(), np.errstate(divide="ignore"):  # log(1 - sampling rate)
        warnings.simplefilter("ignore")  # a bound may be loose
        found = float(bound.get_epsilon(delta))
        return found if found > LARGE else float(tight.get_epsilon(delta))
