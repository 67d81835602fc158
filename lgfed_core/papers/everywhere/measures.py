"""What is measured of a run, after its last round: who is served how well, and who can be told."""

import numpy as np
import torch
from torch import Tensor

from lgfed_core.engine.accuracy import accuracies, ensemble, mean_accuracy
from lgfed_core.engine.batched import Engine
from lgfed_core.engine.trackers import Tracker
from lgfed_core.metrics.fairness import equalised_odds
from lgfed_core.metrics.linear import linear_probe
from lgfed_core.papers import probe_rows
from lgfed_core.papers.probe_rows import FIT, JUDGE


class Served(Tracker):
    """All as shares, from 0 to 1.

    ``local_test_acc`` the mean over devices of the accuracy on their own test rows, ``worst_acc``
    the least of them, ``decile_acc`` their lowest decile (a tenth lies below); ``validation_acc``
    the mean on validation rows; ``new_test_acc`` the devices' averaged outputs on all test rows: a
    new device of which nothing is known. On rows with a group, ``leak_auc``: how well a linear
    probe for each device's h tells the group, as area under the curve, the mean over devices; it is
    fitted to validation rows and judged on test rows of all devices. ``odds_gap``: of two classes,
    the gap of equalised odds between groups in the decisions of all devices on their own test rows.

    odds: whether that gap is asked for; rows: as `Settings.probed`. Models are not kept unless
    ``keep``: only who goes on from them needs them.
    """

    def __init__(
        self, every: int, rows: tuple[int, int], probe: bool, odds: bool, keep: bool = False
    ):
        super().__init__(every)
        self.rows, self.probe, self.odds, self.keep = tuple(rows), probe, odds, keep

    def lasts(self, name):
        return self.keep

    def allocate(self, allocate, phase):
        if self.probe:
            probe_rows.draw(phase, self.rows)

    def look(self, round, engine):
        return {"local_test_acc": mean_accuracy(engine, "shared", "personal", "test")}

    def final(self, engine):
        own = accuracies(engine, "shared", "personal", "test")  # [R, K]
        found = {
            "local_test_acc": own.mean(1),
            "worst_acc": own.min(1).values,
            "decile_acc": own.quantile(0.1, dim=1),
            "validation_acc": mean_accuracy(engine, "shared", "personal", "validation"),
            "new_test_acc": ensemble(engine, "shared", "personal")["new_test_acc_outputs"],
        }
        if self.probe:
            found["leak_auc"] = self._leak(engine)
        if self.odds:
            found["odds_gap"] = self._gap(engine)
        return found

    def _leak(self, engine: Engine) -> Tensor:
        """[R]."""
        phase, kinds = engine.phase, (FIT, JUDGE)
        # zeros of a run that diverged, whose numbers are not kept
        fit, judge = (
            np.nan_to_num(probe_rows.features(engine, rows), posinf=0.0, neginf=0.0)
            for rows in kinds
        )  # [R, K, n, 64], [R, K, m, 64]
        found = []
        for r in range(len(phase.seeds)):
            (_, group), (_, truth) = (probe_rows.truth(phase, rows, r) for rows in kinds)
            areas = [
                linear_probe(h, group, g, truth)[1] for h, g in zip(fit[r], judge[r], strict=True)
            ]
            found.append(float(np.mean(areas)))
        return torch.tensor(found)

    def _gap(self, engine: Engine) -> Tensor:
        """[R]."""
        split, held = engine.phase.rows["test"]
        said = engine.own_outputs("shared", "personal", "test").argmax(-1).cpu()  # [R, K, n_max]
        found = []
        for r, rows in enumerate(held):
            decided = torch.cat([said[r, k, : int(n)] for k, n in enumerate(rows.size)])
            mine = split.take(rows.all.to(split.y.device))
            group = mine.groups[:, 0].cpu().numpy()
            found.append(equalised_odds(decided.numpy(), mine.y.cpu().numpy(), group))
        return torch.tensor(found)
