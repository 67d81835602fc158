"""What is measured: the devices' accuracy over rounds, and one model on the way."""

from lgfed_core.engine.accuracy import mean_accuracy
from lgfed_core.engine.trackers import Tracker


class Watch(Tracker):
    """Mean accuracy of the devices, each with its own model on its own rows.

    Looked at every so many rounds, and in the last. Keeps the shared parameters of round ``start``
    as ``at_start`` [R, P_s], unless it is 0.
    """

    def __init__(self, every: int = 1, start: int = 0):
        super().__init__(every)
        self.start = start

    def allocate(self, allocate, phase):
        if self.start:
            allocate("at_start", *phase.tensors["shared"].shape)

    def after(self, round, rounds, engine):
        if round == self.start:
            engine.phase.tensors["at_start"].copy_(engine.phase.tensors["shared"])
        return super().after(round, rounds, engine)

    def look(self, round, engine):
        return {
            f"{said}_acc": mean_accuracy(engine, "shared", "personal", rows)
            for said, rows in (("validation", "validation"), ("local_test", "test"))
        }

    def final(self, engine):
        return {"validation_acc": mean_accuracy(engine, "shared", "personal", "validation")}
