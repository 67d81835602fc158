"""The users of the released fairness code: their rows and networks side by side, and their test.

At test, dropout is on, and a user's test rows are the rows of the test set that have the numbers of
its *training* rows. All ten non-i.i.d. runs have the shards of the first. See `released` for what
the users do.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from lgfed_core import models
from lgfed_core.engine import CPU
from lgfed_core.errors import SettingsError
from lgfed_core.models.adult import AdultNet
from lgfed_core.seeds import Purpose, draw, stream

from .measures import Seen, encoder, leaks, rows_of_adult, scores
from .settings import FIRST_ROWS

SHARDS, PER_USER = 100, 10
Params = dict[str, Tensor]  # name -> [L, ...], L = runs * users
Batch = tuple[Tensor, Tensor, Tensor]  # x [L, B, 93], y [L, B], z [L, B, 2]


class Lanes:
    """All users of all runs: their rows, and networks side by side."""

    def __init__(self, cfg, seeds, split: str, head_layers: int, device: torch.device = CPU):
        self.adult = rows_of_adult(cfg.first_rows or (FIRST_ROWS if split == "noniid" else None))
        self.cfg, self.seeds, self.users = cfg, list(seeds), cfg.devices
        train = self.adult.train
        held = [users_rows(train.y, cfg.devices, split, seed) for seed in seeds]
        self.index = torch.cat(held)  # [L, n]; all users have equally many
        rows = train.x[self.index], train.y[self.index].float(), train.groups[self.index].float()
        self.x, self.y, self.z = (t.to(device) for t in rows)  # [L, n, 93], [L, n], [L, n, 2]
        self.diverged: dict[int, int] = {}  # seed -> the round after which it was not finite
        self.make = partial(AdultNet, head_layers, 0.2, 0.0)
        self.net = models.make(self.make, 0).train()

    def fresh(self, alike: bool) -> Params:
        """First parameters [L, ...]: each user's own, but for the head; ``alike`` for one a run."""
        made = []
        for seed in self.seeds:
            head = models.make(self.make, draw(seed, 0))
            for k in range(self.users):
                own = models.make(self.make, draw(seed, 0, 1 + k))
                if self.net.head:
                    own.head.load_state_dict(head.head.state_dict())
                made.append(head if alike else own)
        values, _ = stack_module_state(made)
        return {n: v.detach().to(self.x.device) for n, v in values.items()}

    def batches(self) -> Iterator[Batch]:
        """One epoch, never shuffled."""
        size = self.cfg.batch_size
        for at in range(0, self.x.shape[1], size):
            yield self.x[:, at : at + size], self.y[:, at : at + size], self.z[:, at : at + size]

    def play(self, params: Params, x: Tensor, own: bool, detach: bool = False):
        """P(y = 1) [L, B] and the adversary's probabilities [L, B, 2], with dropout."""
        watch = Tensor.detach if detach else nn.Identity()

        def one(params, x):
            return functional_call(self.net, params, (x,), dict(own=own, watch=watch))

        income, protected = vmap(one, randomness="different")(params, x)
        # a diverged lane says "a half", which keeps the losses of its neighbours computable
        return tuple(p.sigmoid().nan_to_num(0.5) for p in (income[..., 1], protected))

    def watch(self, params: Params, round: int) -> None:
        """Note the seeds that have left the finite numbers by the end of ``round``."""
        fine = torch.stack([v.isfinite().flatten(1).all(1) for v in params.values()]).all(0)  # [L]
        for seed, ok in zip(self.seeds, fine.view(-1, self.users).all(1).tolist(), strict=True):
            if not ok:
                self.diverged.setdefault(seed, round)


def users_rows(y: Tensor, users: int, split: str, seed: int) -> Tensor:
    """Row numbers of each user, int64 [users, n]; non-i.i.d. the same for every seed.

    Raises SettingsError for more users than non-i.i.d. shards suffice for.
    """
    rng = stream(seed if split == "iid" else 0, Purpose.IID)
    if split == "iid":
        each = len(y) // users
        return torch.from_numpy(rng.permutation(len(y))[: users * each]).view(users, each)
    if users * PER_USER > SHARDS:
        raise SettingsError(
            f"devices is {users}; the released code deals {PER_USER} of {SHARDS} shards to each, "
            f"so non-i.i.d. there can be {SHARDS // PER_USER} at most"
        )
    by_label = np.argsort(y.numpy(), kind="stable")
    size = len(y) // SHARDS
    dealt = rng.permutation(SHARDS)[: users * PER_USER].reshape(users, PER_USER)
    rows = [np.concatenate([by_label[s * size : (s + 1) * size] for s in mine]) for mine in dealt]
    return torch.from_numpy(np.stack(rows))


@torch.no_grad()
def tested(
    lanes: Lanes, params: Params, last_user: bool = False, probes: bool = True
) -> pd.DataFrame:
    """The released test, by seed: rows by the numbers of training rows, dropout on."""
    test = lanes.adult.test
    said = lanes.play(params, test.x[lanes.index].to(lanes.x.device), own=lanes.net.head is None)
    whole = *(p.cpu() for p in said), test.y[lanes.index], test.groups[lanes.index]  # [L, n, ...]
    seen = [Seen(*(tensor.numpy() for tensor in lane)) for lane in zip(*whole, strict=True)]
    lines = []
    for i in range(len(lanes.seeds)):
        users = seen[i * lanes.users : (i + 1) * lanes.users]
        lines.append(scores(users[-1:] if last_user else users))
    found = pd.DataFrame(lines, index=pd.Index(lanes.seeds, name="seed"))
    return found.join(probed(lanes, params, lanes.cfg.probed)) if probes else found


@torch.no_grad()
def probed(lanes: Lanes, params: Params, users: int) -> pd.DataFrame:
    """Fresh probes of the first users' encoders, with dropout off."""
    net, lines = lanes.net.eval(), []
    finite = {n: v.cpu().nan_to_num(0.0, 0.0, 0.0) for n, v in params.items()}
    for i, seed in enumerate(lanes.seeds):
        mine = range(i * lanes.users, i * lanes.users + min(users, lanes.users))
        encoders = [encoder(net, {n: v[lane] for n, v in finite.items()}) for lane in mine]
        lines.append(leaks(encoders, lanes.adult.test, lanes.cfg.probe_rows, seed))
    net.train()
    return pd.DataFrame(lines, index=pd.Index(lanes.seeds, name="seed"))
