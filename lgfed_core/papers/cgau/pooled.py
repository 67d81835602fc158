"""Measures over all clients' rows together, each row judged by its own client's model.

The CGAU paper collects the clients' outcomes centrally: one validation loss, one accuracy, one
AUC for the whole federation, not a mean over clients.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from lgfed_core.engine.trackers import Tracker, put
from lgfed_core.errors import SettingsError
from lgfed_core.metrics.fairness import auc


class Pooled(Tracker):
    """Follows the pooled validation loss; remembers the models of the round where it was lowest.

    Keeps ``best_shared`` [R, P_s], ``best_personal`` [R, K, P_p], ``best_loss`` [R] and, counted
    from one, ``best_round`` [R]. With one output per row the loss is binary cross-entropy, and
    AUC is measured; with several, cross-entropy.
    """

    def allocate(self, allocate, phase):
        for name in ("validation", "test"):
            held = phase.rows.get(name, (None, ()))[1]
            if not held or any(int(rows.size.sum()) == 0 for rows in held):
                raise SettingsError(f"no {name} rows in one of the runs to measure on")
        for kind in ("shared", "personal"):
            allocate(f"best_{kind}", *phase.tensors[kind].shape)
        allocate("best_loss", len(phase.seeds), here=True).fill_(torch.inf)
        allocate("best_round", len(phase.seeds), here=True)

    def look(self, round, engine):
        t = engine.phase.tensors
        loss = torch.tensor(
            [m["loss"] for m in measured(engine, "shared", "personal", "validation")]
        )
        better = loss < t["best_loss"]
        t["best_loss"][better] = loss[better].to(t["best_loss"])
        t["best_round"][better] = round
        put(t, better, best_shared="shared", best_personal="personal")
        return {"validation_loss": loss}

    def final(self, engine):
        out = {"best_round": engine.phase.tensors["best_round"]}
        for when in ("best", "last"):
            prefix = "best_" if when == "best" else ""
            found = measured(engine, f"{prefix}shared", f"{prefix}personal", "test")
            for name in found[0]:
                out[f"{when}_test_{name}"] = torch.tensor([m[name] for m in found])
                if when == "best":  # a run whose loss was never finite has no best model
                    out[f"best_test_{name}"][out["best_round"] == 0] = torch.nan
        return out

    def lasts(self, name):
        return not name.startswith("best_") or name in ("best_loss", "best_round")


def measured(engine, shared: str, personal: str, rows: str) -> list[dict[str, float]]:
    """For each run: loss, acc and, with one output, auc, over the ``rows`` of all its clients."""
    outputs = engine.own_outputs(shared, personal, rows)  # [R, K, n, outputs]
    split, per_run = engine.phase.rows[rows]
    out = []
    for mine, said in zip(per_run, outputs, strict=True):
        real = mine.mask.to(said.device)  # [K, n_max]
        said = said[:, : real.shape[1]][real[:, : said.shape[1]]]  # [n, outputs]
        out.append(judged(said, split.y[mine.all.to(split.y.device)]))
    return out


def judged(outputs: Tensor, y: Tensor) -> dict[str, float]:
    """loss, acc (and auc; NaN of one class alone) of logits [n, outputs] against labels y [n]."""
    if outputs.shape[-1] > 1:
        right = outputs.argmax(-1) == y
        return {"loss": float(F.cross_entropy(outputs, y)), "acc": float(right.float().mean())}
    score = outputs[:, 0]
    loss = F.binary_cross_entropy_with_logits(score, y.to(score.dtype))
    right = (score > 0) == (y > 0)
    area = float(auc(score.cpu(), (y > 0).cpu()))
    return {"loss": float(loss), "acc": float(right.float().mean()), "auc": area}
