"""How far clients differ: Fréchet distance and Gamma (Rieger et al., 2020, eqs 2 and 3).

    d2(D_1, D_2) = |mu_1 - mu_2|^2 + Tr(S_1 + S_2 - 2 (S_1 S_2)^(1/2))                      (2)
    Gamma = mean over clients k of d2(D_k, D_all others)                                    (3)

The root of S_1 S_2, which is not symmetric, is never formed: general matrix roots become complex
where a covariance is singular, and a client with fewer rows than dimensions always has such a one.
Its trace is a sum of singular values instead. With S_i = A_i' A_i,

    Tr (S_1 S_2)^(1/2) = || A_1 A_2' ||_*   (nuclear norm),

as S_1 S_2 has the non-zero eigenvalues of (A_1 A_2')(A_1 A_2')'. For samples, A_i is the centred
data over sqrt(n_i - 1): real, exact for singular covariances, and never larger than needed.

With many more rows than dimensions the factor of "all others" is the expensive part, as it is
nearly the same for every client. There their covariance S_2 is what the client's moments leave of
those of all rows, and the singular values are the roots of the eigenvalues of A_1 S_2 A_1', which
is symmetric.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgfed_core.errors import PartitionError, SettingsError

MANY = 4  # rows per dimension from which moments are cheaper than factors


def gaussians(mean_1: ArrayLike, cov_1: ArrayLike, mean_2: ArrayLike, cov_2: ArrayLike) -> float:
    """Equation (2) for known Gaussians: means [d], symmetric covariances [d, d].

    Raises SettingsError for others, and for a covariance with a negative eigenvalue.

    >>> gaussians([0, 0], [[4, 0], [0, 9]], [3, 0], [[1, 0], [0, 1]])  # 9 + (2-1)^2 + (3-1)^2
    14.0
    """
    one, two = np.asarray(mean_1, float), np.asarray(mean_2, float)
    if one.ndim != 1 or one.shape != two.shape or not np.isfinite([one, two]).all():
        raise SettingsError(f"means {one} and {two}; give finite numbers, as many for both")
    return _distance(one - two, *(_factor(cov, len(one)) for cov in (cov_1, cov_2)))


def samples(x_1: ArrayLike, x_2: ArrayLike) -> float:
    """Equation (2) for the Gaussians with the mean and covariance of rows x_1 [n, d], x_2 [m, d].

    Covariances have n - 1 below, as in the released code. Raises SettingsError for a single row.
    """
    one, two = _rows(x_1), _rows(x_2)
    if one.shape[1] != two.shape[1]:
        raise SettingsError(f"rows have {one.shape[1]} and {two.shape[1]} numbers; give as many")
    return _distance(one.mean(0) - two.mean(0), _spread(one), _spread(two))


def heterogeneity(x: ArrayLike, client: ArrayLike) -> float:
    """Gamma, equation (3): the mean of `per_client` over clients. 0 for clients that are alike."""
    return float(np.mean(list(per_client(x, client).values())))


def per_client(x: ArrayLike, client: ArrayLike) -> dict[Hashable, float]:
    """d2 between each client's rows and all others': x [n, d], client [n] -> {client: d2}.

    Raises PartitionError for one client alone, which has no others, and for a client with a single
    row, which has no covariance.
    """
    x, client = _rows(x), np.asarray(client)
    if client.shape != (len(x),):
        raise PartitionError(f"{client.shape} client numbers for {len(x)} rows; give one for each")
    names, sizes = np.unique(client, return_counts=True)
    if len(names) < 2:
        raise PartitionError("one client has no other clients to differ from; Gamma needs two")
    if (sizes < 2).any():
        raise PartitionError(
            f"client {names[sizes < 2][0]} has a single row and no covariance; use fewer clients"
        )
    if len(x) - sizes.max() > MANY * x.shape[1]:
        return _by_moments(x, client)
    return {k.item(): samples(x[client == k], x[client != k]) for k in names}


def _by_moments(x: NDArray, client: NDArray) -> dict[Hashable, float]:
    """`per_client` from sums of products, for more rows than dimensions: one [d, d] per client."""
    x = x - x.mean(0)
    total, out = x.T @ x, {}  # [d, d]; the sum over all rows is zero
    for k in np.unique(client):
        mine = x[client == k]
        n, m = len(mine), len(x) - len(mine)
        mean = mine.mean(0)
        others = -n * mean / m  # their mean
        cov = (total - mine.T @ mine - m * np.outer(others, others)) / (m - 1)  # S_2
        spread = _spread(mine)  # A_1 [min(n, d), d]
        roots = np.sqrt(np.linalg.eigvalsh(spread @ cov @ spread.T).clip(0))
        shift = mean - others
        d2 = shift @ shift + (spread**2).sum() + np.trace(cov) - 2 * roots.sum()
        out[k.item()] = float(np.maximum(0.0, d2))
    return out


def _distance(shift: NDArray, a_1: NDArray, a_2: NDArray) -> float:
    """From the difference of means [d] and factors a_i [r_i, d] with S_i = a_i' a_i."""
    root = np.linalg.svd(a_1 @ a_2.T, compute_uv=False).sum()
    total = shift @ shift + (a_1**2).sum() + (a_2**2).sum() - 2 * root
    return float(np.maximum(0.0, total))  # rounding may leave -1e-12 for equal ones


def _factor(cov: ArrayLike, d: int) -> NDArray:
    """A with A'A = cov [d, d]; eigenvalues that rounding made negative count as zero."""
    cov = np.asarray(cov, float)
    if cov.shape != (d, d) or not np.isfinite(cov).all() or not np.allclose(cov, cov.T):
        raise SettingsError(f"a covariance {cov.tolist()}; give a symmetric one, {d} x {d}")
    values, vectors = np.linalg.eigh(cov)
    if values.min() < -1e-8 * max(1.0, abs(values).max()):
        raise SettingsError(f"a covariance with eigenvalue {values.min():.3g}; none is negative")
    return np.sqrt(values.clip(0))[:, None] * vectors.T


def _spread(x: NDArray) -> NDArray:
    """A [min(n, d), d] with A'A the covariance of x [n, d]."""
    if len(x) < 2:
        raise SettingsError("a single row has no covariance; give at least two")
    centred = (x - x.mean(0)) / np.sqrt(len(x) - 1)
    return np.asarray(np.linalg.qr(centred, mode="r")) if len(x) > x.shape[1] else centred


def _rows(x: ArrayLike) -> NDArray:
    x = np.asarray(x, float)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise SettingsError(f"embeddings of shape {x.shape}; expected finite numbers [n, d]")
    return x
