"""The released fairness code, step by step: what its loops do to the gradients, and to the numbers.

Liang et al.'s repository at af89a47, main_fair.py and global.py with models/Update.py. In our
own words, and with all users and runs side by side, which changes nothing: users never meet.

Before the joint phase, each user trains a classifier (10 epochs), then an adversary on its frozen h
with a loss multiplied by 30. Then, with each batch of the joint phase:

1. The user trains a *copy* of the shared head, while the head's optimiser holds the original's
   parameters, which get no gradient. **The head never moves**, and so the average is itself.
2. With ``adv=1`` the code goes backwards twice without clearing in between, through L_f - L_r and
   through L_r. **In the local model the adversary's two gradients cancel**; with ``adv=0``, the
   second one is left over, and the local model *helps* the adversary.
3. The adversary's gradient is never cleared. With ``adv=1`` the two cancel there as well, and what
   remains is the last one of pre-training: **the same step, again and again**. With ``adv=0`` it
   is the sum of all gradients so far.

At test, dropout is on, and a user's test rows are the rows of the test set that have the numbers of
its *training* rows. All ten non-i.i.d. runs have the shards of the first. The baseline has ten
rounds instead of 50, and is measured after each on the last user alone.
"""

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from .. import nets, results
from ..data import Split
from ..nets_adult import AdultNet
from ..rounds import CPU
from ..streams import Purpose, draw, stream
from .adult_measures import Measured, Seen, leaks, rows_of_adult, scores

STEPS = "lgfedavg_adult_released_steps"
LOUD, LAMBDA = 30.0, 0.03  # of the adversary's loss, before and in the joint phase
SHARDS, PER_USER = 100, 10
Params = dict[str, Tensor]  # name -> [L, ...], L = runs * users


class Lanes:
    """All users of all runs: their rows, and networks side by side."""

    def __init__(self, cfg, seeds, split: str, head_layers: int):
        rows = cfg.first_rows or (30_000 if split == "noniid" else None)
        self.adult = rows_of_adult(rows)
        self.cfg, self.seeds, self.users = cfg, list(seeds), cfg.devices
        held = [users_rows(self.adult.train.y, cfg.devices, split, s) for s in seeds]
        index = torch.cat(held)  # [L, n]; all users have equally many
        train = self.adult.train
        self.x, self.y = train.x[index], train.y[index].float()  # [L, n, 93], [L, n]
        self.z = train.groups[index].float()  # [L, n, 2]
        self.tested = self.adult.test.take(index.flatten()) if len(index) else None
        self.index = index
        self.net = nets.make(lambda: AdultNet(head_layers, 0.2, 0.0), 0).train()

    def fresh(self, alike: bool) -> Params:
        """First parameters [L, ...]: each user's own, but for the head; ``alike`` for one a run."""
        made = []
        for seed in self.seeds:
            head = nets.make(lambda: AdultNet(2 if self.net.head else 0, 0.2, 0.0), draw(seed, 0))
            for k in range(self.users):
                own = nets.make(
                    lambda: AdultNet(2 if self.net.head else 0, 0.2, 0.0), draw(seed, 0, 1 + k)
                )
                if self.net.head:
                    own.head.load_state_dict(head.head.state_dict())
                made.append(head if alike else own)
        values, _ = stack_module_state(made)
        return {n: v.detach() for n, v in values.items()}

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """One epoch, never shuffled: x [L, B, 93], y [L, B], z [L, B, 2]."""
        size = self.cfg.batch_size
        for at in range(0, self.x.shape[1], size):
            yield self.x[:, at : at + size], self.y[:, at : at + size], self.z[:, at : at + size]

    def play(self, params: Params, x: Tensor, own: bool, detach: bool = False):
        """P(y = 1) [L, B] and the adversary's probabilities [L, B, 2], with dropout."""
        watch = Tensor.detach if detach else _open

        def one(params, x):
            return functional_call(self.net, params, (x,), dict(own=own, watch=watch))

        income, protected = vmap(one, randomness="different")(params, x)
        return income[..., 1].sigmoid(), protected.sigmoid()


def run(cfg, seeds, split: str, method: str) -> Measured:
    """One row of Table 4 as the released code makes it; methods as in the table."""
    began = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw(seeds[0], 0, 0, 1))
        if method == "fedavg":
            final, history = _baseline(Lanes(cfg, seeds, split, 0))
        else:
            final, history = _local(Lanes(cfg, seeds, split, 2), method == "lg_fedavg_adv")
    spent = time.perf_counter() - began
    return Measured(final, history, spent, results.provenance(CPU))


