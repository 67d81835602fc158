"""Losses are lifted over two lanes before anything trains, where lanes are batched.

`torch.func.vmap` runs a loss once for all lanes, and cannot follow an ``if`` that each of them
would decide in its own way, or an ``.item()``. That shows in training alone, and not in a loss that
is taken of one device.
"""

import torch
from torch import Tensor

from lgfed_core.errors import LgfedError, SettingsError

from ..batched import Batched
from ..phase import Phase, gradients
from .losses import FAULTS


def refuse_unlifted(phase: Phase, two: Tensor) -> None:
    """Raise SettingsError for a loss that lanes cannot take together, of the rows ``two`` [2]."""
    engine, t, (split, _) = Batched(phase), phase.tensors, phase.rows["train"]
    losses = engine.losses
    place = t["shared"].device
    lanes = torch.zeros(2, dtype=torch.long, device=place)
    at = two.to(split.x.device).expand(2, -1)  # [2 lanes, 2 rows]
    for runs, steps in engine.kinds:
        run, peers = lanes + min(runs), phase.method.needs_peers
        for moves, step in steps:
            received, values, others = (
                phase.layout.views(*phase.received(run, lanes).parts) for _ in range(3)
            )
            leaves = {n: v.requires_grad_(n in moves) for n, v in values.items()}
            leaves |= {n: values[n].clone() for n in losses.statistics}
            y = t["labels"][run[:, None], at].long() if "labels" in t else split.y[at]
            rows = (split.x[at], y, torch.full_like(at, 0.5, dtype=split.x.dtype))
            if split.groups is not None:
                rows += (split.groups[at],)
            given = leaves, received, rows, (others, lanes + 2) if peers else ({}, 1)
            try:
                with (
                    torch.enable_grad(),
                    torch.random.fork_rng(devices=[place] if place.type == "cuda" else []),
                ):
                    found = losses.of(step.loss, 0, *given).sum()
                    gradients(found, [leaves[n] for n in moves])
            except LgfedError:
                raise
            except FAULTS as error:
                raise SettingsError(
                    f"the loss of {type(phase.methods[min(runs)]).__name__}, with "
                    f"{type(phase.net).__name__}, cannot be taken for all devices at once, as "
                    "batched lanes do by torch.vmap; in the place of an `if` on tensors, or of "
                    f'.item(), write torch.where, or run with lanes="looped": {error!s:.200}'
                ) from error
