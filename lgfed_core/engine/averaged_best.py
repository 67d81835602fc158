"""How LG-FedAvg is evaluated as released: the devices' best models, averaged after each round."""

import torch

from .accuracy import mean_accuracy, pooled_accuracy
from .batched import Engine
from .trackers import Personal, average_best


class AveragedBest(Personal):
    """After each round, average the devices' best models.

    The models that LG-FedAvg starts from are the first best ones; later models win ties. The
    average of all layers over devices gives ``averaged_new_test_acc``; its shared layers, put
    into the devices' best models (which come from different rounds), give
    ``averaged_local_test_acc``. The table's row is taken at the first peak of the latter: the
    former is looked at where that one has a new peak, and NaN elsewhere, and the best models'
    averaged outputs, which cost what sixty rounds' tests do, are not needed. Keeps ``peak``
    [R], unless it is ``light``.
    """

    best_together = False

    def __init__(self, light: bool = False):
        super().__init__(judge="test", light=light)

    def allocate(self, allocate, phase):
        super().allocate(allocate, phase)
        allocate("peak", len(phase.seeds), here=True).fill_(-1)

    def before(self, engine: Engine):
        self._judge(engine)

    def look(self, round, engine):
        metrics, peak = super().look(round, engine), engine.phase.tensors["peak"]
        average_best(engine.phase)
        local = mean_accuracy(engine, "mean_shared", "best_personal", "test")
        higher, new = local > peak, torch.full_like(local, torch.nan)
        if higher.any():
            pooled = pooled_accuracy(engine, "mean_shared", "mean_personal", "pool")
            new[higher], peak[higher] = pooled[higher], local[higher]
        return metrics | {"averaged_new_test_acc": new, "averaged_local_test_acc": local}
