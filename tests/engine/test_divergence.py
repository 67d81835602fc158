"""A run that sends what is not finite is named at once, and ends; the others never notice."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from lgfed_core import FedAvg, Global, LGFedAvg, LocalOnly, Personal
from lgfed_core.engine import Participation, divergence, run
from lgfed_core.errors import CheckpointError
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.schedules import Annealing
from toy import ABOVE, LANES, SGD, answering, models, stopped, toy_federation


@dataclass(frozen=True, kw_only=True)
class Breaks(LGFedAvg):
    """A loss that is infinitely steep from round ``at`` (of 0, 1, ...) on."""

    layers: frozenset[str] = ABOVE
    breaks: bool = True
    at: int = 2

    def loss(self, local, batch):
        steep = torch.tensor(1e38 if self.breaks and local.round >= self.at else 0.0)
        return super().loss(local, batch) * (1 + steep * steep)


def first_breaks(runs: int, **more) -> list[Breaks]:
    return [Breaks(breaks=r == 0, **more) for r in range(runs)]


@pytest.mark.parametrize(
    ("lanes", "workers"),
    [("looped", 1), pytest.param("looped", 2, marks=pytest.mark.slow), ("batched", 1)],
)
@pytest.mark.parametrize("upload", [(), (Privacy(1.0, 0.1),)])
def test_a_run_that_diverges_ends_and_the_others_go_on(lanes, workers, upload):
    fed = toy_federation((5, 6, 7), fraction=0.5)
    how = dict(tracker=Personal(), lanes=lanes, workers=workers)
    with pytest.warns(RuntimeWarning, match=r"run 0 \(seed 5\), round 3: what client \d sent is"):
        found = run(fed, first_breaks(3, upload=upload), SGD, 5, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        healthy = run(fed, Breaks(breaks=False, upload=upload), SGD, 5, **how)
        until = run(fed, first_breaks(3, upload=upload), SGD, 2, **how)
    assert found.diverged == {5: 3} and healthy.diverged == {}
    equal = torch.equal if lanes == "looped" else torch.allclose
    assert equal(models(found)[1:], models(healthy)[1:])
    assert torch.equal(models(found)[0], models(until)[0])  # as before round 3
    ours, theirs = (o.history.query("seed != 5").to_numpy() for o in (found, healthy))
    assert np.array_equal(ours, theirs) if lanes == "looped" else np.allclose(ours, theirs)
    assert np.allclose(found.final.loc[[6, 7]], healthy.final.loc[[6, 7]])
    broken = found.history.query("seed == 5").set_index("round")
    assert broken.loc[:2].notna().all(axis=None) and broken.loc[3:, "local_test_acc"].isna().all()
    assert found.final.loc[5].isna().all()


def test_one_alone_ends_quietly_to_the_last_round():
    with pytest.warns(RuntimeWarning, match="client") as said:
        found = run(toy_federation(fraction=0.5), Breaks(), SGD, 6, tracker=Global(), workers=1)
    assert len(said) == 1 and found.diverged == {0: 3}
    assert models(found).isfinite().all()
    assert found.history["round"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("stop", [2, 4])  # before and after the third round, which breaks
def test_divergence_survives_a_checkpoint(tmp_path, stop):
    saved = tmp_path / "run.safetensors"
    fed = toy_federation((5, 6), fraction=0.5)
    how = dict(tracker=Personal(), workers=1)
    with pytest.warns(RuntimeWarning, match="round 3"):
        whole = run(fed, first_breaks(2), SGD, 6, **how)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with stopped(stop):
            run(fed, first_breaks(2), SGD, 6, saved=saved, **how)
        for _ in range(2):  # continued, then only read
            again = run(fed, first_breaks(2), SGD, 6, saved=saved, **how)
            assert again.diverged == whole.diverged == {5: 3}
            assert torch.equal(models(again), models(whole))
            assert again.history.equals(whole.history) and again.final.equals(whole.final)


def test_a_seed_of_several_runs_is_named_with_its_first_round():
    runs = [Breaks(), Breaks(breaks=False), Breaks(at=1)]
    one, other = (pytest.warns(RuntimeWarning, match=rf"run {n} \(seed 5\)") for n in (0, 2))
    with one, other:
        found = run(toy_federation((5, 5, 5)), runs, SGD, 4, workers=1)
    assert found.diverged == {5: 2}


def test_an_average_may_overflow():
    huge = answering(aggregate=lambda self, uploads, weights: uploads.mean(0) * float("inf"))
    with pytest.warns(RuntimeWarning, match="round 1: the average of what clients sent"):
        assert run(toy_federation(), huge(), SGD, 2, workers=1).diverged == {0: 1}


def test_devices_that_send_nothing_are_named_at_the_end():
    steep = answering(LocalOnly, loss=lambda self, *told: FedAvg.loss(self, *told) * float("inf"))
    with pytest.warns(RuntimeWarning, match=r"seeds \[0\] are no longer finite") as said:
        found = run(toy_federation(), steep(), SGD, 2, workers=1)
    assert found.diverged == {} and len(said) == 1 and models(found).isnan().any()


@dataclass(frozen=True, kw_only=True)
class OneErrs(LGFedAvg):
    """Client 4, whose rows are bright, breaks or runs off in round 2 (of 0, ...) and no other."""

    layers: frozenset[str] = ABOVE
    by: float = float("nan")

    def loss(self, local, batch):
        errs = (batch.x[:, 0] > 50).any() & (torch.as_tensor(local.round) == 2)
        return super().loss(local, batch) * torch.where(errs, self.by, 1.0)


def with_client_4(folder, method, lanes, **more):
    """A run of so many rounds, by a rate so small that bright rows do no harm."""

    def go(rounds: int, **who):
        fed = replace(toy_federation((5,)), participation=Participation(**who))
        fed.data.train.x[fed.partitions[0].train.of(4), 0] = 60.0
        training = replace(SGD, lr=0.001, keep_momentum=True, **more)
        saved = folder / f"{rounds}.safetensors"
        return run(fed, method, training, rounds, lanes=lanes, workers=1, saved=saved)

    return go


@LANES
def test_one_that_is_kept_out_of_a_round_is_back_in_the_next(tmp_path, lanes):
    go = with_client_4(tmp_path, OneErrs(), lanes, annealing=Annealing(5))
    named = r"run 0 \(seed 5\), round 3: what client 4 sent"
    with pytest.warns(RuntimeWarning, match=named) as said:
        until, broken, after = (go(n, keep_out=True) for n in (2, 3, 4))
    for kept in ("velocity", "taken"):  # its momentum, and the count of its steps
        assert torch.equal(broken.tensors[kept][0, 4], until.tensors[kept][0, 4])
        assert not torch.equal(broken.tensors[kept][0, 3], until.tensors[kept][0, 3])
    assert len(said) == 2 and after.diverged == {}  # one for each run of three rounds or more
    own = [found.tensors["personal"][0] for found in (until, broken, after)]
    assert torch.equal(own[0][4], own[1][4]) and not torch.equal(own[1][4], own[2][4])
    assert not torch.equal(own[0][3], own[1][3]) and models(after).isfinite().all()
    assert after.tensors["velocity"].isfinite().all()
    with pytest.raises(CheckpointError, match="belongs to another run"):
        go(4)


@LANES
def test_a_huge_but_finite_upload_is_kept_out_where_that_is_asked_for(tmp_path, lanes):
    go = with_client_4(tmp_path, OneErrs(by=1e4), lanes)
    far = r"what client 4 sent is [\d.e+]+ from what it received, farther than 100"
    with pytest.warns(RuntimeWarning, match=rf"round 3: {far}; it is kept out"):
        until, after = (go(n, keep_out=True, farthest=100.0) for n in (2, 3))
    own = [found.tensors["personal"][0] for found in (until, after)]
    assert torch.equal(own[0][4], own[1][4]) and not torch.equal(own[0][3], own[1][3])
    moved = after.tensors["shared"][0] - until.tensors["shared"][0]
    assert after.diverged == {} and 0 < moved.norm() < 10
    with pytest.raises(CheckpointError, match="belongs to another run"):
        go(3, keep_out=True)
    (tmp_path / "3.safetensors").unlink()
    with pytest.warns(RuntimeWarning, match=rf"{far}; this run takes no further part"):
        assert go(3, farthest=100.0).diverged == {5: 3}
    (tmp_path / "3.safetensors").unlink()
    assert go(3).tensors["shared"].norm() > 100, "without a limit it is averaged"


def test_nothing_is_farther_than_no_limit():
    sent = torch.tensor([[3.0, 4.0], [0.0, 1.0], [float("nan"), 0.0], [3e38, 3e38]])
    assert divergence.wrong(sent, torch.zeros(4, 2), float("inf")) == {2: "not finite"}
    far = divergence.wrong(sent, torch.zeros(4, 2), 4.9)
    assert list(far) == [2, 0, 3] and "5 from" in far[0] and "4.24e+38" in far[3]
    assert list(divergence.wrong(sent, torch.zeros(4, 2), 5.0)) == [2, 3]
    assert list(divergence.wrong(sent, sent, 4.9)) == [2]


def test_a_limit_farther_than_anybody_goes_changes_nothing():
    free = toy_federation((5, 6))
    limited = replace(free, participation=Participation(keep_out=True, farthest=1e9))
    ends = [run(fed, FedAvg(), SGD, 2, workers=1).tensors["shared"] for fed in (free, limited)]
    assert torch.equal(*ends)
