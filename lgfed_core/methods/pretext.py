"""Self-supervised LG-FedAvg: labels made of the pictures themselves.

A pretext task is a list of ways to rearrange a picture's pixels; one is drawn for each row of a
batch, and the auxiliary network has to say from h which:

=========  =======  ==========================================================================
task       answers  source
=========  =======  ==========================================================================
jigsaw     24       all orders of a picture's 2 x 2 tiles; Noroozi & Favaro (2016) have 3 x 3
..                  tiles, in a chosen few of their orders
rotation   4        quarter turns, counter-clockwise; Gidaris et al. (2018)
=========  =======  ==========================================================================

The papers name jigsaw solving in Figure 1 and train none. Answers are drawn as dropout is: by
PyTorch's generator, which the engine seeds for each device and round (looped lanes), or for each
stack and round (batched lanes).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import isqrt
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core import require
from lgfed_core.errors import SettingsError

from .auxiliary import Auxiliary, labelled
from .interface import Batch, Local, Step

ANSWERS = {"jigsaw": 24, "rotation": 4}


@dataclass(frozen=True, kw_only=True)
class Pretext(Auxiliary):
    """LG-FedAvg whose local models also solve ``task``, of every row with a label or without."""

    task: str

    CHOICES: ClassVar = {"task": ANSWERS}

    def steps(self, net: nn.Module) -> Sequence[Step]:
        steps = super().steps(net)
        if net.outputs != ANSWERS[self.task]:
            raise SettingsError(
                f"{self.task} has {ANSWERS[self.task]} answers, the auxiliary network "
                f"{net.outputs} outputs; build it with outputs={ANSWERS[self.task]}"
            )
        return steps

    def loss(self, local: Local, batch: Batch) -> Tensor:
        task = labelled(local.net(batch.x), batch)
        answers = torch.randint(ANSWERS[self.task], batch.y.shape, device=batch.x.device)  # [b]
        puzzles = rearranged(batch.x, self.task, answers)
        said = local.net(puzzles, own=True)  # [b, answers]
        errors = F.cross_entropy(said, answers, reduction="none")  # [b]
        return task + self.weight * batch.mean(errors)


def rearranged(x: Tensor, task: str, answers: Tensor) -> Tensor:
    """Square pictures x [b, side^2] or [b, ..., side, side], in the orders ``answers`` [b].

    Raises SettingsError for rows that are no square pictures, an odd side for jigsaw, or a task
    that is none of `ANSWERS`; answers go from 0 to one less than the task has there.
    """
    require.one_of("task", task, ANSWERS)
    pixels = x.shape[-1] if x.dim() == 2 else x.shape[-2] * x.shape[-1]
    side = isqrt(pixels)
    odd = task == "jigsaw" and side % 2
    if side**2 != pixels or (x.dim() > 2 and x.shape[-1] != side) or odd:
        raise SettingsError(
            f"rows of shape {list(x.shape[1:])} are no square pictures for {task}; it needs "
            "[side, side] or [side * side] pixels, and jigsaw an even side"
        )
    order = orders(task, side).to(x.device)[answers]  # [b, side^2]
    channels = x.reshape(len(x), -1, pixels)  # [b, c, side^2]
    moved = channels.gather(2, order[:, None].expand(-1, channels.shape[1], -1))
    return moved.reshape(x.shape)


@lru_cache
def orders(task: str, side: int) -> Tensor:
    """Where each pixel of a rearranged picture comes from: int64 [answers, side^2]."""
    place = torch.arange(side**2).view(side, side)
    if task == "rotation":
        return torch.stack([place.rot90(turns).flatten() for turns in range(ANSWERS[task])])
    half = side // 2
    tiles = [t for row in place.split(half) for t in row.split(half, 1)]  # left to right, down
    found = []
    for a, b, c, d in permutations(tiles):
        found.append(torch.cat([torch.cat([a, b], 1), torch.cat([c, d], 1)]).flatten())
    return torch.stack(found)
