"""The oracle lets right averages pass, the engine's own among them, and names each wrong one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lgfed_core.errors import SettingsError
from lgfed_core.methods import FedAvg
from lgfed_core.methods.privacy import Privacy, spent
from lgfed_core.methods.privacy_oracle import Claimed, PrivacyError, check, require

C, Z, M = 0.5, 0.8, 10
CLAIMED = Claimed(clip=C, noise=Z, devices=M)
HALF = Claimed(clip=C, noise=0.1, devices=M, sampling=0.5)
FIRST = CLAIMED.lengths[0]


def clipped(uploads, to=C):
    lengths = np.linalg.norm(uploads, axis=1, keepdims=True)
    return uploads * np.minimum(1, to / np.maximum(lengths, 1e-12))


def blur(size, rng, z=Z):
    return z * C * rng.standard_normal(size)


def right(uploads, rng, z=Z, m=M):
    return (clipped(uploads).sum(0) + blur(uploads.shape[1], rng, z)) / m


def poisson(uploads, rng):
    return right(uploads[rng.random(len(uploads)) < HALF.sampling], rng, HALF.noise)


def fixed_share(uploads, rng):
    drawn = rng.permutation(len(uploads))[: round(len(uploads) * HALF.sampling)]
    return right(uploads[drawn], rng, HALF.noise)


def engine(uploads, rng):
    """Each device adds its own noise, z / sqrt(m) each, as `Privacy` does."""
    treat = Privacy(C, Z / M**0.5)
    before = torch.zeros(uploads.shape[1])
    sent = [treat.privatise(before, torch.from_numpy(u).float(), rng) for u in uploads]
    return FedAvg(weighted=False).aggregate(torch.stack(sent), None).numpy()


@pytest.mark.parametrize(
    ("release", "claimed"),
    [(right, CLAIMED), (engine, CLAIMED), (poisson, HALF), (fixed_share, HALF)],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_right_average_passes(release, claimed, seed):
    found = require(release, claimed, calls=100, seed=seed)
    assert all(line.holds for line in found) and len(found) == 5 + (claimed is HALF)


def noise_divided_twice(uploads, rng):
    return clipped(uploads).mean(0) + blur(uploads.shape[1], rng) / M**2


def noise_from_everyone(uploads, rng):
    return clipped(uploads).mean(0) + np.mean([blur(uploads.shape[1], rng) for _ in uploads], 0)


def not_clipped(uploads, rng):
    return uploads.mean(0) + blur(uploads.shape[1], rng) / M


def clipped_by_number(uploads, rng):
    return (np.clip(uploads, -C, C).sum(0) + blur(uploads.shape[1], rng)) / M


def clipped_per_layer(uploads, rng):
    parts = [clipped(uploads[:, :FIRST]), clipped(uploads[:, FIRST:])]
    return (np.concatenate(parts, 1).sum(0) + blur(uploads.shape[1], rng)) / M


def clipped_per_layer_to_their_share(uploads, rng):
    parts = [clipped(p, C / 2**0.5) for p in (uploads[:, :FIRST], uploads[:, FIRST:])]
    return (np.concatenate(parts, 1).sum(0) + blur(uploads.shape[1], rng)) / M


def clipped_after_averaging(uploads, rng):
    return clipped(uploads.mean(0, keepdims=True))[0] + blur(uploads.shape[1], rng) / M


def wrong_scale(uploads, rng):
    return 2 * right(uploads, rng) - blur(uploads.shape[1], rng, 1e-9)


def shrunk(uploads, rng):
    return (0.5 * clipped(uploads).sum(0) + blur(uploads.shape[1], rng)) / M


def same_noise(uploads, rng):
    return right(uploads, np.random.default_rng(7))


def sometimes_the_same_noise(uploads, rng):
    return right(uploads, np.random.default_rng(rng.integers(50)))


def noise_on_a_layer(uploads, rng):
    average = right(uploads, rng)
    average[FIRST:] = clipped(uploads).mean(0)[FIRST:]
    return average


@pytest.mark.parametrize(
    ("release", "named"),
    [
        (noise_divided_twice, "noise, as a share"),
        (noise_from_everyone, "noise, as a share"),
        (not_clipped, "clipping"),
        (clipped_by_number, "clipping"),
        (clipped_per_layer, "clipped whole"),
        (clipped_per_layer_to_their_share, "clipped whole"),
        (clipped_after_averaging, "clipping"),
        (wrong_scale, "short changes"),
        (shrunk, "short changes"),
        (same_noise, "fresh noise"),
        (sometimes_the_same_noise, "fresh noise"),
        (noise_on_a_layer, "noise, as a share"),
    ],
)
def test_a_wrong_one_is_named(release, named):
    with pytest.raises(PrivacyError, match=f"not as private as claimed: .*{named}"):
        require(release, CLAIMED, calls=100)


def everybody(uploads, rng):
    return right(uploads, rng, HALF.noise)


def the_first(uploads, rng):
    return right(uploads[: len(uploads) // 2], rng, HALF.noise)


@pytest.mark.parametrize("release", [everybody, the_first])
def test_who_does_not_sample_as_said_is_named(release):
    wrong = [line.name for line in check(release, HALF, calls=100) if not line.holds]
    assert "sampling, the share" in wrong


def test_an_epsilon_below_the_accountants_is_named():
    pytest.importorskip("opacus")
    due = spent(HALF.noise * 20, HALF.sampling, 10, 1e-5)
    assert due < spent(HALF.noise * 20, 1.0, 10, 1e-5)  # sampling protects
    how = dict(clip=C, noise=2.0, devices=M, sampling=0.5, rounds=10)

    def release(uploads, rng):
        return right(uploads[rng.random(len(uploads)) < 0.5], rng, 2.0)

    assert require(release, Claimed(**how, epsilon=due), calls=50)[-1].found == due
    with pytest.raises(PrivacyError, match="epsilon claimed"):
        require(release, Claimed(**how, epsilon=0.5 * due), calls=50)


def test_nonsense_is_refused():
    with pytest.raises(PrivacyError, match=r"must give \[400\] numbers"):
        require(lambda uploads, rng: uploads.mean(0)[:3], CLAIMED, calls=3)
    for bad in (dict(clip=0.0), dict(noise=0.0), dict(sampling=1.5), dict(lengths=(5,))):
        with pytest.raises(SettingsError, match="clip, noise and devices are above 0"):
            Claimed(**dict(clip=1.0, noise=1.0, devices=2) | bad)


def test_a_claim_a_tenth_too_low_is_named_and_much_noise_hides_who_was_there():
    pytest.importorskip("opacus")
    some = Claimed(clip=C, noise=2.0, devices=M, sampling=0.2, rounds=10, epsilon=1.0)

    def release(uploads, rng):
        return right(uploads[rng.random(len(uploads)) < 0.2], rng, 2.0)

    due = spent(2.0, 0.2, 10, 1e-5)
    found = check(release, replace(some, epsilon=0.9 * due), calls=100)
    assert [line.name for line in found if not line.holds] == ["epsilon claimed"]
