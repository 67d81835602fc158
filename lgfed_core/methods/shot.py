"""SHOT (Liang, Hu & Feng, ICML 2020): adaptation without the source's data.

The classifier f is frozen; the encoder moves so that target rows fit it. With p_i = softmax f(z_i),

    L = a (mean_i H(p_i) - H(mean_i p_i))  +  r CE(f(z), y'),          (eqs 3, 4, 7)

sure of each row, of all classes together (information maximisation), and true to pseudo-labels y':
the nearest of the classes' centroids, weighted by p, then once more by the labels themselves
(eqs 5, 6). The source's device, where there is one, goes on with its own labels.

FADE's text takes SHOT's own parameters (a = 1, r = 0.3). Its released code multiplies the first
term by zero and has r = 0.1, and counts classes with more than ten rows alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core.errors import SettingsError

from .cdan import CDAN, entropy
from .dann import DANN
from .fade import DISCRIMINATOR, known
from .interface import Batch, Step

CLASSIFIER = "classifier."  # how the names of its parameters begin


@dataclass(frozen=True, kw_only=True)
class SHOT(DANN):
    """SHOT on devices whose data have no labels; ``opt_out=1`` (the default) is FedAvg-SHOT.

    With ``opt_out=0`` the game of DANN is played beside it (DANN+SHOT). Rows of group 0 are the
    source's. information: a. relabelled: r. every: rounds between two pseudo-labellings. least: a
    class needs more than so many predicted rows to have a centroid. width: of the network's
    features.
    """

    information: float = 1.0
    relabelled: float = 0.3
    every: int = 20
    least: int = 0
    width: int = 256
    opt_out: float = 1.0

    LEAST: ClassVar = {"information": 0, "relabelled": 0, "every": 1, "least": 0, "width": 1}

    def steps(self, net: nn.Module) -> Sequence[Step]:
        """Those of FADE, without the classifier."""
        every = [n for n, _ in net.named_parameters()]
        names = [n for n in every if not n.startswith(CLASSIFIER)]
        if len(names) == len(every):
            raise SettingsError(
                f"{type(net).__name__} has no part called classifier, which "
                f"{type(self).__name__} leaves as it is"
            )
        encoder = frozenset(n for n in names if not n.startswith(DISCRIMINATOR))
        kinds = {True: frozenset(names), False: encoder}
        return [step._replace(params=kinds[step.params is None]) for step in super().steps(net)]

    def relabel(self, round: int) -> Callable[[Tensor], Tensor] | None:
        due = (round - self.start) % self.every == 0
        return partial(pseudo_labels, least=self.least, width=self.width) if due else None

    def learnt(self, outputs: Tensor, batch: Batch) -> Tensor:
        if batch.groups is None:
            raise SettingsError("SHOT needs groups: 0 for the source's rows, another for others")
        weight = torch.full_like(outputs[:, 0], 1 / len(outputs))
        weight = weight if batch.weight is None else batch.weight  # [b]
        target = weight * (batch.groups[:, 0] != 0)
        # where a device holds rows of one group, one of the two sums is empty
        own = known(outputs, Batch(batch.x, batch.y, weight - target), self.smoothing)
        mine = Batch(batch.x, batch.y, target)
        sure = self.information * information(outputs, mine)
        return own + self.relabelled * known(outputs, mine) + sure


@dataclass(frozen=True, kw_only=True)
class CDANSHOT(SHOT, CDAN):
    """CDAN and SHOT together, FADE's CDAN+SHOT."""

    opt_out: float = 0.0


def information(outputs: Tensor, batch: Batch) -> Tensor:
    """mean_i H(p_i) - H(mean_i p_i) of outputs [b, C]: minus the information of rows on classes.

    Where weights sum to s below 1, as other rows of a batch count elsewhere, s times that.

    >>> sure = torch.tensor([[50.0, 0.0], [0.0, 50.0]])  # two rows, two classes: log 2
    >>> information(sure, Batch(sure, torch.tensor([-1, -1])))
    tensor(-0.6931)
    """
    share = batch.mean(torch.ones_like(outputs[:, 0]))  # of rows that count
    p = batch.mean(outputs.softmax(-1)) / share.clamp(min=1e-12)  # [C], the mean of those
    return batch.mean(entropy(outputs)) + share * (p * (p + 1e-8).log()).sum()


def pseudo_labels(said: Tensor, least: int = 0, width: int = 256) -> Tensor:
    """The class of the nearest centroid (cosine), twice: int64 [n].

    said: logits and features side by side [n, C + width]. least: only classes with more than so
    many predicted rows have a centroid; without any, the predictions stay.

    >>> z = torch.tensor([[1.0, 0.1], [0.9, 0.0], [0.0, 1.0], [0.1, 0.9]])
    >>> outputs = torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 4.0], [0.0, 4.0]])
    >>> pseudo_labels(torch.cat([outputs, z], 1), width=2)  # row 1 lies with row 0
    tensor([0, 0, 1, 1])
    """
    if said.shape[1] < width + 2:
        raise SettingsError(
            f"width is {width}, of {said.shape[1]} logits and features; it is that of the features"
        )
    outputs, z = said[:, :-width], said[:, -width:]
    p = outputs.softmax(-1)  # [n, C]
    label = p.argmax(-1)
    kept = torch.bincount(label, minlength=p.shape[1]) > least  # [C]
    if not kept.any():
        return label
    z = F.normalize(F.pad(z, (0, 1), value=1.0), dim=-1)  # [n, d + 1]
    for _ in range(2):
        centroid = p.T @ z / (p.sum(0)[:, None] + 1e-8)  # [C, d + 1]
        near = z @ F.normalize(centroid, dim=-1).T  # [n, C], cosine
        label = near.masked_fill(~kept, -2.0).argmax(-1)
        p = F.one_hot(label, p.shape[1]).to(z)
    return label
