"""What is measured while a run goes on, and which models are remembered.

A tracker is called after every round. It may keep tensors of its own (saved with the run) and
may tell devices to stop. Test data are looked at for the record; which of them a *selection*
uses is the difference between the two protocols:

* `as_described`: models are chosen on validation rows;
* `as_released`: the authors' code chooses on test rows, three times over: the FedAvg checkpoint,
  the best model of each device, and the round.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from lgfed_core import require
from lgfed_core.errors import SettingsError

from .accuracy import accuracies, ensemble, mean_accuracy, pooled_accuracy
from .batched import Engine
from .checks.rows import refuse_lacking
from .memory import to_device
from .phase import Phase, places


class Tracker:
    """Measures nothing, remembers nothing, stops nobody; looks every so many rounds, and last."""

    every: int = 1  # rounds between two looks

    def __init__(self, every: int = 1):
        require.whole(every=every)
        require.at_least(1, every=every)
        self.every = every

    def allocate(self, allocate: Callable[..., Tensor], phase: Phase) -> None:
        """Reserve tensors with ``allocate(name, *shape)``; they are zero, and checkpointed.

        With ``here=True`` they are on the CPU even if models are not: numbers that decide
        something, for which a GPU would have to be asked.
        """

    def before(self, engine: Engine) -> None:
        """Called once, before the first round."""

    def after(self, round: int, rounds: int, engine: Engine) -> dict[str, Tensor]:
        """Metrics [R] after round ``round`` of ``rounds`` (counted from one); {} when not due."""
        return self.look(round, engine) if self.due(round, rounds) else {}

    def due(self, round: int, rounds: int) -> bool:
        """Whether to look after round ``round`` of ``rounds``."""
        return round % self.every == 0 or round == rounds

    def look(self, round: int, engine: Engine) -> dict[str, Tensor]:
        """Metrics [R] of the models as they are after round ``round``."""
        return {}

    def final(self, engine: Engine) -> dict[str, Tensor]:
        """Metrics [R] that are too expensive to compute every round, once after the last."""
        return {}

    def lasts(self, name: str) -> bool:
        """Whether the tensor ``name`` is kept once the run is complete."""
        return True

    def stopped(self, phase: Phase) -> Tensor | None:
        """Which devices no longer train: bool [R, K], or None for nobody."""
        return None


class Global(Tracker):
    """Follows one server model: accuracy on the whole test set and on the devices' own rows.

    On the whole test set, what devices have for themselves is averaged over them, if there is any.

    ``snapshots`` names round counts B at which the model is stored as ``at_B`` [R, P_s]: the model
    of that round, or (``best_on_test``) the best on the whole test set among the first B rounds.
    The best model on these, or on validation rows, is kept as ``best`` [R, P_s], with what devices
    had for themselves then, ``best_personal`` [R, K, P_p], if anything. A run that diverged before
    a snapshot, or before the first look, leaves its last model there. Raises SettingsError for a
    snapshot that the run does not reach, or that is none of its rounds.
    """

    def __init__(self, snapshots: tuple[int, ...] = (), best_on_test=False, every: int = 1):
        super().__init__(every)
        numbers = {f"snapshot {i}": n for i, n in enumerate(snapshots)}
        require.whole(**numbers)
        require.at_least(1, **numbers)
        self.snapshots, self.best_on_test = tuple(snapshots), best_on_test

    def allocate(self, allocate, phase):
        refuse_lacking(phase, *(() if self.best_on_test else ("validation", "test")))
        runs, size = phase.tensors["shared"].shape
        allocate("best", runs, size)
        allocate("best_accuracy", runs, here=True).fill_(-1)
        if own := phase.layout.size_personal:
            allocate("best_personal", runs, phase.tensors["personal"].shape[1], own)
            allocate("mean_personal", runs, own)
        for budget in dict.fromkeys(self.snapshots):  # shrunk budgets may be the same
            allocate(f"at_{budget}", runs, size)

    def after(self, round, rounds, engine):
        if max(self.snapshots, default=0) > rounds:
            raise SettingsError(f"snapshots {self.snapshots} are asked of {rounds} rounds")
        metrics, t = super().after(round, rounds, engine), engine.phase.tensors
        if round in self.snapshots:
            t[f"at_{round}"].copy_(t["best" if self.best_on_test else "shared"])
        return metrics

    def due(self, round, rounds):
        return super().due(round, rounds) or round in self.snapshots

    def look(self, round, engine):
        t, metrics = engine.phase.tensors, {}
        judged = metrics["new_test_acc"] = self._pooled(engine, "shared", "personal")
        if not self.best_on_test:
            metrics["local_test_acc"] = mean_accuracy(engine, "shared", "personal", "test")
            judged = mean_accuracy(engine, "shared", "personal", "validation")
            metrics["validation_acc"] = judged
        better = judged > t["best_accuracy"]
        t["best_accuracy"][better] = judged[better].to(t["best_accuracy"])
        put(t, better, best="shared", best_personal="personal")
        return metrics

    def final(self, engine):
        t = engine.phase.tensors
        unseen = t["best_accuracy"] < 0  # runs that had ended before the first look
        put(t, unseen, best="shared", best_personal="personal")
        for at in (t[f"at_{budget}"] for budget in self.snapshots):
            never = (at == 0).all(1)  # of runs that had ended by then
            at[never] = t["best" if self.best_on_test else "shared"][never]
        own = "best_personal" if "best_personal" in t else "personal"
        return {
            "best_new_test_acc": self._pooled(engine, "best", own),
            "best_local_test_acc": mean_accuracy(engine, "best", own, "test"),
        }

    @staticmethod
    def _pooled(engine: Engine, shared: str, personal: str) -> Tensor:
        """Accuracy [R] on the whole test set, of what devices share and the mean of their own."""
        t = engine.phase.tensors
        if "mean_personal" in t:
            torch.mean(t[personal], 1, out=t["mean_personal"])
            personal = "mean_personal"
        return pooled_accuracy(engine, shared, personal, "pool")


class Personal(Tracker):
    """Follows personal models; each device remembers the one that did best on ``judge`` rows.

    judge: "validation" (as described) or "test" (as released).
    ties: whether the "first" or the "last" of several equally good models is kept.
    patience: a device stops after so many evaluations without a strictly better one, of those
        after a round in which it took part.
    stop_at: (accuracy, rounds): a device also stops when it reaches this accuracy on ``judge``
        rows after more than so many rounds.

    Keeps ``best_shared`` [R, K, P_s], ``best_personal`` [R, K, P_p], ``best_accuracy`` [R, K];
    with ``light`` only the last of them outlives the run (100 devices' models are 0.25 GB).
    """

    best_together: ClassVar[bool] = True  # whether the best models' averaged outputs are tested

    def __init__(
        self,
        judge: str = "validation",
        every: int = 1,
        ties: str = "last",
        patience: int | None = None,
        stop_at: tuple[float, int] | None = None,
        light: bool = False,
    ):
        super().__init__(every)
        require.at_least(1, patience=patience)
        require.one_of("judge", judge, ("validation", "test"))
        require.one_of("ties", ties, ("first", "last"))
        pair = stop_at is None or (isinstance(stop_at, tuple | list) and len(stop_at) == 2)
        if not pair or (stop_at and not (0 <= stop_at[0] <= 1 and stop_at[1] >= 0)):
            raise SettingsError(
                f"stop_at is {stop_at}; it has an accuracy between 0 and 1, and a number of rounds"
            )
        self.judge, self.ties, self.light = judge, ties, light
        self.patience, self.stop_at = patience, stop_at

    def lasts(self, name):
        return not self.light or name == "best_accuracy"

    def allocate(self, allocate, phase):
        refuse_lacking(phase, self.judge, "test")
        runs, devices = phase.tensors["personal"].shape[:2]
        for kind in ("best", "mean"):
            lead = (runs, devices) if kind == "best" else (runs,)
            allocate(f"{kind}_shared", *lead, phase.layout.size_shared)
            allocate(f"{kind}_personal", *lead, phase.layout.size_personal)
        for name in ("best_accuracy", "accuracy"):
            allocate(name, runs, devices, here=True).fill_(-1)
        for name in ("waited", "done"):
            allocate(name, runs, devices, here=True)

    def look(self, round, engine):
        t = engine.phase.tensors
        accuracy = self._judge(engine)  # [R, K]
        if self.patience is not None:
            t["done"][t["waited"] >= self.patience] = 1
        if self.stop_at is not None and round > self.stop_at[1]:
            t["done"][accuracy >= self.stop_at[0]] = 1
        best = {f"best_{self.judge}_acc": t["best_accuracy"].mean(1)}
        if self.judge == "test":
            return best | {"local_test_acc": accuracy.mean(1)}
        local = mean_accuracy(engine, "shared", "personal", "test")
        return best | {"validation_acc": accuracy.mean(1), "local_test_acc": local}

    def _judge(self, engine: Engine) -> Tensor:
        """Test the current models on ``judge`` rows, remember the best; -> accuracy [R, K]."""
        t = engine.phase.tensors
        alone = engine.phase.layout.size_shared == 0 and self.every == 1  # nobody else has changed
        only = engine.trained if alone and (t["accuracy"] >= 0).all() else None
        accuracy = accuracies(engine, "shared", "personal", self.judge, only).to(t["accuracy"])
        accuracy = t["accuracy"].copy_(torch.where(accuracy < 0, t["accuracy"], accuracy))
        active = t["done"] == 0
        better = (accuracy > t["best_accuracy"]) & active
        kept = better if self.ties == "first" else (accuracy >= t["best_accuracy"]) & active
        took_part = torch.zeros_like(active)
        took_part[places(engine.trained)] = True
        t["waited"][active & took_part] += 1
        t["waited"][better] = 0
        t["best_accuracy"][kept] = accuracy[kept]
        _keep(t, kept)
        return accuracy

    def final(self, engine):
        average_best(engine.phase)
        mean = engine.phase.tensors["mean_personal"]
        best = {
            "local_test_acc": mean_accuracy(engine, "best_shared", "best_personal", "test"),
            "new_test_acc_weights": pooled_accuracy(engine, "mean_shared", "mean_personal", "pool"),
            **(ensemble(engine, "best_shared", "best_personal") if self.best_together else {}),
        }
        torch.mean(engine.phase.tensors["personal"], 1, out=mean)
        last = {
            "local_test_acc": mean_accuracy(engine, "shared", "personal", "test"),
            "new_test_acc_weights": pooled_accuracy(engine, "shared", "mean_personal", "pool"),
            **ensemble(engine, "shared", "personal"),
        }
        average_best(engine.phase)  # what is kept is the average of the best, all of it
        broken = ~engine.phase.tensors["personal"].isfinite().all(-1)  # [R, K]
        last["devices_diverged"] = broken.sum(1).cpu()
        found = {f"best_{name}": value for name, value in best.items()}
        return found | {f"last_{name}": value for name, value in last.items()}

    def stopped(self, phase):
        return phase.tensors["done"].bool() if self.patience or self.stop_at else None


def put(t: dict[str, Tensor], some: Tensor, **of: str) -> None:
    """Let each tensor [R, ...] be what another one is, for ``some`` runs [R]; the names are those
    of both, and what is not kept is passed over."""
    for run in some.nonzero()[:, 0].tolist():
        for kept, now in of.items():
            if kept in t:
                t[kept][run] = t[now][run]


def _keep(t: dict[str, Tensor], kept: Tensor) -> None:
    """Put the models of ``kept`` [R, K] among the best; all at once where a call costs most."""
    place, at = t["personal"].device, kept.nonzero()
    few = [[to_device(i, place) for i in at.T]] if place.type != "cpu" else at.tolist()
    for run, device in few:
        t["best_shared"][run, device] = t["shared"][run]
        t["best_personal"][run, device] = t["personal"][run, device]


def average_best(phase: Phase) -> None:
    """``mean_shared`` and ``mean_personal``: the average over devices of their best models."""
    for part in ("shared", "personal"):
        torch.mean(phase.tensors[f"best_{part}"], 1, out=phase.tensors[f"mean_{part}"])
