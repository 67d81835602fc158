"""Local, global and interpolated linear models: closed forms, and the simulation against them."""

import numpy as np
import pytest

from lgfed_core.errors import SettingsError
from lgfed_core.papers.lgfedavg.theory import best_weight, closed_form as theory
from lgfed_core.papers.lgfedavg.theory.best_weight import simulate
from lgfed_core.papers.lgfedavg.theory.closed_form import Problem
from toy import page

# sigma, rho -> alpha* printed and corrected, local and global error printed and corrected
PINNED = {
    (1.5, 0.5): (0.917, 0.987, 0.0225, 0.2477, 0.0225, 1.6502),
    (1.5, 0.1): (0.308, 0.748, 0.0225, 0.0101, 0.0225, 0.0662),
    (1.5, 0.06): (0.138, 0.516, 0.0225, 0.0038, 0.0225, 0.0240),
    (1.5, 0.02): (0.017, 0.106, 0.0225, 0.0006, 0.0225, 0.0029),
    (2.25, 0.5): (0.832, 0.971, 0.0506, 0.2480, 0.0506, 1.6505),
    (2.25, 0.1): (0.165, 0.568, 0.0506, 0.0104, 0.0506, 0.0665),
    (2.25, 0.06): (0.066, 0.322, 0.0506, 0.0041, 0.0506, 0.0243),
    (2.25, 0.02): (0.008, 0.050, 0.0506, 0.0009, 0.0506, 0.0031),
}
PAGE = page("lgfedavg/theory")
LAWS = {"cube": theory.cube(), "normal": theory.normal(), "sphere": theory.sphere()}


@pytest.fixture(scope="module")
def samples():
    """The paper's sizes, 30 draws of each law: those of the notebook at quick scale."""
    return {name: simulate(law, 30, seed=0) for name, law in LAWS.items()}


@pytest.mark.parametrize("setting", PINNED)
def test_printed_and_corrected_values(setting):
    sigma, rho = setting
    p = Problem(rho, sigma)
    said, right = theory.printed(p), theory.corrected(p)
    assert np.round([said.best_weight, right.best_weight], 3) == pytest.approx(
        PINNED[setting][:2], abs=1e-12
    )
    found = [terms.error(alpha) for terms in (said, right) for alpha in (1, 0)]
    assert found == pytest.approx(PINNED[setting][2:], abs=6e-5)


def test_corrected_weight_of_other_laws():
    weight = theory.corrected(Problem(0.1, 1.5, theory.normal())).best_weight
    assert weight == pytest.approx(0.8989, abs=1e-4)
    for law in (theory.sphere(), theory.normal(c=1 / 20)):  # c = 1/d: the printed formula is right
        p = Problem(0.1, 1.5, law)
        right, said = theory.corrected(p), theory.printed(p)
        assert right.best_weight == pytest.approx(said.best_weight, rel=1e-12)
        assert right.error(0.3) == pytest.approx(said.error(0.3), rel=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_measured_weight_is_the_corrected_one(samples, law):
    """Within two standard errors in all eight settings; the printed one only where c = 1/d."""
    found = PAGE.table([samples[law]])
    assert len(found) == 8
    assert found["z"].abs().max() < 2, found
    off = (found["measured"] - found["printed"]).abs()
    if law == "sphere":  # leading order: right up to a(1-a) d/N
        assert (off < 2 * found["se"] + 0.0026).all(), found
    else:
        assert (off > 15 * found["se"]).all(), found
        assert off.max() > 0.4


@pytest.mark.parametrize("law", LAWS)
def test_measured_errors_follow_the_formula(samples, law):
    for (sigma, rho), alpha in zip(PINNED, np.linspace(0, 1, 8), strict=True):
        measured = best_weight.errors(samples[law], rho, sigma, alpha)[:, 0]
        expected = theory.finite_sample(Problem(rho, sigma, LAWS[law])).error(alpha)
        assert abs(measured.mean() - expected) < 3.5 * measured.std(ddof=1) / np.sqrt(30)


def test_claims(samples):
    mixed = best_weight.claim_l10(samples["cube"])
    assert mixed.p < 1e-3 and mixed.estimate > 0
    assert best_weight.claim_l11(samples.values()).p_against < 1e-20
    assert best_weight.claim_l11([samples["normal"]]).p_against < 1e-20
    assert best_weight.claim_l11([samples["sphere"]]).p < 0.05
    assert best_weight.claim_l11(samples.values(), theory.corrected).p < 0.05


def test_simulation_equals_a_plain_loop():
    """Devices fitted one by one to y itself, with numpy, tested row by row."""
    law, M, N, T, rho, sigma, alpha = theory.cube(3), 4, 30, 7, 0.4, 1.3, 0.35
    draws = simulate(law, 2, devices=M, rows=N, test_rows=T, seed=5)
    rng = np.random.default_rng((5, 201, 1))  # the second draw
    x = rng.uniform(-1, 1, (M, N, 3))
    v = rng.uniform(0, 1, 3)
    u = v + rho * rng.standard_normal((M, 3))
    y = np.stack([x[m] @ u[m] for m in range(M)]) + sigma * rng.standard_normal((M, N))
    shared = np.linalg.lstsq(x.reshape(-1, 3), y.ravel(), rcond=None)[0]
    rng = np.random.default_rng((5, 202, 1))  # its test rows
    fresh, e = rng.uniform(-1, 1, (M, T, 3)), sigma * rng.standard_normal((M, T))
    population, test = [], []
    for m in range(M):
        local = np.linalg.lstsq(x[m], y[m], rcond=None)[0]
        w = alpha * local + (1 - alpha) * shared
        population.append(law.c * np.sum((w - u[m]) ** 2))
        target = fresh[m] @ u[m] + e[m]
        test.append(np.mean((fresh[m] @ w - target) ** 2 - e[m] ** 2) + sigma**2)
    for on, values in (("population", population), ("test", test)):
        found = best_weight.errors(draws, rho, sigma, alpha, on)[1, 0]
        assert found == pytest.approx(np.mean(values), rel=1e-9)


def test_a_draw_does_not_depend_on_its_company():
    law = theory.normal(3)
    alone, tested = (simulate(law, 1, devices=3, rows=9, test_rows=n).population for n in (0, 4))
    np.testing.assert_array_equal(alone, tested)
    few, many = (simulate(law, n, devices=3, rows=9, seed=2).population for n in (2, 5))
    np.testing.assert_array_equal(few, many[:2])
    assert not np.allclose(few, simulate(law, 2, devices=3, rows=9, seed=3).population)


def test_exact_for_normal_inputs_however_few_rows():
    """M = 3, N = 20, d = 5: leading order is far off, `gaussian` is not."""
    law = theory.normal(5, c=0.7)
    draws = simulate(law, 20_000, devices=3, rows=20, seed=0)
    p = Problem(0.8, 1.1, law, devices=3, rows=20)
    exact, rough = PAGE.gaussian(p), theory.corrected(p)
    noise = best_weight.quadratic(draws, 0.0, 1.1)
    bias = best_weight.quadratic(draws, 0.8, 0.0)[:, 0]
    measured = {"local_noise": noise.sum(1), "global_noise": noise[:, 0], "bias": bias}
    for name, values in measured.items():
        se = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - getattr(exact, name)) < 3 * se, name
        assert abs(values.mean() - getattr(rough, name)) > 10 * se, name
    cross = noise[:, 0] + noise[:, 1] / 2  # mean product of the two noises: G, exactly
    assert abs(cross.mean() - exact.global_noise) < 3 * cross.std() / np.sqrt(len(cross))
    weight, se, _ = best_weight.optimum(draws, 0.8, 1.1)
    assert abs(weight - exact.best_weight) < 3 * se
    assert abs(weight - rough.best_weight) > 10 * se


