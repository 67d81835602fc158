"""XOR with two clients, one gated unit: Figures 1 and 3 of the CGAU paper (appendix A), claim C8.

Four clusters at (+-1, +-1); the classes are red where the features have the same sign and blue
where they have not. The "up" client holds the clusters with x2 > 0, the "down" client the others.
Not federated: the figure is about what one unit can express. The paper says neither how many points
there are nor how it trains; here Adam lowers the cross-entropy of all points.

Many seeds train side by side, each a network of its own.
"""

from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lgfed_core.models import make
from lgfed_core.models.gated_unit import CGAU, SWITCHES, glorot
from lgfed_core.papers.settings import Checked

UP, DOWN = 0, 1
CLASSES = ("features of the same sign", "of opposite signs")  # the paper's red and blue
SOLVED = 0.99  # of the points
NETS = ("mlp", "gated", "cgau")  # two tanh units; one unit without and with its client
SCALES = {
    "smoke": dict(seeds=4, steps=150),
    "quick": dict(seeds=30, steps=600),
    "paper": dict(seeds=200, steps=1500),
}


@dataclass(frozen=True)
class Settings(Checked):
    """How many networks, and how each is trained; `SCALES` has what a scale changes."""

    seeds: int = 40
    steps: int = 800
    lr: float = 0.05
    points: int = 50  # per cluster
    spread: float = 0.25  # standard deviation of a cluster


def points(cfg: Settings) -> tuple[Tensor, Tensor, Tensor]:
    """The data: x [n, 2], class y [n] (1 is blue) and client [n]."""
    rng = torch.Generator().manual_seed(0)
    corner = torch.tensor([[1.0, 1], [-1, 1], [1, -1], [-1, -1]]).repeat_interleave(cfg.points, 0)
    x = corner + cfg.spread * torch.randn(corner.shape, generator=rng)  # [n, 2]
    return x, (corner[:, 0] != corner[:, 1]).float(), (corner[:, 1] < 0).long()


class MLP(nn.Module):
    """Two hidden tanh units; knows nothing of clients. 9 parameters."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = glorot(nn.Linear(2, 2)), glorot(nn.Linear(2, 1))

    def forward(self, x: Tensor, client: Tensor, off: tuple[str, ...] = ()) -> Tensor:
        """x [n, 2], client [n] -> logits [n]."""
        return self.out(self.hidden(x).tanh())[..., 0]


class OneUnit(nn.Module):
    """One gated unit, then its sign: 12 parameters with two clients, four of them the clients'."""

    def __init__(self, conditioned: bool = True):
        super().__init__()
        self.conditioned = conditioned
        self.unit, self.out = CGAU(2, 1, clients=2), glorot(nn.Linear(1, 1))

    def parts(self, x: Tensor, client: Tensor, off: tuple[str, ...] = ()) -> tuple[Tensor, Tensor]:
        """Filter and gate activation, [n] each, with the parts named in ``off`` switched off."""
        h = F.one_hot(client, 2).to(x) if self.conditioned else None
        f, g = self.unit.parts(x, h, off)
        return f[..., 0], g[..., 0]

    def forward(self, x: Tensor, client: Tensor, off: tuple[str, ...] = ()) -> Tensor:
        """x [n, 2], client [n] -> logits [n]."""
        f, g = self.parts(x, client, off)
        return self.out((f * g)[..., None])[..., 0]


class Trained(NamedTuple):
    """Networks of one kind: ``params`` have a seed axis [S, ...]."""

    net: nn.Module
    params: dict[str, Tensor]


def train(kind: str, cfg: Settings) -> Trained:
    """``cfg.seeds`` networks of one kind of `NETS`, each from the weights of its own seed."""
    build = {"mlp": MLP, "gated": lambda: OneUnit(False), "cgau": OneUnit}
    nets = [make(build[kind], seed) for seed in range(cfg.seeds)]
    params = {
        name: torch.stack([net.get_parameter(name).detach() for net in nets]).requires_grad_()
        for name, _ in nets[0].named_parameters()
    }
    x, y, client = points(cfg)

    def loss(p: dict[str, Tensor]) -> Tensor:
        return F.binary_cross_entropy_with_logits(functional_call(nets[0], p, (x, client)), y)

    optimiser = torch.optim.Adam(params.values(), cfg.lr)
    for _ in range(cfg.steps):
        optimiser.zero_grad()
        vmap(loss)(params).sum().backward()
        optimiser.step()
    return Trained(nets[0], {n: p.detach() for n, p in params.items()})


def accuracies(trained: Trained, cfg: Settings) -> pd.DataFrame:
    """Share of right points per seed: all, then each client with each part switched off.

    Columns (which points, what is off): all | up | down by nothing | modulation | expression |
    both.
    """
    (x, y, client), (net, params), out = points(cfg), trained, {}
    offs = {"nothing": (), **{s: (s,) for s in SWITCHES}, "both": SWITCHES}
    for what, off in offs.items():
        with torch.no_grad():
            logits = vmap(lambda p, off=off: functional_call(net, p, (x, client, off)))(params)
        right = (logits > 0) == (y > 0)  # [S, n]
        for who, mine in (("all", client >= 0), ("up", client == UP), ("down", client == DOWN)):
            out[who, what] = right[:, mine].float().mean(1).numpy()
    return pd.DataFrame(out).rename_axis("seed")


def solves(found: pd.DataFrame) -> pd.Series:
    """Which seeds are right on `SOLVED` of all points, with both parts; found: of `accuracies`."""
    return found["all", "nothing"] >= SOLVED
