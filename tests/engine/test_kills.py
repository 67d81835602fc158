"""Kill -9 at random instants, and all that may go wrong with a folder: nothing is lost.

    python tests/engine/test_kills.py 50      # so many kills, one after the other, with a report

Each case is killed a few times on its way, then ends; what it leaves is, to the byte, what a run
leaves that nobody touched. Every second kill waits until a checkpoint is being written.
"""

import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # for toy; pytest has it

from lgfed_core.engine import checkpoint, loop, looped, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Global, Personal
from lgfed_core.errors import CheckpointError, LgfedError
from lgfed_core.methods import FADE, MTL, FedAvg, LGFedAvg, LocalOnly
from lgfed_core.methods.privacy import Privacy
from toy import ABOVE, SGD, alive, grouped, rounds_played, saving_each_round, toy_federation, until

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
HALF = LGFedAvg(layers=ABOVE)
ROUNDS = 12
KEPT = replace(SGD, keep_momentum=True)
NOISE, GAME = FedAvg(upload=[Privacy(1.0, 0.5)]), FADE(rounds=ROUNDS, opt_out=0.5)
one, two = (partial(toy_federation, seeds) for seeds in ((0,), (0, 1)))
CASES = {  # federation, method, training, tracker, workers, lanes
    "lg_fedavg, two workers": (two, HALF, KEPT, AveragedBest(), 2, "looped"),
    "lg_fedavg, batched": (two, HALF, KEPT, Personal(), 1, "batched"),
    "fedavg with noise": (partial(one, fraction=0.5), NOISE, SGD, Global(), 1, "looped"),
    "fade, lots": (partial(grouped, (0, 1)), GAME, SGD, Personal("test"), 1, "batched"),
    "mtl": (one, MTL(scale=0.1), SGD, Personal(), 1, "looped"),
    "local only": (one, LocalOnly(), KEPT, Personal(), 1, "batched"),
}


def go(case: str, path: Path) -> None:
    """Save after every round; what kills is sent from outside."""
    make, method, training, tracker, workers, lanes = CASES[case]
    loop.SAVE_SECONDS, loop.SAVE_SHARE = 0.0, 1e9
    how = dict(tracker=tracker, workers=workers, lanes=lanes, saved=path)
    run(make(), method, training, ROUNDS, **how)


def launch(case: str, path: Path) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(target=go, args=(case, path))
    process.start()
    return process


def kill(case: str, path: Path, rng: random.Random, writing: bool) -> str | None:
    """Start, wait for a random instant, kill -9. When it hit, or None where the run had ended."""
    part = path.with_name(f".{path.name}.writing")  # a folder, as long as a file is written
    seen = path.stat().st_mtime_ns if path.exists() else 0
    process = launch(case, path)
    skip = rng.randrange(3)  # checkpoints that it may write first
    while process.is_alive() and skip:
        now = path.stat().st_mtime_ns if path.exists() else 0
        skip, seen = skip - (now != seen), now
    if writing:
        while process.is_alive() and not part.exists():
            pass
    else:
        time.sleep(rng.uniform(0, 0.05))
    if not process.is_alive():
        process.join()
        return None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    if part.exists():
        return "while a file was being written"
    return "between two checkpoints" if path.exists() else "before the first checkpoint"


def contents(path: Path) -> tuple:
    """Every tensor as bytes, and all that is said beside the time it took."""
    with checkpoint.safe_open(path, framework="pt") as file:
        identity = file.metadata()["identity"]
    tensors, facts = checkpoint.load(path, identity)
    del facts["seconds"]
    return identity, {n: t.numpy().tobytes() for n, t in tensors.items()}, facts


def trial(case: str, folder: Path, kills: int, rng: random.Random) -> Counter:
    """Kill ``case`` up to ``kills`` times, let it end, and hold it against a run left alone."""
    whole, cut, hits = folder / "whole.safetensors", folder / "cut.safetensors", Counter()
    for number in range(kills):
        hit = kill(case, cut, rng, writing=number % 2 == 1)
        if hit is None:
            break
        hits[hit] += 1
    for path in (whole, cut):
        process = launch(case, path)
        process.join(60)
        assert process.exitcode == 0
    assert contents(cut) == contents(whole), f"{case} after {dict(hits)}"
    left = {p.name for p in folder.iterdir() if not p.name.endswith(".lock")}
    assert left == {whole.name, cut.name}, f"left behind: {left}"
    return hits


@pytest.fixture(scope="module", autouse=True)
def first_optimiser():
    """PyTorch's first optimiser imports for seconds; once here, not in every forked process."""
    warm()


