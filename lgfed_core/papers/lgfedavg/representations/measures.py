"""What is measured: both tests over rounds, and what linear probes read off each device's h."""

import numpy as np
import torch
from torch import Tensor

from lgfed_core import require
from lgfed_core.data import Split
from lgfed_core.engine.accuracy import ensemble, mean_accuracy
from lgfed_core.engine.batched import Engine
from lgfed_core.engine.trackers import Tracker
from lgfed_core.methods.pretext import ANSWERS, rearranged
from lgfed_core.metrics.fairness import auc
from lgfed_core.metrics.linear import linear_probe
from lgfed_core.papers import probe_rows
from lgfed_core.papers.probe_rows import FIT, JUDGE, truth
from lgfed_core.seeds import Purpose, stream

from .settings import WITHOUT

PROBES = ("probe_digit", "probe_slant", "probe_common")
CHOOSING = "probe_digit_validation"  # by which the weight of a loss is chosen where h is judged
TASKS = "tasks"  # rows with auxiliary tasks


class Representations(Tracker):
    """Tests over rounds; probes of h before the first round and after the last.

    Probes see the same rows at every device: at most ``rows`` = (fitted to, judged on), the first
    from all devices' validation rows, which have labels and trained nobody, the others from their
    test rows.

    ``probe_digit``  a probe for each device's h, which of ten digits: the mean over devices.
    ``probe_slant``  the same, which group, as area under the curve: fewer test than training rows
                     pass the training rows' medians.
    ``probe_common`` one probe for the digit on the h of all devices together: how far these agree.
    `CHOOSING`       as ``probe_digit``, fitted to one half of the validation rows and judged on the
                     other: after the last round alone.
    ``auxiliary``    how well the auxiliary network solves its task on the device's test rows: the
                     share of right answers; of the rows' variance that an autoencoder explains; the
                     area under an adversary's curve.
    """

    def __init__(self, way: str, every: int = 1, rows: tuple[int, int] = (1000, 1000)):
        super().__init__(every)
        require.at_least(10, fitted=rows[0], judged=rows[1])
        self.way, self.rows = way, tuple(rows)

    def allocate(self, allocate, phase):
        for name in PROBES:
            allocate(f"{name}_before", len(phase.seeds), here=True)
        probe_rows.draw(phase, self.rows)
        test, held = phase.rows["test"]
        phase.rows[TASKS] = _puzzles(test, self.way) if self.way in ANSWERS else test, held

    def before(self, engine):
        for name, value in self._probed(engine).items():
            engine.phase.tensors[f"{name}_before"].copy_(value)

    def look(self, round, engine):
        return _tests(engine)

    def final(self, engine):
        t = engine.phase.tensors
        judged = mean_accuracy(engine, "shared", "personal", "validation")
        before = {f"{name}_before": t[f"{name}_before"] for name in PROBES}
        found = _tests(engine) | dict(validation_acc=judged) | self._probed(engine) | before
        found[CHOOSING] = self._choosing(engine)
        return found if self.way in WITHOUT else found | dict(auxiliary=self._solved(engine))

    def _probed(self, engine: Engine) -> dict[str, Tensor]:
        """Accuracies [R] of the probes, on the models as they are."""
        phase = engine.phase
        # [R, K, n, 64], [R, K, m, 64]
        fit, judge = (probe_rows.features(engine, rows) for rows in (FIT, JUDGE))
        found = []
        for r in range(len(phase.seeds)):
            (y, slant), (digit, leans) = (truth(phase, rows, r) for rows in (FIT, JUDGE))
            each = [
                (linear_probe(h, y, g, digit)[0], linear_probe(h, slant, g, leans)[1])
                for h, g in zip(fit[r], judge[r], strict=True)
            ]
            h, g = (of[r].reshape(-1, of.shape[-1]) for of in (fit, judge))  # [K n, 64], [K m, 64]
            common, _ = linear_probe(h, np.tile(y, len(each)), g, np.tile(digit, len(each)))
            found.append((*np.mean(each, 0), common))
        return dict(zip(PROBES, torch.tensor(found, dtype=torch.float32).T, strict=True))

    def _choosing(self, engine: Engine) -> Tensor:
        """Accuracy [R] of probes that see no test row, the mean over devices."""
        found = []
        for r, of in enumerate(probe_rows.features(engine, FIT)):  # [K, n, 64]
            y, _ = truth(engine.phase, FIT, r)  # rows are in random order
            half = len(y) // 2
            each = [linear_probe(g[:half], y[:half], g[half:], y[half:])[0] for g in of]
            found.append(np.mean(each))
        return torch.tensor(found, dtype=torch.float32)

    def _solved(self, engine: Engine) -> Tensor:
        """How well auxiliary networks solve their tasks [R], the mean over devices."""
        said = engine.own_outputs("shared", "personal", TASKS, own=True).cpu()  # [R, K, n_max, z]
        split, held = engine.phase.rows[TASKS]
        found = [
            [self._score(of[k], split.take(mine.of(k))) for k in range(len(mine))]
            for of, mine in zip(said, held, strict=True)
        ]
        return torch.tensor(found).nanmean(1)  # a device may have one group alone

    def _score(self, said: Tensor, rows: Split) -> float:
        """Of one device: ``said`` [n_max, z] about its ``rows`` [n]."""
        said, x, y = said[: len(rows)], rows.x.cpu(), rows.y.cpu()
        if self.way == "autoencoder":
            return 1 - float((said - x).square().mean() / (x - x.mean(0)).square().mean())
        if self.way == "adversarial":
            return float(auc(said[:, 0], rows.groups[:, 0].cpu()))
        return float((said.argmax(1) == y).float().mean())


def _puzzles(split: Split, task: str) -> Split:
    """Every row rearranged once, with its answer in place of the label."""
    drawn = stream(0, Purpose.PROBES, 2).integers(ANSWERS[task], size=len(split))
    answers = torch.from_numpy(drawn).to(split.y)
    return Split(rearranged(split.x, task, answers), answers)


def _tests(engine: Engine) -> dict[str, Tensor]:
    """Each device on its own test rows, and all of them together on the whole test set, [R]."""
    local = mean_accuracy(engine, "shared", "personal", "test")
    together = ensemble(engine, "shared", "personal")["new_test_acc_outputs"]
    return {"local_test_acc": local, "new_test_acc": together}
