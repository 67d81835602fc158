"""What is measured: both tests over rounds, and what linear probes read off each device's h."""

import numpy as np
import torch
from torch import Tensor

from lgfed_core.engine.accuracy import ensemble, mean_accuracy
from lgfed_core.engine.batched import Engine
from lgfed_core.engine.trackers import Tracker
from lgfed_core.engine.training import Phase
from lgfed_core.errors import at_least
from lgfed_core.metrics.linear import linear_probe
from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream

PROBES = ("probe_digit", "probe_slant", "probe_common")
FIT, JUDGE = "probe_fit", "probe_judge"  # rows that every device sees


class Representations(Tracker):
    """Tests over rounds; probes of h before the first round and after the last.

    Probes see the same rows at every device: at most ``rows`` = (fitted to, judged on), the first
    from all devices' validation rows, which have labels and trained nobody, the others from their
    test rows.

    ``probe_digit``  a probe for each device's h, which of ten digits: the mean over devices.
    ``probe_slant``  the same, which group.
    ``probe_common`` one probe for the digit on the h of all devices together: how far these agree.
    """

    def __init__(self, every: int = 1, rows: tuple[int, int] = (1000, 1000)):
        at_least(1, every=every)
        at_least(10, fitted=rows[0], judged=rows[1])
        self.every, self.rows = every, tuple(rows)

    def allocate(self, allocate, phase):
        for name in PROBES:
            allocate(f"{name}_before", len(phase.seeds))
        for which, (name, kind) in enumerate(((FIT, "validation"), (JUDGE, "test"))):
            split, held = phase.rows[kind]
            shared = [
                _everybody(rows, self.rows[which], seed, which)
                for seed, rows in zip(phase.seeds, held, strict=True)
            ]
            phase.rows[name] = split, shared

    def before(self, engine):
        for name, value in self._probed(engine).items():
            engine.phase.tensors[f"{name}_before"].copy_(value)

    def after(self, round, rounds, engine):
        return _tests(engine) if round % self.every == 0 or round == rounds else {}

    def final(self, engine):
        t = engine.phase.tensors
        judged = mean_accuracy(engine, "shared", "personal", "validation")
        before = {f"{name}_before": t[f"{name}_before"].cpu() for name in PROBES}
        return _tests(engine) | dict(validation_acc=judged) | self._probed(engine) | before

    def _probed(self, engine: Engine) -> dict[str, Tensor]:
        """Accuracies [R] of the probes, on the models as they are."""
        phase = engine.phase
        fit, judge = (
            engine.own_outputs("shared", "personal", rows, features=True).cpu().numpy()
            for rows in (FIT, JUDGE)
        )  # [R, K, n, 64], [R, K, m, 64]
        found = []
        for r in range(len(phase.seeds)):
            (y, slant), (truth, leans) = (_labels(phase, rows, r) for rows in (FIT, JUDGE))
            each = [
                (linear_probe(h, y, g, truth), linear_probe(h, slant, g, leans))
                for h, g in zip(fit[r], judge[r], strict=True)
            ]
            h, g = (of[r].reshape(-1, of.shape[-1]) for of in (fit, judge))  # [K n, 64], [K m, 64]
            common = linear_probe(h, np.tile(y, len(each)), g, np.tile(truth, len(each)))
            found.append((*np.mean(each, 0), common))
        return dict(zip(PROBES, torch.tensor(found, dtype=torch.float32).T, strict=True))


def _tests(engine: Engine) -> dict[str, Tensor]:
    """Each device on its own test rows, and all of them together on the whole test set, [R]."""
    local = mean_accuracy(engine, "shared", "personal", "test")
    together = ensemble(engine, "shared", "personal")["new_test_acc_outputs"]
    return {"local_test_acc": local, "new_test_acc": together}


def _everybody(rows: ClientIndices, most: int, seed: int, which: int) -> ClientIndices:
    """The same rows for every device: at most so many of those that they hold together."""
    held = torch.cat([rows.of(k) for k in range(len(rows))]).sort().values
    drawn = stream(seed, Purpose.PROBES, which).permutation(len(held))[:most]
    return ClientIndices.from_lists([held[torch.from_numpy(drawn)]] * len(rows))


def _labels(phase: Phase, rows: str, run: int):
    """What there is to say of the shared ``rows``: labels [n] and groups [n]."""
    split, per_run = phase.rows[rows]
    mine = per_run[run].of(0)
    return split.y[mine].cpu().numpy(), split.groups[mine, 0].cpu().numpy()
