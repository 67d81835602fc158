"""What is followed on target users: accuracy of each, and how much their predictions tell."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from lgfed_core.engine import Outcome
from lgfed_core.engine.trackers import Tracker
from lgfed_core.methods import Batch
from lgfed_core.methods.shot import information


class Users(Tracker):
    """Accuracy and information on each device's own test rows, every so many rounds.

    Device 0 is the source. Metrics: ``source_acc``; ``target_acc``, over all target rows;
    ``user1_acc``, ... of each target user (shares); ``information``, nats: H(mean p) - mean H(p) of
    a user's predictions p, mean over target rows. It is computed without labels, so that it may
    choose a model; it is 0 where a user's rows all look alike, or are all unsure.
    """

    def __init__(self, every: int = 1):
        self.every = every

    def after(self, round, rounds, engine):
        return measured(engine) if round % self.every == 0 or round == rounds else {}


def measured(engine) -> dict[str, Tensor]:
    """The metrics of `Users` [R], of the models as they are."""
    split, per_run = engine.phase.rows["test"]
    said = engine.own_outputs("shared", "personal", "test")  # [R, K, n_max, C]
    found: dict[str, list[float]] = {}
    for r, rows in enumerate(per_run):
        right, told, size = (np.zeros(len(rows)) for _ in range(3))
        for k in range(len(rows)):
            mine = rows.of(k)
            outputs, y = said[r, k, : len(mine)], split.y[mine]
            right[k], size[k] = float((outputs.argmax(-1) == y).float().mean()), len(mine)
            told[k] = -float(information(outputs, Batch(outputs, y)))
        weight = size[1:] / size[1:].sum()
        now = {"source_acc": right[0], "target_acc": weight @ right[1:]}
        now |= {f"user{k}_acc": right[k] for k in range(1, len(rows))}
        for name, value in (now | {"information": weight @ told[1:]}).items():
            found.setdefault(name, []).append(float(value))
    return {name: torch.tensor(values) for name, values in found.items()}


@torch.no_grad()
def embedded(net: nn.Module, outcome: Outcome, x: Tensor, run: int = 0) -> Tensor:
    """What the server's model of a run says of rows x [n, width]: logits, then features."""
    t = outcome.tensors
    values = outcome.layout.views(t["shared"][run], t["personal"][run, 0])
    return functional_call(net.eval(), values, x, {"features": True})
