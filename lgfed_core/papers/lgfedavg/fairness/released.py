"""The released fairness code, step by step: what its loops do to the gradients, and to the numbers.

Liang et al.'s repository at af89a47, main_fair.py and global.py with models/Update.py, with all
users and runs side by side, which changes nothing: users never meet. Each trains a classifier, then
an adversary on its frozen h with a loss multiplied by 30. In the joint phase (the page says why):

1. **The head never moves**: the optimiser holds another copy's parameters.
2. **In the local model the adversary's two gradients cancel** with ``adv=1``; with ``adv=0`` the
   second is left over, and the local model *helps* the adversary.
3. **The adversary takes the same step again and again** with ``adv=1``: what is left of
   pre-training, as nobody clears its gradient. With ``adv=0`` it is the sum of all so far.

The baseline has ten rounds instead of 50, and is measured after each on the last user alone.
"""

import time

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from lgfed_core.engine import Outcome
from lgfed_core.engine.provenance import provenance
from lgfed_core.seeds import draw

from .released_users import Batch, Lanes, Params, probed, tested

STEPS = "lgfedavg_adult_released_steps"
LOUD, LAMBDA = 30.0, 0.03  # of the adversary's loss, before and in the joint phase
TOLD = 1e-5  # of the task's gradient: what arrives of a smaller push is lost in single precision


