"""Differential privacy: what leaves a device, and what the accountant says of it."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import norm

from lgfed_core.engine import run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FADE, FedAvg, LGFedAvg
from lgfed_core.methods.privacy import ANY_TWO, NOTHING, Privacy, spent
from lgfed_core.models.layout import joined
from lgfed_core.testing.privacy_oracle import Claimed, PrivacyError, check, require
from toy import SGD, grouped

RNG = np.random.default_rng


def test_long_changes_are_clipped_and_short_ones_are_not():
    before = torch.tensor([1.0, 1.0])
    sent = Privacy(clip=5.0, noise=0.0).treat
    for change, clipped in (([6.0, 8.0], [3.0, 4.0]), ([0.3, 0.4], [0.3, 0.4]), ([0.0] * 2,) * 2):
        found = sent(before, before + torch.tensor(change), RNG(0)) - before
        assert found.tolist() == pytest.approx(clipped)


def test_noise_has_the_deviation_it_says():
    before = torch.zeros(20_000)
    sent = Privacy(clip=0.5, noise=3.0).treat(before, before, RNG(0))
    assert sent.std().item() == pytest.approx(1.5, rel=0.03)
    assert abs(sent.mean().item()) < 0.04


def test_a_run_sends_what_is_veiled_and_only_that():
    def sent(*upload, rounds=2, seed=0):
        fed = replace(grouped(), seeds=[seed])
        return run(fed, FADE(upload=upload, beta=1.0), SGD, rounds, workers=1).tensors["shared"]

    loose, tight = Privacy(clip=1e6, noise=0.0), Privacy(clip=1e-3, noise=0.0)
    assert torch.allclose(sent(), sent(loose), atol=1e-6)
    assert (sent(tight) - sent(rounds=0)).norm() <= 2e-3 + 1e-6
    noisy = [sent(Privacy(1e-3, 1.0), rounds=1, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(noisy[0], noisy[1]) and not torch.equal(noisy[0], noisy[2])


@dataclass(frozen=True)
class Shifted:
    by: float

    def treat(self, before, upload, rng):
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
    in_units_of_c = [Privacy(clip, 4.0).epsilon(1, delta) for clip in (1.0, 9.0)]
    assert in_units_of_c[0] == in_units_of_c[1]
    assert Privacy(1.0, 1.0).epsilon(0, delta) == 0.0


def test_two_changes_are_twice_as_far_apart_as_a_change_and_none():
    pytest.importorskip("opacus")
    sent = Privacy(clip=0.5, noise=0.0).treat
    before, far = torch.zeros(2), torch.tensor([9.0, 0.0])
    one, other = sent(before, far, RNG(0)), sent(before, -far, RNG(0))
    assert (one - other).norm() == ANY_TWO * 0.5 and one.norm() == NOTHING * 0.5
    blurred = Privacy(clip=0.5, noise=4.0)
    assert blurred.epsilon(3, 1e-5, ANY_TWO) == Privacy(0.5, 2.0).epsilon(3, 1e-5)
    assert blurred.epsilon(3, 1e-5, NOTHING) == blurred.epsilon(3, 1e-5)
    with pytest.raises(SettingsError, match="apart is 0"):
        blurred.epsilon(3, 1e-5, 0.0)


# The oracle lets right averages pass, the engine's own among them, and names each wrong one.


C, Z, M = 0.5, 0.8, 10
CLAIMED = Claimed(clip=C, noise=Z, devices=M)
HALF = Claimed(clip=C, noise=0.1, devices=M, sampling=0.5)
FIRST = CLAIMED.lengths[0]


def clipped(uploads, to=C):
    lengths = np.linalg.norm(uploads, axis=1, keepdims=True)
    return uploads * np.minimum(1, to / np.maximum(lengths, 1e-12))


def blur(size, rng, z=Z):
    return z * C * rng.standard_normal(size)


def right(uploads, rng, z=Z):
    return (clipped(uploads).sum(0) + blur(uploads.shape[1], rng, z)) / M


def poisson(uploads, rng, sampling=0.5, z=0.1):
    return right(uploads[rng.random(len(uploads)) < sampling], rng, z)


def fixed_share(uploads, rng):
    drawn = rng.permutation(len(uploads))[: round(len(uploads) * HALF.sampling)]
    return right(uploads[drawn], rng, HALF.noise)


def engine(uploads, rng):
    """Each device adds its own noise, z / sqrt(m) each, as `Privacy` does."""
    privacy = Privacy(C, Z / M**0.5)
    before = torch.zeros(uploads.shape[1])
    sent = [privacy.treat(before, torch.from_numpy(u).float(), rng) for u in uploads]
    return FedAvg(weighted=False).aggregate(torch.stack(sent), None).numpy()


@pytest.mark.parametrize(
    ("release", "claimed"),
    [(right, CLAIMED), (engine, CLAIMED), (poisson, HALF), (fixed_share, HALF)],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_right_average_passes(release, claimed, seed):
    found = require(release, claimed, calls=100, seed=seed)
    assert all(line.holds for line in found) and len(found) == 5 + (claimed is HALF)


def by_layer(uploads, rng, to):
    parts = [clipped(part, to) for part in (uploads[:, :FIRST], uploads[:, FIRST:])]
    return (np.concatenate(parts, 1).sum(0) + blur(uploads.shape[1], rng)) / M


def noise_on_a_layer(uploads, rng):
    average = right(uploads, rng)
    average[FIRST:] = clipped(uploads).mean(0)[FIRST:]
    return average


WRONG = {
    "noise divided twice": ("noise, as a share", lambda u, rng: right(u, rng, Z / M)),
    "noise from everyone": ("noise, as a share", lambda u, rng: right(u, rng, Z * M**0.5)),
    "noise on a layer": ("noise, as a share", noise_on_a_layer),
    "not clipped": ("clipping", lambda u, rng: right(0 * u, rng) + u.mean(0)),
    "clipped by number": ("clipping", lambda u, rng: right(0 * u, rng) + np.clip(u, -C, C).mean(0)),
    "clipped after averaging": ("clipping", lambda u, rng: right(0 * u, rng)
                                + clipped(u.mean(0, keepdims=True))[0]),
    "clipped per layer": ("clipped whole", lambda u, rng: by_layer(u, rng, C)),
    "each to its share": ("clipped whole", lambda u, rng: by_layer(u, rng, C / 2**0.5)),
    "wrong scale": ("short changes", lambda u, rng: right(u, rng) + clipped(u).mean(0)),
    "shrunk": ("short changes", lambda u, rng: right(u, rng) - 0.5 * clipped(u).mean(0)),
    "same noise": ("fresh noise", lambda u, rng: right(u, RNG(7))),
    "sometimes the same": ("fresh noise", lambda u, rng: right(u, RNG(rng.integers(50)))),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_one_is_named(wrong):
    named, release = WRONG[wrong]
    with pytest.raises(PrivacyError, match=f"not as private as claimed: .*{named}"):
        require(release, CLAIMED, calls=100)


@pytest.mark.parametrize("share", [1, 2])
def test_who_does_not_sample_as_said_is_named(share):
    """Everybody, and always the same half."""
    release = lambda uploads, rng: right(uploads[: len(uploads) // share], rng, HALF.noise)  # noqa: E731
    wrong = [line.name for line in check(release, HALF, calls=100) if not line.holds]
    assert "sampling, the share" in wrong


@pytest.mark.parametrize(("sampling", "too_low"), [(0.5, 0.5), (0.2, 0.9)])
def test_an_epsilon_below_the_accountants_is_named(sampling, too_low):
    """Much noise hides who was there, so nothing else is."""
    pytest.importorskip("opacus")
    due = spent(2.0, sampling, 10, 1e-5)
    assert due < spent(2.0, 1.0, 10, 1e-5)  # sampling protects
    how = dict(clip=C, noise=2.0, devices=M, sampling=sampling, rounds=10)

    release = partial(poisson, sampling=sampling, z=2.0)
    assert require(release, Claimed(**how, epsilon=due), calls=50)[-1].found == due
    with pytest.raises(PrivacyError, match="epsilon claimed"):
        require(release, Claimed(**how, epsilon=too_low * due), calls=50)
    found = check(release, Claimed(**how, epsilon=too_low * due), calls=100)
    assert [line.name for line in found if not line.holds] == ["epsilon claimed"]


def test_nonsense_is_refused():
    with pytest.raises(PrivacyError, match=r"must give \[400\] numbers"):
        require(lambda uploads, rng: uploads.mean(0)[:3], CLAIMED, calls=3)
    for bad in (dict(clip=0.0), dict(noise=0.0), dict(sampling=1.5), dict(lengths=(5,))):
        with pytest.raises(SettingsError, match="clip, noise and devices are above 0"):
            Claimed(**dict(clip=1.0, noise=1.0, devices=2) | bad)
