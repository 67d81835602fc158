"""How much does a representation tell about protected attributes? Fresh probes, fitted afterwards.

An adversary that took part in training may be weak because it was badly trained. A probe is fitted
to a *frozen* encoder on rows that the encoder has never seen, and judged on further such rows.
Three kinds, and the best of them counts:

* ``logistic``: logistic regression, what is there to be read off linearly;
* ``trees``: gradient-boosted trees;
* ``network``: d-32-32-g with ReLU, trained by Adam until held-out rows no longer gain from it.
"""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lgfed_core.errors import SettingsError

from .fairness import auc

KINDS = ("logistic", "trees", "network")
WIDTH, BATCH, RATE = 32, 128, 3e-3  # of the networks
PATIENCE, MOST = 6, 80  # epochs


def probe(
    h: Tensor | NDArray, groups: Tensor | NDArray, fit: int, seed: int = 0
) -> dict[str, NDArray]:
    """AUC of each kind of probe -> {kind: [E, g]}, as fractions.

    h: [E, n, d], what E encoders make of the same n held-out rows; groups: [n, g], 0 or 1. Probes
    are fitted on the first ``fit`` rows and judged on the others. Raises SettingsError for other
    shapes and groups, and unless both parts have rows of both values of every attribute.
    """
    h, groups = (torch.as_tensor(rows).detach().cpu() for rows in (h, groups))
    h = h.float()
    shaped = h.dim() == 3 and groups.dim() == 2 and len(groups) == h.shape[1]
    if not shaped or not isinstance(fit, Integral) or not 0 < fit < len(groups):
        raise SettingsError(
            f"representations are {list(h.shape)}, groups {list(groups.shape)}, fit {fit}; they "
            "must be [encoders, rows, numbers], [rows, attributes] and fewer than rows"
        )
    if not ((groups == 0) | (groups == 1)).all():
        raise SettingsError(
            f"groups are {groups.unique()[:5].tolist()}; each must be 0 or 1: of more groups than "
            "two give an attribute for each"
        )
    for part in (groups[:fit], groups[fit:]):
        if not len(part) or bool((part.min(0).values == part.max(0).values).any()):
            raise SettingsError("fitting and judging a probe both need rows of every group")
    mean, std = h[:, :fit].mean(1, keepdim=True), h[:, :fit].std(1, keepdim=True)
    alive = std > 1e-6 * h[:, :fit].abs().amax(1, keepdim=True)  # by more than rounding
    scale = torch.where(alive, std, torch.inf)  # a unit that was silent so far is zero
    h = (h - mean) / scale  # [E, n, d]
    if not (h.isfinite().all() and std.isfinite().all()):
        raise SettingsError(
            "what the encoders make of the rows is not finite, or too large to be squared; "
            "leave such runs out"
        )
    judged = groups[fit:].T.numpy()  # [g, n - fit]
    scores = dict(zip(KINDS[:2], _classical(h, groups, fit, seed), strict=True))
    scores["network"] = _network(h, groups, fit, seed)
    return {kind: auc(found, judged) for kind, found in scores.items()}


def _classical(h: Tensor, groups: Tensor, fit: int, seed: int) -> tuple[NDArray, NDArray]:
    """Scores [E, g, n - fit] of logistic regressions, and of trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from sklearn.linear_model import LogisticRegression

    out = []
    for make in (
        lambda: LogisticRegression(max_iter=300),
        lambda: HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, early_stopping=False, random_state=seed
        ),
    ):
        scores = np.empty((len(h), groups.shape[1], h.shape[1] - fit))
        for e, x in enumerate(h.numpy()):
            for j, target in enumerate(groups.T.numpy()):
                model = make().fit(x[:fit], target[:fit])
                scores[e, j] = model.decision_function(x[fit:])
        out.append(scores)
    return out[0], out[1]


@torch.enable_grad()
def _network(h: Tensor, groups: Tensor, fit: int, seed: int) -> NDArray:
    """Scores [E, g, n - fit] of one network per encoder, all trained side by side.

    A fifth of the rows to fit on is held out; each network keeps the values that did best there,
    and training ends when none of them has improved for `PATIENCE` epochs.
    """
    rng = torch.Generator().manual_seed(seed)
    encoders, _, inputs = h.shape
    sizes = [inputs, WIDTH, WIDTH, groups.shape[1]]
    values = []
    for a, b in pairwise(sizes):
        for shape in ((encoders, a, b), (encoders, 1, b)):
            values.append(((torch.rand(shape, generator=rng) * 2 - 1) / a**0.5).requires_grad_())
    moments = [(torch.zeros_like(v), torch.zeros_like(v)) for v in values]
    train, target = fit - max(1, fit // 5), groups.to(h.dtype)
    best, least = [v.detach().clone() for v in values], torch.full((encoders,), torch.inf)
    waited = steps = 0
    for _ in range(MOST):
        for rows in torch.randperm(train, generator=rng).split(BATCH):
            grads = torch.autograd.grad(_errors(values, h[:, rows], target[rows]).sum(), values)
            steps += 1
            _adam(values, grads, moments, steps)
        with torch.no_grad():
            held_out = _errors(values, h[:, train:fit], target[train:fit])  # [E]
        better = held_out < least
        for kept, value in zip(best, values, strict=True):
            kept[better] = value.detach()[better]
        least = torch.where(better, held_out, least)
        waited = 0 if better.any() else waited + 1
        if waited >= PATIENCE:
            break
    return _logits(best, h[:, fit:]).mT.numpy()


@torch.no_grad()
def _adam(values, grads, moments, step: int) -> None:
    """Adam (Kingma & Ba 2015) at its defaults; the class of PyTorch takes seconds to import."""
    for value, grad, (mean, square) in zip(values, grads, moments, strict=True):
        mean.mul_(0.9).add_(grad, alpha=0.1)
        square.mul_(0.999).addcmul_(grad, grad, value=0.001)
        size = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
        value.addcdiv_(mean, size, value=-RATE / (1 - 0.9**step))


def _logits(values: list[Tensor], x: Tensor) -> Tensor:
    """x [E, n, d] -> [E, n, g]."""
    for i in range(0, len(values), 2):
        x = torch.baddbmm(values[i + 1], x if i == 0 else x.relu(), values[i])
    return x


def _errors(values: list[Tensor], x: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of each network [E], on x [E, n, d] and target [n, g]."""
    logits = _logits(values, x)
    errors = F.binary_cross_entropy_with_logits(logits, target.expand_as(logits), reduction="none")
    return errors.mean((1, 2))
