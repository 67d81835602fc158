"""A killed run continues to the same bytes; a damaged or foreign file is refused by name."""

import multiprocessing
import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lgfed_core.engine import LocalTraining, Participation, checkpoint, loop, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Personal
from lgfed_core.errors import CheckpointError
from lgfed_core.methods import FedAvg, FedProx, LGFedAvg
from lgfed_core.methods.privacy import Privacy
from toy import ABOVE, Toy, toy_federation

SGD = LocalTraining(lr=0.1, batch_size=4)
# Python 3.12 warns; the processes to be killed fork as the engine's do (`lgfed_core.lanes`).
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture(scope="module", autouse=True)
def first_optimiser():
    """PyTorch's first optimiser imports for seconds; once here, not in every forked process."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).zero_grad()


def go(path: Path) -> None:
    """25 rounds that save after each; runs in a forked process, to be killed."""
    loop.SAVE_SECONDS, loop.SAVE_SHARE = 0.0, 1e9
    run(
        toy_federation((0, 1)),
        LGFedAvg(layers=ABOVE),
        LocalTraining(0.1, 4, keep_momentum=True),
        25,
        tracker=AveragedBest(),
        workers=2,
        saved=path,
    )


def launch(path: Path) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=go, args=(path,))
    process.start()
    return process


def finish(path: Path) -> None:
    process = launch(path)
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.slow
def test_kill_9_at_any_moment_and_resume_to_equal_bytes(tmp_path):
    whole, cut = tmp_path / "whole.safetensors", tmp_path / "cut.safetensors"
    finish(whole)
    rng, kills = random.Random(0), 0
    while kills < 4:
        process = launch(cut)
        seen = cut.stat().st_mtime_ns if cut.exists() else 0
        while process.is_alive() and (not cut.exists() or cut.stat().st_mtime_ns == seen):
            time.sleep(0.002)  # let it save at least once, so that the test ends
        time.sleep(rng.uniform(0, 0.2))
        if not process.is_alive():
            break
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        kills += 1
    finish(cut)
    assert kills >= 2
    a, facts_a = checkpoint.load(whole, identity_of(whole))
    b, facts_b = checkpoint.load(cut, identity_of(cut))
    assert identity_of(whole) == identity_of(cut)
    assert a.keys() == b.keys()
    assert all(a[n].numpy().tobytes() == b[n].numpy().tobytes() for n in a)
    assert facts_a["history"] == facts_b["history"] and facts_a["final"] == facts_b["final"]


def identity_of(path: Path) -> str:
    with checkpoint.safe_open(path, framework="pt") as file:
        return file.metadata()["identity"]


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    process = launch(tmp_path / "run.safetensors")
    while not (tmp_path / "run.safetensors").exists():
        assert process.is_alive()
        time.sleep(0.002)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        pytest.skip("this system does not list child processes")
    workers = [int(pid) for pid in children.read_text().split()]
    process.kill()
    process.join()
    deadline = time.monotonic() + 10
    while any(_alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(workers) == 2 and not any(_alive(pid) for pid in workers)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_finished_run_is_read_not_run(tmp_path, monkeypatch):
    saved = tmp_path / "run.safetensors"
    arguments = dict(tracker=Personal(), workers=1, saved=saved)
    method = LGFedAvg(layers=ABOVE)
    first = run(toy_federation(), method, SGD, 3, **arguments)
    monkeypatch.setattr(loop, "round_of", None)  # any round would now fail
    again = run(toy_federation(), method, SGD, 3, **arguments)
    assert all(torch.equal(first.tensors[n], again.tensors[n]) for n in first.tensors)
    assert first.history.equals(again.history) and first.final.equals(again.final)
    assert again.seconds == first.seconds


def test_a_method_with_settings_of_its_own_is_checkpointed(tmp_path):
    saved, arguments = tmp_path / "run.safetensors", dict(lanes="batched", workers=1)
    for _ in range(2):
        private = FedAvg(upload=[Privacy(1.0, 0.5)])
        run(toy_federation(), private, SGD, 2, saved=saved, **arguments)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        other = FedAvg(upload=[Privacy(1.0, 0.6)])
        run(toy_federation(), other, SGD, 2, saved=saved, **arguments)


def test_light_trackers_keep_little(tmp_path):
    saved = tmp_path / "run.safetensors"
    arguments = dict(tracker=AveragedBest(light=True), workers=1, saved=saved)
    for _ in range(2):
        outcome = run(toy_federation(), LGFedAvg(layers=ABOVE), SGD, 2, **arguments)
        assert set(outcome.tensors) == {"best_accuracy"}


class Softened(Toy):
    """The same layers and the same text form, other outputs."""

    def __init__(self, softmax: bool):
        super().__init__()
        self.softmax = softmax


@pytest.mark.parametrize(
    "change",
    [
        dict(lr=0.2),
        dict(rounds=4),
        dict(seed=1),
        dict(mu=0.1),
        dict(judge="test"),
        dict(softmax=True),
        dict(brighter=0.5),
        dict(fewer=1),
        dict(numbers=2),
        dict(groups=1),
        dict(lanes="batched"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, monkeypatch):
    saved = tmp_path / "run.safetensors"

    def go(
        lr=0.1,
        rounds=3,
        seed=0,
        mu=0.0,
        judge="validation",
        softmax=False,
        brighter=0.0,
        fewer=0,
        numbers=1,
        groups=0,
        lanes="looped",
    ):
        monkeypatch.setattr(loop, "NUMBERS", numbers)
        torch.manual_seed(0)
        fed = toy_federation((seed,), net=Softened(softmax))
        fed.data.train.x.add_(brighter)
        fed.partitions[0].validation.size.sub_(fewer)
        train = fed.data.train
        train = replace(train, groups=torch.full((len(train.y), 1), groups))
        fed = replace(fed, data=replace(fed.data, train=train))
        run(
            fed,
            FedProx(mu=mu),
            LocalTraining(lr, 4),
            rounds,
            tracker=Personal(judge),
            lanes=lanes,
            workers=1,
            saved=saved,
        )

    go()
    before = saved.read_bytes()
    go()  # itself is not refused
    with pytest.raises(CheckpointError, match="belongs to another run"):
        go(**change)
    assert saved.read_bytes() == before


def test_changed_settings_and_other_seeds_have_folders_of_their_own():
    other, more = replace(SGD, lr=0.2), replace(SGD, lr=0.2, decay=0.1)
    runs = [(SGD, [0]), (SGD, [1]), (SGD, [0, 1]), (other, [0]), (more, [0])]
    names = [checkpoint.folder_name("run", cfg, SGD, seeds) for cfg, seeds in runs]
    assert names[:2] == ["run-seed0", "run-seed1"] and len(set(names)) == len(names)


def test_a_run_in_use_is_refused(tmp_path):
    saved = tmp_path / "run.safetensors"
    with checkpoint.claimed(saved), pytest.raises(CheckpointError, match="another process"):
        run(toy_federation(), FedAvg(), SGD, 1, workers=1, saved=saved)
    run(toy_federation(), FedAvg(), SGD, 1, workers=1, saved=saved)


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_a_truncated_checkpoint_is_named(tmp_path, keep):
    saved = tmp_path / "run.safetensors"
    run(toy_federation(), FedAvg(), SGD, 1, workers=1, saved=saved)
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="damaged.*delete it"):
        run(toy_federation(), FedAvg(), SGD, 1, workers=1, saved=saved)


def test_a_pickle_is_not_loaded(tmp_path):
    saved = tmp_path / "run.safetensors"
    torch.save({"shared": torch.zeros(3)}, saved)
    with pytest.raises(CheckpointError, match="no checkpoint of a run"):
        run(toy_federation(), FedAvg(), SGD, 1, workers=1, saved=saved)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    saved = tmp_path / "run.safetensors"
    checkpoint.save(saved, {"a": torch.ones(2)}, {"round": 1}, "me")

    def full(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(CheckpointError, match="No space left.*free some space"):
        checkpoint.save(saved, {"a": torch.zeros(2)}, {"round": 2}, "me")
    tensors, facts = checkpoint.load(saved, "me")
    assert tensors["a"].tolist() == [1, 1] and facts == {"round": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]


def test_what_a_kill_left_half_written_is_cleared_away(tmp_path):
    saved = tmp_path / "run.safetensors"
    left = tmp_path / ".run.safetensors.writing"
    left.mkdir()
    (left / ".tmpA1b2C3").write_bytes(b"half")  # as safetensors names what it has begun
    checkpoint.save(saved, {"a": torch.ones(2)}, {"round": 1}, "me")
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]
    assert checkpoint.load(saved, "me")[1] == {"round": 1}


@pytest.mark.parametrize("what", ["rows", "labels", "pictures"])
def test_what_a_run_is_tested_on_is_a_matter_of_the_run(tmp_path, what):
    fed, saved = toy_federation(), tmp_path / "run.safetensors"
    run(fed, FedAvg(), SGD, 1, workers=1, saved=saved)
    test, part = fed.data.test, fed.partitions[0]
    if what == "rows":
        held = replace(part.test, index=part.test.index.flip(0))
        other = replace(fed, partitions=[replace(part, test=held)])
    else:
        new = dict(y=(test.y + 1) % 3) if what == "labels" else dict(x=test.x + 1)
        other = replace(fed, data=replace(fed.data, test=replace(test, **new)))
    with pytest.raises(CheckpointError, match="belongs to another run"):
        run(other, FedAvg(), SGD, 1, workers=1, saved=saved)


@pytest.mark.parametrize("other", [dict(fraction=0.3), dict(availability=[[0.2] * 5 + [0.0] * 5])])
def test_who_takes_part_is_a_matter_of_the_run(tmp_path, other):
    usual, saved = dict(fraction=0.5, availability=[[0.1] * 10]), tmp_path / "run.safetensors"
    fed, another = (
        replace(toy_federation(), participation=Participation(**who))
        for who in (usual, usual | other)
    )
    run(fed, FedAvg(), SGD, 1, workers=1, saved=saved)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        run(another, FedAvg(), SGD, 1, workers=1, saved=saved)


def test_seconds_of_earlier_sittings_count(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "SAVE_SHARE", 1e9)
    saved = tmp_path / "run.safetensors"

    sittings = []

    class Slow(AveragedBest):
        def after(self, round, rounds, engine):
            if (len(sittings), round) == (1, 2):
                raise KeyboardInterrupt
            time.sleep(1.5 * (round == 1))
            return super().after(round, rounds, engine)

    def sit():
        sittings.append(time.perf_counter())
        method = LGFedAvg(layers=ABOVE)
        return run(toy_federation(), method, SGD, 2, tracker=Slow(), workers=1, saved=saved)

    with pytest.raises(KeyboardInterrupt):
        sit()
    seconds = sit().seconds
    assert seconds > 1.5 and time.perf_counter() - sittings[1] < seconds