def run(cfg, seeds, split: str, method: str, device: torch.device) -> Outcome:
    """One row of Table 4 as the released code makes it; methods as in the table."""
    began = time.perf_counter()
    lanes = Lanes(cfg, seeds, split, 0 if method == "fedavg" else 2, device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(draw(seeds[0], 0, 0, 1))
        if method == "fedavg":
            final, history = _baseline(lanes), pd.DataFrame(columns=["round", "seed"])
        else:
            final, history = _local(lanes, method == "lg_fedavg_adv")
    spent = time.perf_counter() - began
    return Outcome(None, {}, history, final, spent, provenance(device), lanes.diverged)


def _local(lanes: Lanes, adv: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """LG-FedAvg: pre-training, the joint phase, and what each user's model is worth."""
    cfg, lr = lanes.cfg, lanes.cfg.lr
    params = lanes.fresh(alike=False)
    f, a, r = (_named(params, part) for part in ("local.", "own.", "adversary."))
    for _ in range(cfg.released_pretraining):
        for x, y, _ in lanes.batches():
            moving, leaves = _leaves(params, f + a)
            income, _ = lanes.play(leaves, x, own=True)
            _descend(params, _gradient(_bce(income, y), moving), lr)
    left_over: Params = {}
    for _ in range(cfg.released_pretraining):
        for x, _, z in lanes.batches():
            moving, leaves = _leaves(params, r)
            _, protected = lanes.play(leaves, x, own=True, detach=True)
            left_over = _gradient(LOUD * _bce(protected, z), moving)
            _descend(params, left_over, lr)

    head = {n: params[n].clone() for n in _named(params, "head.")}
    lines = []
    for number in range(1, cfg.released_rounds + 1):
        seen: list[dict[str, Tensor]] = []
        for _ in range(cfg.released_epochs):
            for step, batch in enumerate(lanes.batches()):
                seen += joint_step(lanes, params, left_over, batch, adv, look=step % 16 == 0)
        means = {n: torch.stack([s[n] for s in seen]).nanmean(0) for n in seen[0]}  # [L]
        means["adversary_norm"] = _norm({n: params[n] for n in r})
        means["head_moved"] = _norm({n: params[n] - v for n, v in head.items()})
        lines.append(_by_run(lanes, means).assign(round=number))
        lanes.watch(params, number)
    return tested(lanes, params), pd.concat(lines, ignore_index=True)


def joint_step(
    lanes: Lanes, params: Params, left_over: Params, batch: Batch, adv: bool, look: bool = False
) -> list[dict[str, Tensor]]:
    """One batch of the released joint phase; changes ``params`` and ``left_over`` in place.

    left_over: the adversary's gradient, which nobody clears. With ``look``, also what came of the
    intentions, per lane [L]: ``cos_adversary`` between the adversary's gradient and what it is
    moved by (NaN where the gradient is zero; ``zero_gradient`` is 1 there, else 0),
    ``share_local``, the part of the adversary's push that reaches the local model (1 all of it, 0
    nothing, -1 all of it with the wrong sign; NaN for a push below `TOLD`), and ``cos_local``
    between the local model's intended and applied gradient.
    """
    f, r = (_named(params, part) for part in ("local.", "adversary."))
    (x, y, z), seen = batch, []
    if adv and not look:  # what cancels is left out, for speed; all but rounding stays the same
        moving, leaves = _leaves(params, f)
        income, _ = lanes.play(leaves, x, own=False)
        applied = _gradient(_bce(income, y), moving)
    else:
        moving, leaves = _leaves(params, f + r)
        income, protected = lanes.play(leaves, x, own=False)
        task, push = _bce(income, y), LAMBDA * _bce(protected, z)
        unused = dict(allow_unused=True, materialize_grads=True)
        first = _gradient(task - push if adv else task, moving, retain_graph=True, **unused)
        second = _gradient(push, moving, retain_graph=look)
        applied = {n: first[n] + second[n] for n in moving}
        for name in r:
            left_over[name] = left_over[name] + applied[name]
        if look:
            alone = _gradient(task, {n: moving[n] for n in f})
            seen.append(_arrived(alone, second, applied, left_over))
    _descend(params, {n: applied[n] for n in f}, lanes.cfg.lr)
    _descend(params, {n: left_over[n] for n in r}, lanes.cfg.lr)
    return seen


def _arrived(task: Params, pushed: Params, applied: Params, left_over: Params) -> dict[str, Tensor]:
    """What `joint_step` says of a look: gradients of the task and of the push, as intended, beside
    those ``applied`` to the local model and ``left_over`` to the adversary."""
    push = {n: pushed[n] for n in task}
    ideal = {n: pushed[n] for n in left_over}
    wanted = {n: task[n] - push[n] for n in task}
    reached = {n: task[n] - applied[n] for n in task}  # of the push, with its sign as wanted
    share = _dot(reached, push) / _dot(push, push)
    return {
        "cos_adversary": _cos(ideal, left_over),
        "zero_gradient": (_norm(ideal) == 0).double(),
        "share_local": share.where(_norm(push) > TOLD * _norm(task), torch.nan),
        "cos_local": _cos(wanted, {n: applied[n] for n in task}),
    }


def _baseline(lanes: Lanes) -> pd.DataFrame:
    """FedAvg of model and adversary, measured on the last user after every round."""
    cfg, params, lines = lanes.cfg, lanes.fresh(alike=True), []
    for number in range(1, cfg.released_rounds + 1):
        momenta = {n: torch.zeros_like(v) for n, v in params.items()}
        for _ in range(cfg.released_epochs):
            for x, y, z in lanes.batches():
                moving, leaves = _leaves(params, list(params))
                income, protected = lanes.play(leaves, x, own=True, detach=True)
                loss = _bce(income, y) + LOUD * _bce(protected, z)
                for name, grad in _gradient(loss, moving).items():
                    momenta[name].mul_(0.5).add_(grad)
                _descend(params, momenta, cfg.lr)
        for value in params.values():
            runs = value.unflatten(0, (-1, lanes.users))
            value.copy_(runs.mean(1, keepdim=True).expand_as(runs).flatten(0, 1))
        lanes.watch(params, number)
        lines.append(tested(lanes, params, last_user=True, probes=False))
    return pd.concat(lines).groupby("seed").mean().join(probed(lanes, params, 1))


def _bce(p: Tensor, target: Tensor) -> Tensor:
    """Sum over lanes of each lane's mean: every lane has its own gradient."""
    return F.binary_cross_entropy(p, target, reduction="none").flatten(1).mean(1).sum()


def _leaves(params: Params, names: list[str]) -> tuple[Params, Params]:
    """The parameters to differentiate by, and all of them."""
    moving = {n: params[n].detach().requires_grad_() for n in names}
    return moving, params | moving


def _gradient(loss: Tensor, moving: Params, **how) -> Params:
    """how: of `torch.autograd.grad`."""
    found = torch.autograd.grad(loss, list(moving.values()), **how)
    return dict(zip(moving, found, strict=True))


def _descend(params: Params, by: Params, lr: float) -> None:
    for name, step in by.items():
        params[name].sub_(step, alpha=lr)


def _named(params: Params, start: str) -> list[str]:
    return [n for n in params if n.startswith(start)]


def _dot(a: Params, b: Params) -> Tensor:
    """Inner products, lane by lane -> float64 [L]: squares of small gradients vanish in float32."""
    return sum((a[n].double() * b[n].double()).flatten(1).sum(1) for n in a)


def _norm(a: Params) -> Tensor:
    return _dot(a, a).sqrt()


def _cos(a: Params, b: Params) -> Tensor:
    """NaN where either is zero."""
    return _dot(a, b) / (_norm(a) * _norm(b))


def _by_run(lanes: Lanes, means: dict[str, Tensor]) -> pd.DataFrame:
    """[L] by name -> one line per seed, the mean over those of its users that have a number."""
    columns = {n: v.view(-1, lanes.users).nanmean(1).tolist() for n, v in means.items()}
    return pd.DataFrame(columns | {"seed": lanes.seeds})
