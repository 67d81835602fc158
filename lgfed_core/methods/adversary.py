"""Two players: an adversary that reads a representation, an encoder that would rather it could not.

The adversary r predicts protected attributes from h = f(x) and always descends its own loss L_r, at
full strength. The encoder f descends task - strength * L_r. There are two ways to play:

* **in turn** (Liang et al. 2019, v1 eqs 10-12 and 21-23): separate steps, each of which moves the
  parameters of one player; no sign is ever flipped.
* **at once** (Ganin & Lempitsky 2015): one step on task + L_r(r(`reverse`(h, strength))).
  Backwards, `reverse` multiplies the gradient by -strength on its way from r to f; r is in front
  of it and sees none of this.

>>> import torch
>>> h = torch.ones(2, requires_grad=True)
>>> (3 * reverse(h, 0.5)).sum().backward()
>>> h.grad
tensor([-1.5000, -1.5000])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor

from lgfed_core import require

if TYPE_CHECKING:  # the methods import this module
    from .interface import Batch


def reverse(h: Tensor, strength: float | Tensor) -> Tensor:
    """``h`` [...] itself; its gradient is multiplied by -strength. With 0 nothing passes.

    h - h is exactly zero, so the values are h to the last bit; plain operations, so that it works
    under `torch.func.vmap`.
    """
    return h.detach() - strength * (h - h.detach())


def unchanged(h: Tensor) -> Tensor:
    """``h`` [...] itself, with its gradient."""
    return h


def adversary_loss(logits: Tensor, batch: Batch, power: float = 1.0) -> Tensor:
    """The loss of an adversary with logits [b, g] for the g binary attributes of ``batch``.

    With B_j the batch mean of the binary cross-entropy for attribute j, the mean over j of B_j^q/q:

    ======  ==============  ==================================================================
    q = 1   mean_j B_j      vanilla: Liang et al. 2019, eq. (7)
    q = 2   mean_j B_j^2/2  squared: Hong et al. 2021 (FADE) as released; half the square *of*
                            the batch mean, not the mean of squares
    ======  ==============  ==================================================================

    Other q generalise (FADE, section 4.2). Raises SettingsError where ``batch`` has no groups
    [b, g], or q is below 1; that groups are 0 or 1 is made sure of by the engine alone.
    """
    require.at_least(1, power=power)  # 1: vanilla, 2: squared
    errors = F.binary_cross_entropy_with_logits(
        logits, batch.attributes(2).to(logits.dtype), reduction="none"
    )  # [b, g]
    means = batch.mean(errors)  # [g]
    return (means if power == 1 else means**power / power).mean()


def group_loss(
    logits: Tensor, batch: Batch, power: float = 1.0, per_sample: bool = False
) -> Tensor:
    """The loss of a discriminator D that guesses the group of each row (FADE, eqs 3, 6 and 7).

    logits: [b, 1] of group 1, a sigmoid for two groups; or [b, E], a softmax for E groups. The
    first column of ``batch.groups`` numbers the groups from 0. With B_i = -log D_g(z_i):

    ===========  =================  ===========================================================
    power of     value              source
    ===========  =================  ===========================================================
    the mean     (mean_i B_i)^q/q   as released, and as eq. (6) reads with q = 2
    each sample  mean_i B_i^q/q     eq. (7) as printed; it is about log D = -B, hence its sign
    ..                              (-1)^(q-1), which eq. (6) lacks
    ===========  =================  ===========================================================

    q = 1 is the vanilla loss in both. D descends this value. Raises SettingsError as
    `adversary_loss` does; that groups are numbered from 0 is made sure of by the engine alone.
    """
    require.at_least(1, power=power)  # 1: vanilla, 2: squared
    group = batch.attributes(max(2, logits.shape[-1]), slice(1))[:, 0]  # [b]
    if logits.shape[-1] == 1:
        each = F.binary_cross_entropy_with_logits(
            logits[:, 0], group.to(logits.dtype), reduction="none"
        )  # [b]
    else:
        each = F.cross_entropy(logits, group, reduction="none")  # [b]
    return batch.mean(each**power) / power if per_sample else batch.mean(each) ** power / power
