"""A checkpoint is whole, or it is refused by name, whatever has happened to the file."""

import json
import random
import shutil

import pytest
import torch
from safetensors.torch import save_file

from lgfed_core import LGFedAvg, Personal
from lgfed_core.engine import LocalTraining, checkpoint, loop, run
from lgfed_core.errors import CheckpointError
from toy import ABOVE, models, rounds_played, stopped, toy_federation


def go(path, rounds=5):
    method, training = LGFedAvg(layers=ABOVE), LocalTraining(0.1, 4, keep_momentum=True)
    how = dict(tracker=Personal(), workers=1, saved=path)
    return run(toy_federation((0, 1), devices=4), method, training, rounds, **how)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.safetensors"
    with stopped(4):
        go(path)
    return path


@pytest.fixture
def never(monkeypatch):
    """Any round would now fail: what is damaged must be found out before."""
    monkeypatch.setattr(loop, "round_of", None)


def contents(path):
    with checkpoint.safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return tensors, file.metadata()


@pytest.mark.slow
def test_no_flipped_bit_passes(saved, never):
    good, rng = saved.read_bytes(), random.Random(0)
    header = 8 + int.from_bytes(good[:8], "little")
    places = [*range(8)] + [rng.randrange(8, header) for _ in range(250)]
    places += [rng.randrange(header, len(good)) for _ in range(250)]
    for place in places:
        bad = bytearray(good)
        bad[place] ^= 1 << rng.randrange(8)
        saved.write_bytes(bad)
        with pytest.raises(CheckpointError, match=r"run\.safetensors is damaged"):
            go(saved)


def test_no_truncated_or_longer_file_passes(saved, never):
    good, rng = saved.read_bytes(), random.Random(1)
    ends = [0, 7, 8, 9, *(rng.randrange(len(good)) for _ in range(30)), len(good) - 1]
    for bad in [*(good[:end] for end in ends), good + b"\0", good + good, bytes(len(good))]:
        saved.write_bytes(bad)
        with pytest.raises(CheckpointError, match="damaged"):
            go(saved)


@pytest.mark.parametrize(
    "text", [b"notes on this run", b"to do", b"\x89PNG\r\n\x1a\n\0\0\0", b"PK\3\4\0\0\10\10\0\0"]
)  # the last as a pickle of PyTorch's begins
def test_a_file_that_is_no_checkpoint_stays_and_another_is_asked_for(tmp_path, never, text):
    path = tmp_path / "notes.txt"
    path.write_bytes(text)
    with pytest.raises(CheckpointError, match=r"notes\.txt is there and no checkpoint.* another"):
        go(path)
    assert path.read_bytes() == text


def fact(name, value):
    def change(tensors, facts):
        facts[name] = value(facts) if callable(value) else value

    return change


CHANGES = {
    "dropped": lambda t, f: t.pop("velocity"),
    "more": lambda t, f: t.update({"else": torch.zeros(2)}),
    "renamed": lambda t, f: t.update({"personall": t.pop("personal")}),
    "broadcasts": lambda t, f: t.update(shared=t["shared"][:1].clone()),
    "reshaped": lambda t, f: t.update(shared=t["shared"].T.contiguous()),
    "retyped": lambda t, f: t.update(shared=t["shared"].double()),
    "emptied": lambda t, f: t.clear(),
    **{f"round {r!r}": fact("round", r) for r in (99, 0, -1, 3, 1.5, "4", None, True)},
    "final too early": fact("final", {"acc": [1.0, 2.0]}),
    "other seeds": fact("history", lambda f: [line | {"seed": 7} for line in f["history"]]),
    "lost lines": fact("history", lambda f: f["history"][:-1]),
    "backwards": fact("history", lambda f: f["history"][::-1]),
    "no list": fact("history", 3),
    "no time": fact("seconds", "long"),
    "no place": fact("provenance", 1),
    **{
        f"no {name}": lambda t, f, name=name: f.pop(name)
        for name in ("round", "history", "final", "seconds", "provenance", "diverged")
    },
    "who diverged": fact("diverged", [[2, 1]]),
    "when diverged": fact("diverged", [[0, 9]]),
}


