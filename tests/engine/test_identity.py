"""What a checkpoint knows of a run, all that can be written down, and where a number was made."""

import enum
import functools
import shutil
import subprocess
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import nn

from lgfed_core import FedAvg, Tracker
from lgfed_core.engine import loop, provenance, run
from lgfed_core.engine.identity import network, written
from lgfed_core.errors import CheckpointError, SettingsError
from toy import SGD, Toy, toy_federation


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def double(x):
    return 2 * x


def power(p):
    def inner(x):
        return x**p

    return inner


class Sealed:
    """Can be copied, but says nothing of what is in it."""

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError("sealed")


class Plain:
    def __init__(self, a):
        self.a = a


PAIRS = [
    *(("relu", "tanh"), ((1, 2), (1, 3)), ((1, 2), [1, 2]), (1, 1.0), (1, True), (0.1, 0.2)),
    *((None, 0), ({"a": (1, {"b": 2})}, {"a": (1, {"b": 3})}), ({1: 2}, {"1": 2})),
    *(({1, 2}, {1, 3}), (Colour.RED, Colour.BLUE), (range(2), range(3)), (b"a", b"b")),
    *((torch.float32, torch.float64), (torch.device("cpu"), torch.device("meta"))),
    *((torch.Size([2]), torch.Size([3])), (torch.relu, torch.tanh), (nn.ReLU, nn.Tanh)),
    (nn.functional.relu, nn.functional.gelu),
    (functools.partial(double, 1), functools.partial(double, 2)),
    (functools.partial(torch.clamp, min=0), functools.partial(torch.clamp, min=1)),
    *((power(2), power(3)), (power(double), power(Toy)), (Plain(1), Plain(2))),
    *((torch.zeros(2), torch.ones(2)), (torch.zeros(2), torch.zeros(2, 1))),
    (torch.zeros(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16)),
    *((np.float32(1), np.float32(2)), (np.arange(2), np.arange(3))),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_attributes_of_any_module_tell_networks_apart(one, other):
    def seen(value, deep):
        net = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"inner": Toy()}))
        (net[1]["inner"].below if deep else net).act = value
        return loop.checkpoint.fingerprint(net=network(net))

    for deep in (False, True):
        assert seen(one, deep) == seen(one, deep) != seen(other, deep)
    assert seen(one, True) != seen(one, False)


def test_what_else_makes_a_network():
    def seen(change=lambda net: None):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.LSTM(3, 3))
        change(net)
        return network(net)

    assert seen() == seen() == seen(lambda net: net.eval())  # the engine decides on the mode
    for change in (
        lambda net: setattr(net[1], "p", 0.4),
        lambda net: net[0].requires_grad_(False),
        lambda net: net.double(),
        lambda net: setattr(net[0], "weight", nn.Parameter(torch.zeros(3, 4))),
        lambda net: setattr(net, "order", [net[0], net[1]]),  # parts go by their path
        lambda net: net.append(nn.ReLU()),
    ):
        assert seen(change) != seen()


@dataclass(frozen=True, kw_only=True)
class Having(FedAvg):
    what: object = field(default=None)


def go(saved, net=None, method=None, tracker=None):
    fed, watching = toy_federation(), Tracker()
    fed.net.above.act, watching.what = net, tracker
    run(fed, Having(what=method), SGD, 1, tracker=watching, workers=1, saved=saved)


@pytest.mark.parametrize("part", ["net", "method", "tracker"])
def test_another_network_method_or_tracker_is_refused(tmp_path, part):
    saved = tmp_path / "run.safetensors"
    for _ in range(2):
        go(saved, **{part: {"act": "relu", "sizes": (1, 2.5)}})
    with pytest.raises(CheckpointError, match="belongs to another run"):
        go(saved, **{part: {"act": "tanh", "sizes": (1, 2.5)}})


@pytest.mark.parametrize(
    ("part", "where"),
    [("net", r"the network's above\.act"), ("method", "the method"), ("tracker", "the tracker")],
)
@pytest.mark.parametrize(
    "value", [lambda x: x, Sealed(), [1, {"deep": (Sealed(),)}], power(lambda x: x)]
)
def test_what_cannot_be_written_down_is_refused_where_it_is_saved(tmp_path, part, where, value):
    saved = tmp_path / "run.safetensors"
    go(None, **{part: value})
    with pytest.raises(SettingsError, match=f"{where} is .*cannot write down.*saved=None"):
        go(saved, **{part: value})
    assert not saved.exists()


def test_a_circle_is_refused():
    circle = [1]
    circle.append(circle)
    with pytest.raises(SettingsError, match="part of itself"):
        written(circle, "the tracker")


def test_provenance_says_device_version_and_commit():
    found = provenance.provenance(torch.device("cpu"))
    assert found["device"].startswith("cpu: ") and len(found["device"]) > len("cpu: ")
    assert found["torch"] == torch.__version__ and found["commit"]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_commit_of_clean_changed_and_foreign_folders(tmp_path):
    def git(*arguments):
        named = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        asked = ["git", "-C", str(tmp_path), *named, *arguments]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    commit = provenance._commit.__wrapped__
    package = tmp_path / "lgfed_core"
    (package / "engine").mkdir(parents=True)
    (package / "engine" / "provenance.py").write_text("1\n")
    assert commit(package) == "unknown"
    git("init", "-q")
    assert commit(package) == "unknown"  # inside a checkout that is not ours
    git("add", ".")
    git("commit", "-qm", "one")
    short = git("rev-parse", "HEAD")[:8]
    assert commit(package) == short
    (package / "notes.txt").write_text("")
    (tmp_path / "elsewhere.py").write_text("")
    assert commit(package) == short
    (package / "new.py").write_text("")  # which may read a set of one's own
    assert commit(package) == f"{short}+dirty"
    (package / "new.py").unlink()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sources.toml").write_text("1\n")
    git("add", "data")
    git("commit", "-qm", "two")
    short = git("rev-parse", "HEAD")[:8]
    (tmp_path / "data" / "sources.toml").write_text("2\n")
    assert commit(package) == f"{short}+dirty"
    git("checkout", "-q", "data/sources.toml")
    assert commit(package) == short
    (package / "engine" / "provenance.py").write_text("2\n")
    assert commit(package) == f"{short}+dirty"


def test_without_git_a_commit_is_unknown(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance._commit.__wrapped__() == "unknown"
