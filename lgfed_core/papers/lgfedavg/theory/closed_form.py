"""Linear teachers u_m = v + r_m: errors of local, global and interpolated models, in closed form.

Liang et al. 2020 (v2), section 4 and appendix A. Device m of M holds N rows (x, y) with
y = u_m'x + e, u_m = v + r_m, r_m ~ N(0, rho^2 I_d), e ~ N(0, sigma^2), and E[x x'] = c I_d. The
local model is its own least-squares fit, the global one the fit to the rows of all devices, and

    f_alpha = alpha * local + (1 - alpha) * global.

For fresh x and the clean target u_m'x the expected squared error of f_alpha, averaged over
devices, is for *any* M, N, d and any law of x

    E(alpha) = alpha^2 L + (1 - alpha)^2 B + (1 - alpha^2) G                          (`Terms`)

with L the noise of the local fit, B the bias that comes from fitting all devices at once, and G the
noise of the global fit: as `printed`, to leading order (`corrected`), and to the next one
(`finite_sample`: what a simulation with 2,000 rows can resolve). The page has those that are exact
for normal x.

All functions are pure, take floats or broadcastable arrays for ``rho`` and ``sigma``, and give
errors in squared units of y, without the irreducible sigma^2 of a noisy target.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lgfed_core import require
from lgfed_core.errors import SettingsError

Number = float | np.ndarray


@dataclass(frozen=True)
class Inputs:
    """A law of x with E[x x'] = c I.

    ``spread`` is kappa = E|x|^4 / (c^2 d) - 1; it rules how far X'X / N strays from c I:
    E|X'X/(cN) - I|_F^2 = kappa d / N. ``draw(rng, shape)`` gives float64 [*shape, features].
    """

    name: str
    features: int
    c: float
    spread: float
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] = field(
        repr=False, compare=False
    )


def cube(features: int = 20) -> Inputs:
    """x uniform on [-1, 1]^d, the paper's own experiment (v2, C.1): c = 1/3, not 1."""

    def draw(rng, shape):
        return rng.uniform(-1.0, 1.0, (*shape, features))

    return Inputs("cube", features, 1 / 3, features - 0.2, draw)


def normal(features: int = 20, c: float = 1.0) -> Inputs:
    """x ~ N(0, c I). With c = 1 what the paper's appendix A assumes, E[x x'] = I."""

    def draw(rng, shape):
        return np.sqrt(c) * rng.standard_normal((*shape, features))

    return Inputs("normal", features, c, features + 1.0, draw)


def sphere(features: int = 20) -> Inputs:
    """x uniform on the unit sphere: c = 1/d, where the dropped trace c d happens to be 1."""

    def draw(rng, shape):
        x = rng.standard_normal((*shape, features))
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    return Inputs("sphere", features, 1 / features, features - 1.0, draw)


@dataclass(frozen=True)
class Problem:
    """One setting: standard deviations of the device features (rho) and of the label noise (sigma).

    The defaults are those of v2, C.1: d = 20 features, M = 100 devices, N = 2,000 rows each.
    Raises SettingsError for fewer than one device or row, or a deviation that is none.
    """

    rho: Number
    sigma: Number
    inputs: Inputs = field(default_factory=cube)
    devices: int = 100
    rows: int = 2000

    def __post_init__(self):
        require.whole(devices=self.devices, rows=self.rows)
        require.at_least(1, devices=self.devices, rows=self.rows)
        for name, value in (("rho", self.rho), ("sigma", self.sigma)):
            if not (np.isfinite(value) & np.greater_equal(value, 0)).all():
                raise SettingsError(
                    f"{name} is {value}; it is a standard deviation: finite, and not negative"
                )


@dataclass(frozen=True)
class Terms:
    """L, B and G of E(alpha) = alpha^2 L + (1 - alpha)^2 B + (1 - alpha^2) G."""

    local_noise: Number  # L
    bias: Number  # B
    global_noise: Number  # G

    def error(self, alpha: Number) -> Number:
        """E(alpha); alpha broadcasts against the terms. v2, eq. (36).

        E(1) = L is its Proposition 2, E(0) = B + G its Proposition 3 (1 and 2 of its appendix).
        """
        return (
            np.square(alpha) * self.local_noise
            + np.square(1 - np.asarray(alpha)) * self.bias
            + (1 - np.square(alpha)) * self.global_noise
        )

    @property
    def best_weight(self) -> Number:
        """alpha* = B / (B + L - G), where E(alpha) is least; 1/2 exactly where L = B + G.

        v2, Corollary 1. Not defined (nan) when E is flat: one device, or neither noise nor bias.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.divide(self.bias, self.bias + self.local_noise - self.global_noise)[()]


def printed(p: Problem) -> Terms:
    """Theorem 2 as printed (v2, eq. 36).

    E = alpha^2 (d/N) sigma^2 + (1-alpha)^2 ((M-1)/M) rho^2 + (1-alpha^2) (d/(MN)) sigma^2.
    Its best weight is rho^2 / (rho^2 + (d/N) sigma^2), Corollary 1 as printed (eq. 37). It is
    derived under E[x x'] = I, and is wrong there: the bias lacks the trace of E[x x'].
    """
    M, N, d = p.devices, p.rows, p.inputs.features
    s2 = np.square(p.sigma)
    return Terms(d / N * s2, (M - 1) / M * np.square(p.rho), d / (M * N) * s2)


def corrected(p: Problem) -> Terms:
    """Theorem 2 with E[x x'] = c I, to leading order in d/N: `printed`, with its bias times c d.

    The bias of eq. (25) is a trace, Tr(c I) = c d; the noise terms do not depend on c. The best
    weight is c rho^2 / (c rho^2 + sigma^2 / N), for every M >= 2: (M-1)/M and d cancel. It is that
    of `printed` exactly when c = 1/d. Raises SettingsError as `finite_sample` does.
    """
    if p.rows <= p.inputs.spread:
        raise SettingsError(
            f"{p.rows} rows a device with {p.inputs.features} features: the local fit needs more "
            f"than {p.inputs.spread:g} rows for a finite expected error"
        )
    terms = printed(p)
    return Terms(terms.local_noise, p.inputs.c * p.inputs.features * terms.bias, terms.global_noise)


def finite_sample(p: Problem) -> Terms:
    """`corrected`, each term with its next order in 1/N; n = MN, kappa = ``p.inputs.spread``.

    L = (d/N) sigma^2 * N/(N-kappa), G = (d/n) sigma^2 * n/(n-kappa) and
    B = ((M-1)/M) c d rho^2 * n/(n-kappa), from E tr[(X'X)^-1] and E|(sum X'X)^-1 X_m'X_m|_F^2.
    For normal x (kappa = d + 1) L and G are exact; otherwise the relative remainder is of the
    order of d/N^2. Raises SettingsError when N <= kappa: too few rows for a finite local error.
    """
    N, n, kappa = p.rows, p.devices * p.rows, p.inputs.spread
    lead, pooled = corrected(p), n / (n - kappa)
    return Terms(lead.local_noise * N / (N - kappa), lead.bias * pooled, lead.global_noise * pooled)
