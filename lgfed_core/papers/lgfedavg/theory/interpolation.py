"""The experiment behind the theory: local, global and interpolated linear models, simulated.

Liang et al. 2020 (v2), section 5.1, appendix C.1, Figures 2a, 2b and 4: v ~ U[0,1]^d,
u_m = v + rho z_m, y = u_m'x + sigma e, 100 devices with 2,000 training and 1,000 test rows each.

Both fits are linear in y, and y = X v + rho X z_m + sigma e has three parts. So a draw is made
once, its three parts are fitted once, and every (rho, sigma, alpha) follows by adding them up: what
is kept of a draw is the matrix of inner products of the parts' errors, averaged over devices.
Settings therefore share their draws, and differ in scale alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lgfed_core.errors import SettingsError
from lgfed_core.seeds import Purpose, stream

from .closed_form import Inputs

_ELEMENTS = 8_000_000  # of X in one batch of draws: 64 MB


@dataclass(frozen=True)
class Draws:
    """Independent repetitions of the experiment, for all rho and sigma at once. float64, CPU.

    Parts are numbered v, z, e; models local, global. With a_p the error of model a on part p:
    ``population`` [D, 2, 3, 2, 3] is the mean over devices of c (a_p . b_q), the expectation over
    fresh x; ``test`` [D, 2, 3, 2, 3] the same averaged over each device's test rows; ``noise``
    [D, 2, 3] the mean of a_p(x) e over the test rows. The latter two are None without test rows.
    """

    inputs: Inputs
    devices: int
    rows: int
    population: np.ndarray
    test: np.ndarray | None = None
    noise: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.population)


def simulate(
    inputs: Inputs,
    draws: int = 20,
    *,
    devices: int = 100,
    rows: int = 2000,
    test_rows: int = 0,
    seed: int = 0,
) -> Draws:
    """Draw data, fit local and global models by least squares, measure their errors.

    Draw i depends on (seed, i) alone, and its models not on the test rows. The laws use the same
    numbers: on the sphere are the points of the normal law, scaled to length 1. Raises
    SettingsError when a device has fewer rows than features.
    """
    if rows < inputs.features or draws < 1:
        raise SettingsError(
            f"{draws} draws with {rows} rows a device: at least 1 draw and as many rows as "
            f"features ({inputs.features}) are needed"
        )
    per_batch = max(1, _ELEMENTS // (devices * (rows + test_rows) * inputs.features))
    found = [
        _batch(inputs, range(i, min(i + per_batch, draws)), devices, rows, test_rows, seed)
        for i in range(0, draws, per_batch)
    ]
    parts = zip(*found, strict=True)
    stacked = (None if part[0] is None else np.concatenate(part) for part in parts)
    return Draws(inputs, devices, rows, *stacked)


def _batch(inputs, numbers, devices, rows, test_rows, seed):
    """Draws ``numbers``: (population, test, noise) as in `Draws`."""
    streams = [stream(seed, Purpose.LINEAR_TRAINING, i) for i in numbers]
    made = [_training(inputs, devices, rows, rng) for rng in streams]
    x, v, z, e = (torch.from_numpy(np.stack(part)) for part in zip(*made, strict=True))
    truth = torch.stack([v, z, torch.zeros_like(z)], dim=-1)  # [B, M, d, 3]: u_m part by part
    y = x @ truth  # [B, M, N, 3]
    y[..., 2] += e
    gram, moment = x.mT @ x, x.mT @ y  # [B, M, d, d], [B, M, d, 3]
    local = torch.linalg.solve(gram, moment)
    shared = torch.linalg.solve(gram.sum(1), moment.sum(1))[:, None]  # [B, 1, d, 3]
    error = torch.stack([local - truth, shared - truth], dim=-2)  # [B, M, d, 2, 3]
    population = inputs.c * torch.einsum("bmdap,bmdcq->bapcq", error, error) / devices
    if not test_rows:
        return population.numpy(), None, None
    streams = [stream(seed, Purpose.LINEAR_TEST, i) for i in numbers]
    made = [_test(inputs, devices, test_rows, rng) for rng in streams]
    x, e = (torch.from_numpy(np.stack(part)) for part in zip(*made, strict=True))
    off = x @ error.flatten(-2)  # [B, M, T, 6]
    count = devices * test_rows
    test = torch.einsum("bmti,bmtj->bij", off, off).reshape(-1, 2, 3, 2, 3) / count
    noise = torch.einsum("bmti,bmt->bi", off, e).reshape(-1, 2, 3) / count
    return population.numpy(), test.numpy(), noise.numpy()


def _training(inputs, devices, rows, rng):
    """One draw: x [M, N, d], v and z [M, d], e [M, N]."""
    x = inputs.draw(rng, (devices, rows))
    v = np.broadcast_to(rng.uniform(0.0, 1.0, inputs.features), (devices, inputs.features))
    z = rng.standard_normal((devices, inputs.features))
    return x, v, z, rng.standard_normal((devices, rows))


def _test(inputs, devices, rows, rng):
    """The test rows of one draw: x [M, T, d], e [M, T]."""
    return inputs.draw(rng, (devices, rows)), rng.standard_normal((devices, rows))
