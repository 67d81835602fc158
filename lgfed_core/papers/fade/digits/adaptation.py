"""What Figure 2 of FADE follows: how well the target domain is classified, and D guesses it."""

import torch
import torch.nn.functional as F

from ..parts import Each
from .domains import SOURCE, TARGET

DOMAINS = {"source": SOURCE, "target": TARGET}


class Adaptation(Each):
    """Accuracy and both losses on each domain's own test rows, every so many rounds.

    The device of a domain uses the statistics of batch normalisation that it has. Metrics:
    ``source_acc``, ``target_acc`` (shares), ``target_loss`` (cross-entropy of the classes), and
    ``source_adversarial``, ``target_adversarial``: -log of the probability that D gives to the
    right domain, mean over rows; log 2 = 0.693 when it cannot tell.
    """

    def each(self, engine):
        split, per_run = engine.phase.rows["test"]
        said = engine.own_outputs("shared", "personal", "test", everything=True)  # [R, 2, n, C + 1]
        for r, rows in enumerate(per_run):
            found: dict[str, float] = {}
            for name, k in DOMAINS.items():
                mine = rows.of(k)
                outputs, logit = said[r, k, : len(mine)].split([said.shape[-1] - 1, 1], -1)
                y, group = split.y[mine], torch.full_like(logit, float(k))
                found[f"{name}_acc"] = float((outputs.argmax(-1) == y).float().mean())
                found[f"{name}_loss"] = float(F.cross_entropy(outputs, y))
                guessed = F.binary_cross_entropy_with_logits(logit, group)
                found[f"{name}_adversarial"] = float(guessed)
            yield found