@pytest.mark.parametrize("law", [theory.cube(4), theory.sphere(4)], ids=lambda law: law.name)
def test_next_order_for_other_inputs(law):
    draws = simulate(law, 10_000, devices=3, rows=40, seed=1)
    p = Problem(0.3, 1.0, law, devices=3, rows=40)
    weight, se, _ = best_weight.optimum(draws, 0.3, 1.0)
    assert abs(weight - theory.finite_sample(p).best_weight) < 3 * se
    assert abs(weight - theory.corrected(p).best_weight) > 8 * se


def test_arrays_of_settings_and_one_device_which_has_no_best_weight():
    rho, sigma = np.array([0.1, 0.5]), np.array([[1.5], [2.25]])
    found = theory.corrected(Problem(rho, sigma)).best_weight
    assert found.shape == (2, 2)
    assert found[1, 0] == theory.corrected(Problem(0.1, 2.25)).best_weight
    p = Problem(0.1, 1.5, devices=1)
    assert np.isnan(theory.corrected(p).best_weight)
    assert theory.corrected(p).error(0.2) == pytest.approx(theory.corrected(p).error(1))


DRAWS = simulate(theory.cube(2), 1, devices=2, rows=3)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: theory.finite_sample(Problem(0.1, 1.0, rows=19)), "more than 19.8 rows"),
        (lambda: theory.corrected(Problem(0.1, 1.0, rows=10)), "more than 19.8 rows"),
        (lambda: PAGE.gaussian(Problem(0.1, 1.0)), "normal x only"),
        (lambda: Problem(-0.1, 1.0), "rho is .*; it is a standard deviation"),
        (lambda: Problem(np.array([0.1, np.inf]), 1.0), "rho is .*; it is a standard deviation"),
        (lambda: Problem(np.nan, 1.0), "rho is .*; it is a standard deviation"),
        (lambda: Problem(0.1, 1.0, devices=0), "devices is 0; it must be at least 1"),
        (lambda: Problem(0.1, 1.0, devices=1.5), "devices is 1.5"),
        (lambda: simulate(theory.cube(), 1, devices=2, rows=19), "as many rows as features"),
        (lambda: best_weight.quadratic(DRAWS, 0.1, 1.0, on="test"), "no test rows"),
        (lambda: best_weight.quadratic(DRAWS, 0.1, 1.0, on="elsewhere"), "'elsewhere'"),
    ],
)
def test_requests_that_cannot_be_met(asked, said):
    with pytest.raises(SettingsError, match=said):
        asked()
    assert np.isnan(best_weight.optimum(DRAWS, 0.1, 1.0)[1])