def users_rows(y: Tensor, users: int, split: str, seed: int) -> Tensor:
    """Row numbers of each user, int64 [users, n]; non-i.i.d. the same for every seed."""
    rng = stream(seed if split == "iid" else 0, Purpose.IID)
    if split == "iid":
        each = len(y) // users
        return torch.from_numpy(rng.permutation(len(y))[: users * each]).view(users, each)
    by_label = np.argsort(y.numpy(), kind="stable")
    size = len(y) // SHARDS
    dealt = rng.permutation(SHARDS)[: users * PER_USER].reshape(users, PER_USER)
    rows = [np.concatenate([by_label[s * size : (s + 1) * size] for s in mine]) for mine in dealt]
    return torch.from_numpy(np.stack(rows))


def _local(lanes: Lanes, adv: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """LG-FedAvg: pre-training, the joint phase, and what each user's model is worth."""
    cfg, lr = lanes.cfg, lanes.cfg.lr
    params = lanes.fresh(alike=False)
    f, a, r = (_named(params, part) for part in ("local.", "own.", "adversary."))
    for _ in range(cfg.released_pretraining):
        for x, y, _ in lanes.batches():
            moving, leaves = _leaves(params, f + a)
            income, _ = lanes.play(leaves, x, own=True)
            grads = torch.autograd.grad(_bce(income, y), list(moving.values()))
            _descend(params, moving, grads, lr)
    left_over: Params = {}
    for _ in range(cfg.released_pretraining):
        for x, _, z in lanes.batches():
            moving, leaves = _leaves(params, r)
            _, protected = lanes.play(leaves, x, own=True, detach=True)
            grads = torch.autograd.grad(LOUD * _bce(protected, z), list(moving.values()))
            _descend(params, moving, grads, lr)
            left_over = dict(zip(moving, grads, strict=True))

    head = {n: v.clone() for n, v in params.items() if n.startswith("head.")}
    lines = []
    for number in range(1, cfg.released_rounds + 1):
        seen: list[dict[str, Tensor]] = []
        for _ in range(cfg.released_epochs):
            for step, (x, y, z) in enumerate(lanes.batches()):
                seen += joint_step(lanes, params, left_over, x, y, z, adv, look=step % 16 == 0)
        means = {name: torch.stack([s[name] for s in seen]).mean(0) for name in seen[0]}  # [L]
        means["adversary_norm"] = _norm({n: params[n] for n in r})
        means["head_moved"] = _norm({n: params[n] - v for n, v in head.items()})
        lines.append(_by_run(lanes, means).assign(round=number))
    return _tested(lanes, params), pd.concat(lines, ignore_index=True)


def joint_step(
    lanes: Lanes, params: Params, left_over: Params, x: Tensor, y: Tensor, z: Tensor,
    adv: bool, look: bool = False,
) -> list[dict[str, Tensor]]:  # fmt: skip
    """One batch of the released joint phase; changes ``params`` and ``left_over`` in place.

    left_over: the adversary's gradient, which nobody clears. With ``look``, also what came of the
    intentions, per lane [L]: ``cos_adversary`` between the adversary's gradient and what it is
    moved by, ``size_ratio`` of their norms, ``share_local``, the part of the adversary's push that
    reaches the local model (1 all of it, 0 nothing, -1 all of it with the wrong sign), and
    ``cos_local`` between the local model's intended and applied gradient.
    """
    f, r = (_named(params, part) for part in ("local.", "adversary."))
    if adv and not look:  # what cancels is left out, for speed; all but rounding stays the same
        moving, leaves = _leaves(params, f)
        income, _ = lanes.play(leaves, x, own=False)
        grads = torch.autograd.grad(_bce(income, y), list(moving.values()))
        _descend(params, f, grads, lanes.cfg.lr)
        _descend(params, r, [left_over[n] for n in r], lanes.cfg.lr)
        return []
    moving, leaves = _leaves(params, f + r)
    income, protected = lanes.play(leaves, x, own=False)
    task, push = _bce(income, y), LAMBDA * _bce(protected, z)
    first = torch.autograd.grad(
        task - push if adv else task, list(moving.values()), retain_graph=True, allow_unused=True,
        materialize_grads=True,
    )  # fmt: skip
    second = torch.autograd.grad(push, list(moving.values()), retain_graph=look)
    both = {n: g1 + g2 for n, g1, g2 in zip(moving, first, second, strict=True)}
    for name in r:
        left_over[name] = left_over[name] + both[name]
    seen = []
    if look:
        clean = torch.autograd.grad(task, [moving[n] for n in f])
        task_only = dict(zip(f, clean, strict=True))
        pushed = dict(zip(moving, second, strict=True))
        wanted = {n: task_only[n] - pushed[n] for n in f}
        reached = {n: task_only[n] - both[n] for n in f}  # of the push, with its sign as wanted
        ideal = {n: pushed[n] for n in r}
        applied = {n: left_over[n] for n in r}
        push_local = {n: pushed[n] for n in f}
        seen.append({
            "cos_adversary": _cos(ideal, applied),
            "size_ratio": _norm(applied) / _norm(ideal).clamp(min=1e-30),
            "share_local": _dot(reached, push_local)
            / _dot(push_local, push_local).clamp(min=1e-30),
            "cos_local": _cos(wanted, {n: both[n] for n in f}),
        })  # fmt: skip
    _descend(params, f, [both[n] for n in f], lanes.cfg.lr)
    _descend(params, r, [left_over[n] for n in r], lanes.cfg.lr)
    return seen


def _baseline(lanes: Lanes) -> tuple[pd.DataFrame, pd.DataFrame]:
    """FedAvg of model and adversary, measured on the last user after every round."""
    cfg, params, lines = lanes.cfg, lanes.fresh(alike=True), []
    for _ in range(cfg.released_rounds):
        momenta = {n: torch.zeros_like(v) for n, v in params.items()}
        for _ in range(cfg.released_epochs):
            for x, y, z in lanes.batches():
                moving, leaves = _leaves(params, list(params))
                income, protected = lanes.play(leaves, x, own=True, detach=True)
                loss = _bce(income, y) + LOUD * _bce(protected, z)
                for name, grad in zip(
                    moving, torch.autograd.grad(loss, list(moving.values())), strict=True
                ):
                    momenta[name].mul_(0.5).add_(grad)
                    params[name].sub_(momenta[name], alpha=cfg.lr)
        for value in params.values():
            runs = value.unflatten(0, (-1, lanes.users))
            value.copy_(runs.mean(1, keepdim=True).expand_as(runs).flatten(0, 1))
        lines.append(_tested(lanes, params, last_user=True, probes=False))
    final = pd.concat(lines).groupby("seed").mean()
    return final.join(_probed(lanes, params, 1)), pd.DataFrame()


@torch.no_grad()
def _tested(
    lanes: Lanes, params: Params, last_user: bool = False, probes: bool = True
) -> pd.DataFrame:
    """The released test, by seed: rows by the numbers of training rows, dropout on."""
    test, each = lanes.tested, lanes.index.shape[1]
    x = test.x.view(-1, each, test.x.shape[1])
    income, protected = lanes.play(params, x, own=lanes.net.head is None)
    lines = []
    for i in range(len(lanes.seeds)):
        mine = range(i * lanes.users, (i + 1) * lanes.users)
        devices = []
        for lane in mine[-1:] if last_user else mine:
            rows = test.take(torch.arange(lane * each, (lane + 1) * each))
            devices.append(Seen(income[lane].numpy(), protected[lane].numpy(), rows.y.numpy(),
                                rows.groups.numpy()))  # fmt: skip
        lines.append(scores(devices))
    found = pd.DataFrame(lines, index=pd.Index(lanes.seeds, name="seed"))
    return found.join(_probed(lanes, params, lanes.cfg.probed)) if probes else found


@torch.no_grad()
def _probed(lanes: Lanes, params: Params, probed: int) -> pd.DataFrame:
    """Fresh probes of the first users' encoders, with dropout off."""
    quiet, lines = lanes.net.local.eval(), []
    local = {n.removeprefix("local."): v for n, v in params.items() if n.startswith("local.")}
    for i, seed in enumerate(lanes.seeds):
        encoders = []
        for lane in range(i * lanes.users, i * lanes.users + probed):
            own = {n: v[lane] for n, v in local.items()}
            encoders.append(lambda x, own=own: functional_call(quiet, own, (x,)))
        test: Split = lanes.adult.test
        lines.append(leaks(encoders, test, lanes.cfg.probe_rows, seed))
    lanes.net.train()
    return pd.DataFrame(lines, index=pd.Index(lanes.seeds, name="seed"))


def _bce(p: Tensor, target: Tensor) -> Tensor:
    """Sum over lanes of each lane's mean: every lane has its own gradient."""
    return F.binary_cross_entropy(p, target, reduction="none").flatten(1).mean(1).sum()


def _leaves(params: Params, names: list[str]) -> tuple[Params, Params]:
    """The parameters to differentiate by, and all of them."""
    moving = {n: params[n].detach().requires_grad_() for n in names}
    return moving, params | moving


def _descend(params: Params, names, grads, lr: float) -> None:
    for name, grad in zip(names, grads, strict=True):
        params[name].sub_(grad, alpha=lr)


def _named(params: Params, start: str) -> list[str]:
    return [n for n in params if n.startswith(start)]


def _dot(a: Params, b: Params) -> Tensor:
    """Inner products, lane by lane -> [L]."""
    return sum((a[n] * b[n]).flatten(1).sum(1) for n in a)


def _norm(a: Params) -> Tensor:
    return _dot(a, a).sqrt()


def _cos(a: Params, b: Params) -> Tensor:
    return _dot(a, b) / (_norm(a) * _norm(b)).clamp(min=1e-30)


def _by_run(lanes: Lanes, means: dict[str, Tensor]) -> pd.DataFrame:
    """[L] by name -> one line per seed, the mean over its users."""
    columns = {n: v.view(-1, lanes.users).mean(1).tolist() for n, v in means.items()}
    return pd.DataFrame(columns | {"seed": lanes.seeds})


def _open(h: Tensor) -> Tensor:
    return h
