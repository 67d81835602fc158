"""The steps of the derivation in book/lgfedavg/theory.ipynb, checked symbolically."""

import numpy as np
import pytest
import sympy as sp

from lgfed_core.papers.lgfedavg.theory import closed_form as theory, minimax
from lgfed_core.papers.lgfedavg.theory.closed_form import Problem
from toy import page

M, N, d, c, s2, rho2, alpha = sp.symbols("M N d c s2 rho2 alpha", positive=True)
L, B, G = sp.symbols("L B G", positive=True)
CURVE = alpha**2 * L + (1 - alpha) ** 2 * B + (1 - alpha**2) * G
BIAS = (M - 1) / M * c * d * rho2
LOCAL, GLOBAL = d / N * s2, d / (M * N) * s2
BEST = B / (B + L - G)
PRINTED, CORRECTED = rho2 / (rho2 + d * s2 / N), c * rho2 / (c * rho2 + s2 / N)
n = M * N
FACTOR = (n - 2) * (n**2 + 3 * n - 2 * d - 2) / ((n - 1) * (n + 2) * (n - d - 1))  # of B
kappa, small = sp.symbols("kappa small")
# E tr (X'X/(cN))^2 over rows i, i', with E|x|^4 / c^2 = (kappa + 1) d
SQUARE = (N * (kappa + 1) * d + N * (N - 1) * d) / N**2
FIRST = sp.series(FACTOR.subs(N, 1 / (M * small)), small, 0, 2).removeO()
VANISH = {
    "variances L and G, squared bias B, and a covariance of G add up to the curve": CURVE
    - (alpha**2 * L + (1 - alpha) ** 2 * (B + G) + 2 * alpha * (1 - alpha) * G),
    "the best weight is where the curve is flat": sp.diff(CURVE, alpha).subs(alpha, BEST),
    "and that is its minimum, as L > G": sp.diff(CURVE, alpha, 2) - 2 * (B + L - G),
    "in which M and d cancel": BEST.subs({B: BIAS, L: LOCAL, G: GLOBAL}) - CORRECTED,
    "gain over local": CURVE.subs(alpha, 1) - CURVE.subs(alpha, BEST) - (L - G) ** 2 / (B + L - G),
    "gain over global": CURVE.subs(alpha, 0) - CURVE.subs(alpha, BEST) - B**2 / (B + L - G),
    "the best weight is a half where both tie": (2 * BEST - 1) * (B + L - G) - (B + G - L),
    "E|X'X/(cN) - I|_F^2": SQUARE - 2 * d + d - kappa * d / N,
    "the next order agrees with the exact one": FIRST - 1 - (d + 1) * small,
}


@pytest.mark.parametrize("step", VANISH)
def test_steps_of_the_proof(step):
    assert sp.simplify(VANISH[step]) == 0


def test_the_printed_weight_is_right_only_for_c_one_over_d():
    assert sp.solve(sp.numer(sp.together(PRINTED - CORRECTED)), c) == [1 / d]


@pytest.mark.parametrize("devices", [2, 3, 7])
def test_variance_of_a_device_about_the_mean(devices):
    """r_m less the mean r: (M-1)/M rho^2 per coordinate; squared under E[xx'] = c I, a trace."""
    r = sp.symbols(f"r1:{devices + 1}")
    off = sp.expand(r[0] - sum(r) / devices)
    variance = sum(off.coeff(x) ** 2 for x in r) * rho2
    assert sp.simplify(variance - (BIAS / (c * d)).subs(M, devices)) == 0
    trace = ((variance * sp.eye(3)) * (c * sp.eye(3))).trace()
    assert sp.simplify(trace - BIAS.subs({M: devices, d: 3})) == 0


def test_moments_of_each_law():
    x = sp.symbols("x", real=True)
    second, fourth = (sp.integrate(x**k / 2, (x, -1, 1)) for k in (2, 4))
    norm4 = d * fourth + d * (d - 1) * second**2
    assert second == sp.Rational(1, 3)
    cube = theory.cube(7)
    assert float((norm4 / second**2 / d - 1).subs(d, 7)) == pytest.approx(cube.spread)
    norm4 = 3 * d + d * (d - 1)  # standard normal
    assert float((norm4 / d - 1).subs(d, 7)) == theory.normal(7).spread
    sphere = theory.sphere(7)  # |x| = 1
    assert sphere.spread == pytest.approx(1 / sphere.c**2 / 7 - 1)


def gaussian_bias():
    """B / (c rho^2) for normal x, from moments of the matrix beta law (zonal polynomials)."""
    p, half = N / 2, n / 2
    zonal2 = p * (p + 1) / (half * (half + 1)) * d * (d + 2) / 3
    zonal11 = p * (p - sp.S.Half) / (half * (half - sp.S.Half)) * 2 * d * (d - 1) / 3
    a, b = sp.symbols("a b")  # E[U_ij U_kl] = a d_ij d_kl + b (d_ik d_jl + d_il d_jk)
    moments = [
        a * d**2 + 2 * b * d - (zonal2 + zonal11),  # E (tr U)^2
        a * d + b * (d**2 + d) - (zonal2 - zonal11 / 2),  # E tr U^2
    ]
    found = sp.solve(moments, [a, b], dict=True)[0]
    traces = d * (n * d - 2) / (n - d - 1)  # E tr A tr A^{-1} of a Wishart matrix
    square = (found[a] + found[b]) * d + found[b] * traces  # E|A^{-1} A_m|_F^2
    return d - 2 * d / M + M * square


def test_exact_bias_for_normal_inputs():
    assert sp.simplify(gaussian_bias() - (M - 1) / M * d * FACTOR) == 0
    one = 1 - 2 / M + M * (N / 2) * (N / 2 + 1) / ((n / 2) * (n / 2 + 1))  # d = 1: U is a Beta
    assert sp.simplify(((M - 1) / M * FACTOR).subs(d, 1) - one) == 0
    p = Problem(0.3, 1.0, theory.normal(5, c=0.7), devices=3, rows=20)
    value = float((c * rho2 * gaussian_bias()).subs({M: 3, N: 20, d: 5, c: 0.7, rho2: 0.09}))
    assert page("lgfedavg/theory").gaussian(p).bias == pytest.approx(value, rel=1e-12)


def test_the_copied_attribute_in_closed_form():
    """X = Y = P: q flips with probability a; F = log 2 - h(a) - log(1 - a), least where F' = 0."""
    a = sp.symbols("a", positive=True)
    F = sp.log(2) + a * sp.log(a) + (1 - a) * sp.log(1 - a) - sp.log(1 - a)
    flip = float(sp.nsolve(sp.diff(F, a), 0.2))
    found = minimax.solve(minimax.COPIED)
    np.testing.assert_allclose(found.encoder, [[1 - flip, flip], [flip, 1 - flip]], atol=1e-9)
    assert found.value == pytest.approx(float(F.subs(a, flip) - sp.log(2)), abs=1e-12)
