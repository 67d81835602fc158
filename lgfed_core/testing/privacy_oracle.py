"""Does a private federated average do what it says? An oracle for any implementation.

Give it a function ``release(uploads, rng) -> average``: uploads [m, P] are the devices' changes,
the average [P] is what the server makes of them (each upload clipped to the length C, summed, noise
of deviation z C added once, divided by m; McMahan et al. 2018). The function is called many times
and its answers are held against that text:

=================  ===========================================  ==================================
check              what is sent                                 what must hold
=================  ===========================================  ==================================
noise              nothing (zeros)                              deviation z C / m, by chi-square
fresh noise        nothing                                      no two calls have the same
short changes      equal changes, shorter than C                they come back, as they were
clipping           one huge upload                              moves the average by C / m
clipped whole      one huge upload, longer in one layer         it is not turned
sampling           one huge upload                              in a share q of the calls
epsilon            nothing                                      the claim is no less than Opacus'
=================  ===========================================  ==================================

With sampling, ``release`` draws who takes part, each device with probability q (Poisson, or a fixed
share of them), and divides by the expected number m; epsilon is that of Poisson sampling.

An oracle can refute and cannot prove: a right implementation fails with a probability of about
``alpha``, a wrong one may have a fault of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lgfed_core.errors import LgfedError, SettingsError
from lgfed_core.methods.privacy import spent
from lgfed_core.require import numbers, whole

Release = Callable[[NDArray, np.random.Generator], NDArray]


class PrivacyError(LgfedError):
    """A private average is not what it claims to be; says which check failed, and by how much."""


@dataclass(frozen=True)
class Check:
    """One line of the report: ``found`` must lie between ``low`` and ``high``."""

    name: str
    found: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return bool(self.low <= self.found <= self.high)

    def __str__(self) -> str:
        return f"{self.name}: {self.found:.4g}, must lie in [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Claimed:
    """What an implementation says of itself.

    clip: C. noise: z, the noise multiplier. devices: m, by which the sum is divided (with sampling,
    the expected number). lengths: of the layers that make up an upload, P in all. sampling: q, the
    probability of a device to be in a round; 1: everybody. epsilon: after so many rounds, at delta.
    """

    clip: float
    noise: float
    devices: int
    lengths: Sequence[int] = (300, 100)
    sampling: float = 1.0
    epsilon: float | None = None
    rounds: int = 1
    delta: float = 1e-5

    def __post_init__(self):
        numbers(clip=self.clip, noise=self.noise, sampling=self.sampling)
        whole(devices=self.devices)
        good = self.clip > 0 and self.noise > 0 and 0 < self.sampling <= 1 and self.devices > 0
        if not good or len(self.lengths) < 2 or min(self.lengths) < 2:
            raise SettingsError(
                f"{self}: clip, noise and devices are above 0, sampling in (0, 1], and there are "
                "two layers or more, of two numbers or more"
            )
        if abs(self.devices / self.sampling - self.everybody) > 1e-6:
            raise SettingsError(
                f"devices is {self.devices}, sampling {self.sampling}: no whole number of devices "
                "has so many drawn of it, as expected; give sampling times a whole number"
            )

    @property
    def everybody(self) -> int:
        """How many devices there are, of which ``devices`` are expected in a round."""
        return max(1, round(self.devices / self.sampling))


def check(
    release: Release, claimed: Claimed, calls: int = 200, seed: int = 0, alpha: float = 1e-3
) -> list[Check]:
    """All checks, those that fail included; ``calls`` for each statistical one.

    alpha: how often a right implementation may fail any of them (Bonferroni).
    """
    if calls < 2:
        raise SettingsError(f"calls is {calls}; statistics need 2 at least, and better hundreds")
    bench = _Bench(release, claimed, calls, alpha / 6, np.random.default_rng(seed))
    found = [*bench.noise(), bench.short(), *bench.huge()]
    if claimed.epsilon is not None:
        due = spent(claimed.noise, claimed.sampling, claimed.rounds, claimed.delta)
        found.append(Check("epsilon claimed", claimed.epsilon, 0.98 * due, float("inf")))
    return found


def require(release: Release, claimed: Claimed, **how) -> list[Check]:
    """`check`, raising PrivacyError that names everything that does not hold."""
    found = check(release, claimed, **how)
    if wrong := [str(line) for line in found if not line.holds]:
        raise PrivacyError(f"this average is not as private as claimed: {'; '.join(wrong)}")
    return found


@dataclass(frozen=True)
class _Bench:
    """The statistical checks, each at significance ``level``."""

    release: Release
    claimed: Claimed
    calls: int
    level: float
    rng: np.random.Generator

    def noise(self) -> list[Check]:
        """Of nothing: as much noise as is said, and new noise each time."""
        drawn = self._answers(self._nothing())  # [calls, P]
        n, size = drawn.size, drawn.shape[1]
        low, high = (stats.chi2.ppf(p, n) / n for p in (self.level / 2, 1 - self.level / 2))
        rms = float(np.sqrt(np.mean(drawn**2)))
        unit = drawn / np.maximum(np.linalg.norm(drawn, axis=1, keepdims=True), 1e-300)
        alike = np.abs(unit @ unit.T - np.eye(self.calls)).max()  # of any two calls
        pairs = self.calls * (self.calls - 1) / 2
        limit = np.tanh(stats.norm.isf(self.level / pairs / 2) / (size - 3) ** 0.5)
        return [
            Check("noise, as a share of z C / m", rms / self._deviation, low**0.5, high**0.5),
            Check("fresh noise, correlation of two calls", float(alike), 0.0, float(limit)),
        ]

    def short(self) -> Check:
        """Of equal changes that need no clipping: they come back."""
        uploads, half = self._nothing(), 0.5 * self.claimed.clip
        uploads[:, 0] = half
        back = self._answers(uploads)[:, 0].mean() / half
        varies = (1 - self.claimed.sampling) / self.claimed.devices  # of how many are drawn
        slack = self._far(((self._deviation / half) ** 2 + varies) ** 0.5)
        return Check("short changes, as a share of themselves", float(back), 1 - slack, 1 + slack)

    def huge(self) -> list[Check]:
        """Of one change far too long, and longer in one layer: as long as C, and not turned."""
        c, uploads = self.claimed, self._nothing()
        one, two = np.zeros(uploads.shape[1]), np.zeros(uploads.shape[1])
        one[: c.lengths[0]], two[c.lengths[0] :] = 1, 1
        one, two = (v * self.rng.choice([-1, 1], len(v)) / np.linalg.norm(v) for v in (one, two))
        way, across = 0.96 * one + 0.28 * two, 0.28 * one - 0.96 * two  # of length 1
        uploads[0] = 1e4 * c.clip * way
        told = self._answers(uploads) / (c.clip / c.devices)  # [calls, P]
        seen, blur = told @ way, c.noise  # 1 where the device is there, and noise
        slack = self._far((blur**2 + c.sampling * (1 - c.sampling)) ** 0.5)
        low, high = c.sampling - slack, c.sampling + slack
        aside = self._far(blur)
        found = [
            Check("clipping, what a huge upload adds in C / m", float(seen.mean()), low, high),
            Check("clipped whole, turned by", float((told @ across).mean()), -aside, aside),
        ]
        if c.sampling < 1 and blur <= 1 / 6:  # else one call does not say who was there
            ends = self.level / 2, 1 - self.level / 2
            low, high = stats.binom.ppf(ends, self.calls, c.sampling) / self.calls
            found.append(Check("sampling, the share", float((seen > 0.5).mean()), low, high))
        return found

    @property
    def _deviation(self) -> float:
        return self.claimed.noise * self.claimed.clip / self.claimed.devices

    def _nothing(self) -> NDArray:
        return np.zeros((self.claimed.everybody, sum(self.claimed.lengths)))

    def _answers(self, uploads: NDArray) -> NDArray:
        """[calls, P]. Raises PrivacyError for an answer of another shape, or not finite."""
        found = np.stack([self.release(uploads.copy(), self.rng) for _ in range(self.calls)])
        if found.shape[1:] != uploads.shape[1:] or not np.isfinite(found).all():
            raise PrivacyError(
                f"release gives {list(found.shape[1:])} of uploads {list(uploads.shape)}, or what "
                f"is not finite; it must give [{uploads.shape[1]}] numbers"
            )
        return found

    def _far(self, deviation: float) -> float:
        """How far a mean over calls may lie from what it should be."""
        return float(stats.norm.isf(self.level / 2) * deviation / self.calls**0.5)
