"""The engine as a contender."""

from torch import Tensor

from lgfed_core.engine import Federation
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.prepare import prepare
from lgfed_core.engine.processes import checked_workers
from lgfed_core.engine.rounds import round_of
from lgfed_core.engine.trackers import Tracker
from lgfed_core.methods import FedAvg
from lgfed_core.models.layout import joined

from .task import Task


class Ours:
    """The engine, timed per round; workers stay alive between rounds as they do in a run."""

    def __init__(self, federation: Federation, task: Task, method=None, tracker=None, workers=None):
        workers = workers or checked_workers(None)
        self.federation, self.tracker = federation, tracker or Tracker()
        start = joined(federation.net).expand(len(federation.seeds), -1)
        method = method or FedAvg()
        self.phase = prepare(federation, method, task.training, start, self.tracker, workers > 1)
        looped = federation.device.type == "cpu"
        self.engine = Looped(self.phase, workers) if looped else Batched(self.phase)

    def round(self, number: int) -> None:
        lr = self.phase.training.lr
        stopped = self.tracker.stopped(self.phase)
        round_of(self.federation, stopped, self.engine, number, lr)

    def parameters(self, run: int = 0) -> Tensor:
        """What the server of ``run`` has now: [P]."""
        return self.phase.tensors["shared"][run]

    def models(self, run: int = 0) -> Tensor:
        """What each device of ``run`` has now: [K, P]."""
        shared, personal = (self.phase.tensors[name][run] for name in ("shared", "personal"))
        return self.phase.layout.join(shared[None], personal)

    def close(self) -> None:
        """End the workers."""
        self.engine.close()