@pytest.mark.parametrize("signed", [False, True], ids=["as it was signed", "signed anew"])
@pytest.mark.parametrize("change", CHANGES)
def test_contents_that_do_not_fit_are_refused(saved, never, change, signed):
    """Also where the checksum is right, as of a file that another program has written."""
    tensors, meta = contents(saved)
    facts = json.loads(meta["facts"])
    CHANGES[change](tensors, facts)
    if signed:
        checkpoint.previous(saved).unlink()
        checkpoint.save(saved, tensors, facts, meta["identity"], last=True)
    else:
        save_file(tensors, saved, metadata=meta | {"facts": json.dumps(facts)})
    with pytest.raises(CheckpointError, match=r"run\.safetensors is damaged.*delete"):
        go(saved)


ALIKE = {  # each looks like what was written, and is not
    "name": lambda t, m: {"c" if name == "a" else name: value for name, value in t.items()},
    "shape": lambda t, m: t | {"a": t["a"].T.contiguous()},
    "type": lambda t, m: t | {"a": t["a"].view(torch.int32)},
    "place": lambda t, m: {"a": t["b"], "b": t["a"]},
    "one number": lambda t, m: t | {"b": t["b"] * torch.arange(4.0)},
    "facts": lambda t, m: m.update(facts='{"round": 2}') or t,
    "identity": lambda t, m: m.update(identity="you") or t,
}


@pytest.mark.parametrize("change", ALIKE)
def test_the_checksum_holds_all_that_a_file_says(tmp_path, change):
    path, wide = tmp_path / "run.safetensors", {"a": torch.zeros(1, 4), "b": torch.ones(1, 4)}
    checkpoint.save(path, wide, {"round": 1}, "me")
    tensors, meta = contents(path)
    save_file(tensors, path, metadata=meta)
    assert checkpoint.load(path, "me")[1] == {"round": 1}
    save_file(ALIKE[change](tensors, meta), path, metadata=meta)
    with pytest.raises(CheckpointError, match="its checksum is not that of its contents"):
        checkpoint.load(path, "me")


def test_missing_facts_or_a_checksum_are_refused(saved, never):
    tensors, meta = contents(saved)
    for name in ("facts", "identity", "sha256"):
        save_file(tensors, saved, metadata={k: v for k, v in meta.items() if k != name})
        with pytest.raises(CheckpointError, match="damaged"):
            go(saved)


def test_the_older_one_is_offered_and_used(saved, tmp_path):
    whole = go(tmp_path / "whole.safetensors")
    older = checkpoint.previous(saved)
    assert older.name == "run.previous.safetensors"
    assert json.loads(contents(older)[1]["facts"])["round"] == 3
    for damaged in (saved.read_bytes()[:-1], b"notes on this run"):
        saved.write_bytes(damaged)
        sound = "after round 3, is sound: delete run.safetensors and run again"
        with pytest.raises(CheckpointError, match=sound):
            go(saved)

    saved.unlink()
    with rounds_played() as rounds:
        again = go(saved)
    assert rounds == [3, 4]
    assert torch.equal(models(again), models(whole)) and again.history.equals(whole.history)
    assert saved.exists() and not older.exists()  # a complete run needs no older one


def test_an_older_one_that_is_damaged_too_is_not_offered(saved):
    older = checkpoint.previous(saved)
    for path in (saved, older):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"delete it and run\.previous\.safetensors beside"):
        go(saved)
    saved.unlink()
    with pytest.raises(CheckpointError, match=r"run\.previous\.safetensors is damaged.*delete it"):
        go(saved)
    older.unlink()
    go(saved)


def test_files_of_another_run_are_named_together(saved):
    with pytest.raises(CheckpointError, match=r"delete it and run\.previous\.safetensors to start"):
        go(saved, rounds=6)
    shutil.move(checkpoint.previous(saved), saved.with_name("elsewhere"))
    with pytest.raises(CheckpointError, match=r"or delete it to start"):
        go(saved, rounds=6)


def test_without_links_one_file_is_kept(tmp_path, monkeypatch):
    def refuses(*paths):
        raise OSError("no links here")

    monkeypatch.setattr(checkpoint.os, "link", refuses)
    path = tmp_path / "run.safetensors"
    with stopped(3):
        go(path)
    assert path.exists() and not checkpoint.previous(path).exists()
    go(path)
