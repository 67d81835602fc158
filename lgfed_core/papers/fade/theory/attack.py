"""A user who joins to learn another's data: a generator against the shared discriminator.

Hong et al. 2021 (FADE), section 4.5, on a toy: the victim holds points from a normal law in the
plane, the malicious user a generator x = m + L n, n ~ N(0, I), which starts as N(0, I). Both train
the shared D on batches of their own, his generator ascends the loss of the D he was sent, and the
server moves D half-way to the mean of what came (beta = 1/2). D is quadratic in x, which is what
the best D of two normal laws is; only its coefficients are exchanged.

Plain gradient play circles about its goal. Decay of D, on all but its constant, damps that and
leaves the goal where it is: there D is constant, at a1 / (a1 + a2) by eq. (5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lgfed_core.errors import SettingsError
from lgfed_core.metrics import frechet

MEAN = np.array([2.0, 1.0])
COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.6]])
START = frechet.gaussians(np.zeros(2), np.eye(2), MEAN, COVARIANCE)
BETA, BATCH, LOCAL_STEPS = 0.5, 64, 2
RATE, GENERATOR_RATE = 0.25, 0.075
DECAY = torch.tensor([0.0, *[0.1] * 5])  # not on the constant, which answers to imbalance


@dataclass(frozen=True)
class Defence:
    """``noise``: deviation added to each coefficient sent; ``absent``: probability of no show."""

    noise: float = 0.0
    absent: float = 0.0

    def __post_init__(self):
        if self.noise < 0 or not 0 <= self.absent <= 1:
            raise SettingsError(
                f"noise {self.noise}, absent {self.absent}: a deviation and a probability"
            )


def attack(
    defences: Sequence[Defence],
    rounds: int = 300,
    seeds: int = 8,
    patience: int = 1,
    visits: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """All defences and seeds side by side; the generator is looked at ``visits`` times and at 0.

    Columns: round, noise, absent, seed, distance (Fréchet, to the victim's law).

    All defences of a seed see the same random numbers. With ``patience`` k there are k times as
    many rounds, of steps of a k-th of the length: the same way, trodden more carefully.
    """
    rounds, rate, generator_rate = rounds * patience, RATE / patience, GENERATOR_RATE / patience
    rng = torch.Generator().manual_seed(seed)
    lanes = (len(defences), seeds)
    noise = torch.tensor([d.noise for d in defences])[:, None, None]  # [d, 1, 1]
    absent = torch.tensor([d.absent for d in defences])[:, None]  # [d, 1]
    root = torch.tensor(np.linalg.cholesky(COVARIANCE), dtype=torch.float32)
    middle = torch.tensor(MEAN, dtype=torch.float32)
    disc = torch.zeros(*lanes, 6)  # coefficients of `features`
    mean, factor = torch.zeros(*lanes, 2), torch.eye(2).repeat(*lanes, 1, 1)
    marks = sorted({round(k * rounds / visits) for k in range(visits + 1)})
    lines = []

    def draw() -> Tensor:  # [1, s, batch, 2]
        return torch.randn(1, seeds, BATCH, 2, generator=rng)

    for number in range(rounds + 1):
        if number in marks:
            for d, s in np.ndindex(lanes):
                m, L = mean[d, s].double().numpy(), factor[d, s].double().numpy()
                distance = frechet.gaussians(m, L @ L.T, MEAN, COVARIANCE)
                lines.append((number, defences[d].noise, defences[d].absent, s, distance))
        theirs, his = disc, disc
        for _ in range(LOCAL_STEPS):
            phi = features(middle + draw() @ root.T)  # [1, s, batch, 6]
            slope = -torch.sigmoid(-score(phi, theirs))  # of softplus(-t): group 0, D = 1
            theirs = theirs - rate * (_mean(slope, phi) + DECAY * theirs)
            n = draw()
            x = mean[..., None, :] + n @ factor.mT  # [d, s, batch, 2]
            phi = features(x)
            up = torch.sigmoid(score(phi, disc))[..., None] * gradient(x, disc)  # of softplus(t)
            mean = mean + generator_rate * up.mean(-2)
            factor = factor + generator_rate * up.mT @ n.expand_as(up) / BATCH
            his = his - rate * (_mean(torch.sigmoid(score(phi, his)), phi) + DECAY * his)
        sent = theirs + noise * torch.randn(1, seeds, 6, generator=rng)
        here = (torch.rand(1, seeds, generator=rng) >= absent).float()[..., None]  # [d, s, 1]
        average = (his + here * sent) / (1 + here)
        disc = disc + BETA * (average - disc)
    return pd.DataFrame(lines, columns=["round", "noise", "absent", "seed", "distance"])


def features(x: Tensor) -> Tensor:
    """1, x1, x2, x1^2, x1 x2, x2^2 of points [..., 2] -> [..., 6]."""
    a, b = x[..., 0], x[..., 1]
    return torch.stack([torch.ones_like(a), a, b, a * a, a * b, b * b], -1)


def gradient(x: Tensor, disc: Tensor) -> Tensor:
    """Derivative of `score` by the points x [..., batch, 2], for disc [..., 6]."""
    _, c1, c2, c11, c12, c22 = disc[..., None, :].unbind(-1)  # [..., 1] each
    a, b = x.unbind(-1)
    return torch.stack([c1 + 2 * c11 * a + c12 * b, c2 + c12 * a + 2 * c22 * b], -1)


def score(phi: Tensor, disc: Tensor) -> Tensor:
    """The logit of D at features [..., batch, 6] -> [..., batch]."""
    return (phi @ disc[..., None])[..., 0]


def _mean(slope: Tensor, phi: Tensor) -> Tensor:
    """Batch mean of slope [..., batch] times features [..., batch, 6] -> [..., 6]."""
    return (slope[..., None] * phi).mean(-2)
