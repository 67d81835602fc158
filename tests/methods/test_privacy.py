"""Differential privacy: what leaves a device, and what the accountant says of it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import norm

from lgfed_core.engine import run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FADE, LGFedAvg
from lgfed_core.methods.privacy import ANY_TWO, NOTHING, Privacy
from lgfed_core.models.layout import joined
from toy import SGD, grouped, models

RNG = np.random.default_rng


def test_long_changes_are_clipped_and_short_ones_are_not():
    before = torch.tensor([1.0, 1.0])
    sent = Privacy(clip=5.0, noise=0.0).privatise
    assert sent(before, before + torch.tensor([6.0, 8.0]), RNG(0)).tolist() == [4.0, 5.0]
    assert sent(before, before + torch.tensor([0.3, 0.4]), RNG(0)).tolist() == pytest.approx(
        [1.3, 1.4]
    )
    assert sent(before, before, RNG(0)).tolist() == [1.0, 1.0]


def test_noise_has_the_deviation_it_says():
    before = torch.zeros(20_000)
    sent = Privacy(clip=0.5, noise=3.0).privatise(before, before, RNG(0))
    assert sent.std().item() == pytest.approx(1.5, rel=0.03)
    assert abs(sent.mean().item()) < 0.04


@pytest.mark.parametrize("bad", [dict(clip=0.0, noise=1.0), dict(clip=1.0, noise=-1.0)])
def test_impossible_settings_are_named(bad):
    with pytest.raises(SettingsError, match="clip"):
        Privacy(**bad)


def test_a_run_sends_what_is_veiled_and_only_that():
    federation = grouped()
    free = run(federation, FADE(beta=1.0), SGD, 2, workers=1)
    loose = Privacy(clip=1e6, noise=0.0)
    same = run(federation, FADE(upload=[loose], beta=1.0), SGD, 2, workers=1)
    assert torch.allclose(models(free), models(same), atol=1e-6)
    tight = Privacy(clip=1e-3, noise=0.0)
    held = run(federation, FADE(upload=[tight], beta=1.0), SGD, 2, workers=1)
    start = run(federation, FADE(beta=1.0), SGD, 0, workers=1).tensors["shared"]
    assert (held.tensors["shared"] - start).norm() <= 2e-3 + 1e-6
    noisy = [
        run(
            replace(federation, seeds=[seed]),
            FADE(upload=[Privacy(1e-3, 1.0)], beta=1.0),
            SGD,
            1,
            workers=1,
        ).tensors["shared"]
        for seed in (0, 0, 1)
    ]
    assert torch.equal(noisy[0], noisy[1]) and not torch.equal(noisy[0], noisy[2])


@dataclass(frozen=True)
class Shifted:
    by: float

    def privatise(self, before, upload, rng):
        return upload + self.by


@pytest.mark.parametrize("lanes", ["looped", "batched"])
def test_treatments_go_in_order_on_any_method(lanes):
    federation, still, clip = grouped(), replace(SGD, lr=0.0), Privacy(clip=0.5, noise=0.0)
    start = joined(federation.net)
    for upload, moved in (([Shifted(1.0), clip], 0.5), ([clip, Shifted(1.0)], len(start) ** 0.5)):
        method = LGFedAvg(layers=frozenset(dict(federation.net.named_parameters())), upload=upload)
        out = run(federation, method, still, 1, lanes=lanes, workers=1).tensors["shared"][0]
        assert (out - start).norm().item() == pytest.approx(moved, rel=1e-4)


def test_epsilon_is_that_of_the_gaussian_mechanism():
    pytest.importorskip("opacus")
    delta = 1e-5

    def analytic(sigma: float) -> float:  # Balle and Wang 2018, theorem 8, sensitivity 1
        def gap(e):
            a, b = 1 / (2 * sigma), e * sigma
            return norm.cdf(a - b) - np.exp(e) * norm.cdf(-a - b) - delta

        return brentq(gap, 0, 100)

    for uploads in (1, 16):  # k uploads with noise sigma are one with sigma / sqrt(k)
        found, exact = Privacy(1.0, 4.0).epsilon(uploads, delta), analytic(4.0 / uploads**0.5)
        assert exact <= found <= 1.02 * exact  # an accountant errs on the safe side
    assert 1e4 < Privacy(1.0, 0.003).epsilon(30, delta) < 1e8  # at once, without gigabytes
    assert Privacy(1.0, 0.0).epsilon(1, delta) == float("inf")
    assert Privacy(9.0, 4.0).epsilon(1, delta) == Privacy(1.0, 4.0).epsilon(1, delta), (
        "in units of C"
    )
    assert Privacy(1.0, 1.0).epsilon(0, delta) == 0.0


def test_two_changes_are_twice_as_far_apart_as_a_change_and_none():
    pytest.importorskip("opacus")
    sent = Privacy(clip=0.5, noise=0.0).privatise
    before, far = torch.zeros(2), torch.tensor([9.0, 0.0])
    one, other = sent(before, far, RNG(0)), sent(before, -far, RNG(0))
    assert (one - other).norm() == ANY_TWO * 0.5 and one.norm() == NOTHING * 0.5
    blurred = Privacy(clip=0.5, noise=4.0)
    assert blurred.epsilon(3, 1e-5, ANY_TWO) == Privacy(0.5, 2.0).epsilon(3, 1e-5)
    assert blurred.epsilon(3, 1e-5, NOTHING) == blurred.epsilon(3, 1e-5)
    with pytest.raises(SettingsError, match="apart is 0"):
        blurred.epsilon(3, 1e-5, 0.0)
