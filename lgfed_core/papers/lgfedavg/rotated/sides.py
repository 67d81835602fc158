"""What is measured: FedAvg up to a goal; then old devices and newcomers, over rounds."""

import torch
from torch import Tensor

from lgfed_core import require
from lgfed_core.engine.accuracy import accuracies, mean_accuracy, pooled_accuracy
from lgfed_core.engine.batched import Engine
from lgfed_core.engine.trackers import Tracker

SIDES = ("normal", "normal_averaged", "rotated")


class Until(Tracker):
    """A run ends, all its devices stop, when the mean accuracy on validation rows is ``goal``.

    Looked at every so many rounds. Keeps ``goal_round`` [R], 0 for a run that did not get there.
    """

    def __init__(self, goal: float, every: int = 1):
        super().__init__(every)
        self.goal = goal

    def allocate(self, allocate, phase):
        allocate("goal_round", len(phase.seeds), here=True)

    def look(self, round, engine):
        reached = engine.phase.tensors["goal_round"]
        accuracy = mean_accuracy(engine, "shared", "personal", "validation")
        reached[(accuracy.to(reached) >= self.goal) & (reached == 0)] = round
        return {"validation_acc": accuracy}

    def final(self, engine):
        return {
            "goal_round": engine.phase.tensors["goal_round"],
            "local_test_acc": mean_accuracy(engine, "shared", "personal", "test"),
            "new_test_acc": pooled_accuracy(engine, "shared", "personal", "pool"),
        }

    def stopped(self, phase):
        reached = phase.tensors["goal_round"] > 0  # [R]
        return reached[:, None].repeat(1, phase.devices("train"))


class BothSides(Tracker):
    """Accuracy of the old devices and of the newcomers, which are the last ``newcomers`` devices.

    ``normal``: old devices, each with its own model on its own test rows, their mean.
    ``normal_averaged``: one model of the old devices' averaged parameters, on all their test rows.
    ``rotated``: newcomers, each with its own model on its own turned test rows, their mean.

    Those before the first round are in the closing metrics, as ``normal_before`` and so on.
    """

    def __init__(self, newcomers: int = 1, every: int = 1):
        super().__init__(every)
        require.at_least(1, newcomers=newcomers)
        self.newcomers = newcomers

    def allocate(self, allocate, phase):
        allocate("old_personal", len(phase.seeds), phase.layout.size_personal)
        for name in SIDES:
            allocate(f"{name}_before", len(phase.seeds), here=True)

    def before(self, engine):
        for name, value in self._sides(engine).items():
            engine.phase.tensors[f"{name}_before"].copy_(value)

    def look(self, round, engine):
        return self._sides(engine)

    def final(self, engine):
        t = engine.phase.tensors
        before = {f"{name}_before": t[f"{name}_before"] for name in SIDES}
        return self._sides(engine) | before

    def _sides(self, engine: Engine) -> dict[str, Tensor]:
        phase, t = engine.phase, engine.phase.tensors
        old = phase.devices("test") - self.newcomers
        own = accuracies(engine, "shared", "personal", "test")  # [R, K]
        one = own
        if phase.layout.size_personal:
            torch.mean(t["personal"][:, :old], 1, out=t["old_personal"])
            lanes = [(r, k) for r in range(len(phase.seeds)) for k in range(old)]
            one = accuracies(engine, "shared", "old_personal", "test", lanes)
        size = torch.stack([rows.size for rows in phase.rows["test"][1]]).cpu()[:, :old]  # [R, K']
        whole = (one[:, :old] * size).sum(1) / size.sum(1)
        values = own[:, :old].mean(1), whole, own[:, old:].mean(1)
        return dict(zip(SIDES, values, strict=True))
