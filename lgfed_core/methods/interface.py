"""What a federated method is: four choices, each with the plainest default.

The engine (`federation.run`) is the same for all methods. A method states

* **share**: which parameters the server averages,
* **objective**: what a device minimises on a batch, in one step or several,
* **participation**: who takes part in a round,
* **merge**: how the server combines what was sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core.errors import SettingsError

from .privacy import Privacy


@dataclass(frozen=True)
class Batch:
    """Some rows of one device."""

    x: Tensor  # [b, ...]
    y: Tensor  # [b]
    weight: Tensor | None = None  # [b], sums to one, 0 on padding; None stands for 1/b everywhere
    groups: Tensor | None = None  # [b, g], protected attributes where the data set has some

    def mean(self, values: Tensor) -> Tensor:
        """The mean over rows of ``values`` [b, ...]."""
        if self.weight is None:
            return values.mean(0)
        return torch.tensordot(self.weight, values, 1)


@dataclass(frozen=True)
class Local:
    """One device in the middle of a round, as its objective sees it."""

    net: Callable[..., Tensor]  # inputs [b, ...] -> outputs [b, classes]; more arguments pass on
    params: dict[str, Tensor]  # current values, differentiable
    received: dict[str, Tensor]  # values at the start of the round, constant
    others: dict[str, Tensor] | None = None  # mean of the other participants' models then
    participants: int | Tensor = 1  # of this round; like ``others`` if the method `compares`
    round: int = 0  # the number of this round
    run: int | Tensor = 0  # which of the runs that train together, for settings of their own


class Step(NamedTuple):
    """A gradient step on a batch: what is minimised, and which parameters move (None: all).

    when: whether a device takes this step in this round, from a number between 0 and 1 that it has
        drawn for the round; None: always.
    """

    loss: Callable[[Local, Batch], Tensor]
    params: frozenset[str] | None = None
    when: Callable[[float], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class Method:
    """Defaults: share everything, cross-entropy, a uniform fraction takes part, n_k/n weights."""

    fraction: float = 0.1  # C of McMahan et al.: the share of devices in a round
    weighted: bool = True  # True: weights n_k/n; False: 1/m, as LG-FedAvg's code has it

    compares: ClassVar[bool] = False  # whether the objective reads the other devices' models
    keeps_part: ClassVar[bool] = False  # whether `keep` says more than "what was trained"
    rests: ClassVar[bool] = False  # whether batch normalisation keeps its statistics in training
    privacy: ClassVar[Privacy | None] = None  # clipping and noise of what a device sends

    def __post_init__(self):
        if not 0 < self.fraction <= 1:
            raise SettingsError(f"fraction is {self.fraction}; it must lie in (0, 1]")

    def shared(self, net: nn.Module) -> frozenset[str]:
        """Names of the parameters that are averaged.

        Running statistics of batch normalisation are named in the same way; where a method does not
        name them, they stay on the device.
        """
        return frozenset(name for name, _ in net.named_parameters())

    def loss(self, local: Local, batch: Batch) -> Tensor:
        """The scalar one device minimises on a batch."""
        return cross_entropy(local.net(batch.x), batch)

    def steps(self, net: nn.Module) -> Sequence[Step]:
        """What a device does with each batch, in order: by default one step on all parameters."""
        return (Step(self.loss),)

    def cohort(self, devices: int) -> int:
        """m, the largest number of devices in one round: max(1, C K)."""
        return max(1, int(self.fraction * devices + 1e-9))

    def participants(
        self, rng: np.random.Generator, devices: int, presence: np.ndarray | None = None
    ) -> np.ndarray:
        """Indices of the devices in this round, at most `cohort` of them, sorted.

        presence: [K], with which probability each is drawn (one after the other, without
            replacement); None: alike.

        Raises SettingsError where fewer devices than `cohort` can be drawn at all.
        """
        m = self.cohort(devices)
        if presence is not None:
            if np.count_nonzero(presence) < m:
                raise SettingsError(
                    f"{m} devices are drawn a round, but only {np.count_nonzero(presence)} have a "
                    "presence above zero; lower the fraction"
                )
            total = presence.sum(dtype=float)  # numpy wants 1 to eight digits
            presence = presence if abs(total - 1) < 1e-9 else presence.astype(float) / total
            return np.sort(rng.choice(devices, m, replace=False, p=presence))
        return np.arange(devices) if m == devices else np.sort(rng.permutation(devices)[:m])

    def merge(self, before: Tensor, uploads: Tensor, rows: Tensor) -> Tensor:
        """New shared vector [P_s] from ``before`` [P_s], ``uploads`` [m, P_s], ``rows`` [m].

        ``rows`` is the number of training rows behind each upload.
        """
        if not self.weighted:
            return uploads.mean(0)
        return (rows / rows.sum()).to(uploads) @ uploads

    def keep(self, before: Tensor, trained: Tensor, rows: Tensor) -> Tensor:
        """What the participants keep of their own parameters: ``trained`` [m, P_p], by default.

        ``before`` [m, P_p] are their values at the start of the round, ``rows`` [m] as in `merge`.
        Called only where ``keeps_part`` is set.
        """
        return trained


def cross_entropy(outputs: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy of outputs [b, classes] against the labels of ``batch``."""
    if batch.weight is None:
        return F.cross_entropy(outputs, batch.y)
    return batch.mean(F.cross_entropy(outputs, batch.y, reduction="none"))