def warm() -> None:
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).zero_grad()
    run(toy_federation((0,)), HALF, SGD, 1, lanes="batched")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_killed_at_random_instants_a_run_ends_in_the_same_bytes(case, tmp_path):
    assert trial(case, tmp_path, 2, random.Random(case))


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    process = launch("lg_fedavg, two workers", tmp_path / "run.safetensors")
    until((tmp_path / "run.safetensors").exists)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        pytest.skip("this system does not list child processes")
    workers = [int(pid) for pid in children.read_text().split()]
    process.kill()
    process.join()
    until(lambda: not any(map(alive, workers)), 10)
    assert len(workers) == 2


def small(path: Path, rounds: int = 3):
    return run(toy_federation(), HALF, SGD, rounds, tracker=Personal(), workers=1, saved=path)


def test_a_disk_that_fills_up_is_named_and_the_last_checkpoint_stays(tmp_path):
    """A real limit on the size of files, met in the middle of a write."""
    path = tmp_path / "run.safetensors"
    one_round, signalled = loop.round_of, signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def filling(*now):
        if now[-2] == 2:  # two checkpoints lie there
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        return one_round(*now)

    with saving_each_round() as patch:
        patch.setattr(loop, "round_of", filling)
        try:
            with pytest.raises(CheckpointError, match="run.safetensors.*free some space"):
                small(path, 4)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, signalled)
    assert contents(path)[2]["round"] == 2 and not list(tmp_path.glob(".*.writing"))
    with rounds_played() as seen:
        again = small(path, 4)
    assert seen == [2, 3]
    whole = small(tmp_path / "whole.safetensors", 4)
    assert torch.equal(again.tensors["personal"], whole.tensors["personal"])


def test_a_folder_that_cannot_be_written_is_named_and_what_lies_there_stays(tmp_path, monkeypatch):
    path, me = tmp_path / "run.safetensors", os.geteuid()
    checkpoint.save(path, {"a": torch.ones(2)}, {"round": 1}, "me")
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="cannot write beside .*run.*name another file"):
        small(path / "run.safetensors")  # a file is no folder, also for root
    monkeypatch.setattr("lgfed_core.paths.RUNS", tmp_path)
    tmp_path.chmod(0o500)
    if me == 0:  # root may write everywhere
        os.seteuid(65534)
    try:
        with (
            pytest.raises(CheckpointError, match="cannot write beside .*run.*set LGFED_RUNS"),
            checkpoint.claimed(path),
        ):
            pass
        with pytest.raises(CheckpointError, match="cannot write .*run.*set LGFED_RUNS"):
            checkpoint.save(path, {"a": torch.zeros(2)}, {"round": 2}, "me")
    finally:
        os.seteuid(me)
        tmp_path.chmod(0o700)
    assert path.read_bytes() == before


def test_a_worker_that_dies_is_named_and_nothing_saved_is_lost(tmp_path):
    path = tmp_path / "run.safetensors"
    one_pass = looped.Looped._train_one

    def go(saved=None):
        how = dict(tracker=Personal(), workers=2, saved=saved)
        return run(toy_federation(), HALF, SGD, 4, **how)

    def dies_in_round_2(self, *job):
        if job[-2] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        one_pass(self, *job)

    dies_in_round_2.__name__ = "_train_one"  # by which workers are called
    with saving_each_round() as patch:
        patch.setattr(looped.Looped, "_train_one", dies_in_round_2)
        with pytest.raises(LgfedError, match="a worker process died.*run the same command again"):
            go(path)
    assert contents(path)[2]["round"] == 2
    again, whole = go(path), go()
    assert torch.equal(again.tensors["personal"], whole.tensors["personal"])
    assert again.history.equals(whole.history)


def test_two_runs_on_one_folder_are_told_apart(tmp_path):
    """The second is refused while the first lives, and not a moment longer."""
    path, ready = tmp_path / "run.safetensors", multiprocessing.get_context("fork").Event()

    def holds():
        with checkpoint.claimed(path):
            ready.set()
            time.sleep(60)

    process = multiprocessing.get_context("fork").Process(target=holds)
    process.start()
    assert ready.wait(30)
    with pytest.raises(CheckpointError, match="another process is running .*run.safetensors"):
        small(path)
    process.kill()
    process.join()
    assert small(path).diverged == {}


def main(kills: int) -> None:
    warm()
    rng, hits, trials = random.Random(0), Counter(), 0
    while hits.total() < kills:
        case = list(CASES)[trials % len(CASES)]
        with tempfile.TemporaryDirectory() as folder:
            hits += trial(case, Path(folder), min(4, kills - hits.total()), rng)
        trials += 1
    print(f"{hits.total()} kills in {trials} runs of {len(CASES)} kinds, all to the same bytes:")
    for when, count in hits.most_common():
        print(f"  {count} {when}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
