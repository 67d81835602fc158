"""A newcomer's pictures, rows and rounds; what must coincide with what once it has come."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lgfed_core.data import mnist
from lgfed_core.data.usps import rotated
from lgfed_core.engine import Participation
from lgfed_core.errors import SettingsError
from lgfed_core.papers.lgfedavg.rotated import newcomer
from lgfed_core.papers.lgfedavg.rotated.newcomer import WithNewcomers
from lgfed_core.papers.lgfedavg.rotated.run import ROTATED, Phases
from lgfed_core.papers.lgfedavg.rotated.settings import VARIED, matters
from toy import models

SMOKE = ROTATED.settings("smoke", goal=0.0)


@pytest.fixture(scope="module")
def images():
    return newcomer.pictures(SMOKE)


def test_pictures_turn_counter_clockwise_and_stay_on_black():
    black = -mnist.MEAN / mnist.STD
    x = torch.full((2, 28, 28), black)
    x[:, 0, 20] = 2.0  # first row, on the right
    quarter = mnist.turned(x.view(2, 784), 90).view(2, 28, 28)
    assert (quarter[:, 7, 0] == 2).all() and (quarter == 2).sum() == 2  # first column, above
    assert torch.equal(mnist.turned(quarter.view(2, 784), -90).view(2, 28, 28), x)
    grey = torch.rand(3, 784) + black
    slowly = rotated(grey.view(-1, 1, 28, 28) - black - 1, torch.full((3,), 90.0)) + black + 1
    assert torch.allclose(mnist.turned(grey, 90), slowly.view(3, 784), atol=1e-4)
    corner = mnist.turned(grey, 45).view(3, 28, 28)[:, 0, 0]
    assert corner.tolist() == pytest.approx([black] * 3, abs=1e-6)


def test_old_devices_are_drawn_as_without_newcomers():
    def drawn(who, devices):
        return who.chosen(np.random.default_rng(3), devices).tolist()

    old = drawn(Participation(0.1), 100)
    assert drawn(WithNewcomers(0.1, newcomers=2), 102) == [*old, 100, 101]
    assert drawn(WithNewcomers(0.0), 101) == [100]
    assert WithNewcomers(0.1).cohort(101) == 11
    with pytest.raises(SettingsError, match="fraction is 2"):
        WithNewcomers(2)


@pytest.mark.parametrize("overlap", [True, False])
def test_newcomers_hold_turned_copies_and_nobody_loses_a_row(images, overlap):
    cfg = replace(SMOKE, overlap=overlap, newcomers=2, upright=0.5, classes=2)
    seeds = [0, 1]
    old = [newcomer.old_devices(cfg, images, seed) for seed in seeds]
    everything, splits = newcomer.arrived(cfg, images, old, seeds)
    for before, split, seed in zip(old, splits, seeds, strict=True):
        mine = newcomer.held(cfg, images, seed)
        owned = torch.cat(
            [rows.of(k) for rows in (before.train, before.validation) for k in range(10)]
        )
        free = set(range(400)) - (set() if overlap else set(mine.train.flatten().tolist()))
        assert sorted(owned.tolist()) == sorted(free)
        for k in range(2):
            rows = split.train.of(10 + k)
            x = everything.train.x[rows]
            assert torch.equal(x[:30], mnist.turned(images.train.x[mine.train[k]], 90))
            assert torch.equal(x[30:], images.train.x[mine.upright[k]]) and len(x) == 45
            assert torch.equal(everything.train.y[rows[:30]], images.train.y[mine.train[k]])
            tests = everything.test.x[split.test.of(10 + k)]
            assert torch.equal(tests, mnist.turned(images.test.x[mine.test[k]], 90))
        assert all(torch.equal(split.train.of(k), before.train.of(k)) for k in range(10))
        taken = torch.cat([mine.train.flatten(), mine.upright.flatten()])
        assert len(taken.unique()) == 90
    with pytest.raises(SettingsError, match="need 480 rows, but there are 400"):
        newcomer.held(replace(cfg, newcomers=8, upright=1.0), images, 0)


@pytest.fixture(scope="module")
def phases(images):
    return Phases(SMOKE, images, [0], torch.device("cpu"), dict(workers=1))


@pytest.fixture(scope="module")
def before(phases):
    return phases.before(None)


def test_training_ends_at_the_goal(phases, before):
    longer = replace(phases, cfg=replace(SMOKE, before=6)).before(None)
    assert before.final.loc[0, "goal_round"] == 1
    assert torch.equal(longer.tensors["shared"], before.tensors["shared"])
    missed = replace(phases, cfg=replace(SMOKE, goal=1.0)).before(None)
    assert missed.final.loc[0, "goal_round"] == 0
    assert not torch.equal(missed.tensors["shared"], before.tensors["shared"])


@pytest.fixture(scope="module")
def ends(phases, before):
    def made(line, saved=None, **changes):
        out = replace(phases, cfg=replace(SMOKE, **changes)).after(line, before, saved)
        return out.final.loc[0], models(out)[0]  # [K, P]

    return made


def test_what_must_coincide_does(before, ends):
    final, fedavg = ends("fedavg_0.1")
    assert torch.allclose(ends("fedprox_0.1", mu=0.0)[1], fedavg, atol=1e-6)
    assert torch.allclose(ends("lg_fedavg_0.1", shared_layers=5)[1], fedavg, atol=1e-6)
    assert not torch.allclose(ends("fedprox_0.1", mu=1.0)[1], fedavg, atol=1e-4)
    assert not torch.allclose(ends("fedavg_0.1", weighted=False)[1], fedavg, atol=1e-4)
    assert final["normal"] == pytest.approx(final["normal_averaged"], abs=1e-6)

    start = before.tensors["shared"][0]
    final, lg = ends("lg_fedavg_0", frozen=3)  # what is shared stays: only the newcomer moves
    assert torch.equal(lg[:10], start.expand(10, -1)) and not torch.equal(lg[10], start)
    assert final["normal"] == final["normal_before"]
    final, still = ends("fedavg_0", frozen=5)
    assert torch.equal(still, start.expand(11, -1)) and final["rotated"] == final["rotated_before"]
    _, lg = ends("lg_fedavg_0")
    assert torch.equal(lg[10], ends("fedavg_0")[1][10])  # who trains alone learns the same
    own = 784 * 512 + 512 + 512 * 256 + 256  # the first two layers
    assert torch.equal(lg[:10, :own], start[:own].expand(10, -1))
    assert not torch.equal(lg[0, own:], start[own:]) and torch.equal(lg[0, own:], lg[10, own:])


def test_own_layers_can_learn_first_under_the_shared_ones_as_they_are(before, ends, tmp_path):
    start, own = before.tensors["shared"][0], 784 * 512 + 512 + 512 * 256 + 256
    _, first = ends("lg_fedavg_0", own_first=2, frozen=5)  # nobody moves afterwards
    assert torch.equal(first[:10], start.expand(10, -1))
    assert torch.equal(first[10, own:], start[own:]) and not torch.equal(first[10], start)
    saved = tmp_path / "lg_fedavg_0.safetensors"
    _, after = ends("lg_fedavg_0", saved, own_first=2)
    assert saved.with_name("lg_fedavg_0_own_first.safetensors").exists()
    assert torch.equal(ends("lg_fedavg_0", saved, own_first=2)[1], after)  # both are read again
    assert not torch.equal(after, ends("lg_fedavg_0")[1])
    assert not torch.equal(after[0, own:], start[own:])
    both = (ends("fedavg_0", own_first=n)[1] for n in (0, 2))  # it has none of its own
    assert torch.equal(*both)


def test_other_values_can_be_run_without_the_lines_as_assumed():
    both = ROTATED.settings("paper", lines=("fedprox_0.1",), vary=("mu",))
    alone = replace(both, usual=False)
    assert [*both.cells] == ["before", "fedprox_0.1", *[*alone.cells][1:]]
    assert [*alone.cells][1:] == [f"fedprox_0.1:mu={value}" for value in VARIED["mu"]]
    assert ROTATED.folder(both, [0]) == ROTATED.folder(alone, [0])


def test_all_choices_go_on_from_one_model_where_they_can():
    cfg = ROTATED.settings("paper", vary=tuple(VARIED))
    parts = {part.name: part.saved for part in ROTATED.plan(cfg, [0], "cpu")}
    assert len(set(parts.values())) == len(parts)
    first = [name for name in parts if name.startswith("before")]
    assert first == ["before", "before:overlap=False"]
    for name, (line, own) in cfg.cells.items():
        setting = name.partition(":")[2].partition("=")[0]
        assert not setting or line == "before" or matters(setting, line)
        own_start = ROTATED.folder(own.first, [0])
        assert own_start == (parts["before"].parent if own.overlap else parts[first[1]].parent)
    assert "fedavg_0:weighted=False" not in parts and "fedprox_0.1:mu=1.0" in parts
