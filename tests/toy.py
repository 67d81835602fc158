"""A toy federation that every engine test can afford: ten devices, three classes, 8 numbers.

And a row of results, for tests of what is made of stored rows; and the functions of a page.
"""

import ast
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from lgfed_core.data import Dataset, Split
from lgfed_core.data.features.stored import Features, features
from lgfed_core.engine import Federation, LocalTraining, Participation, loop, run
from lgfed_core.engine.prepare import prepare
from lgfed_core.engine.trackers import Tracker
from lgfed_core.methods import FedAvg
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.paths import ROOT
from lgfed_core.seeds import visits

NOTEBOOKS = sorted(p for p in (ROOT / "book").rglob("*.ipynb") if "_build" not in p.parts)
LANES = pytest.mark.parametrize("lanes", ["looped", "batched"])


class Toy(nn.Module):
    """8 -> 6 -> 3 with a ReLU: 54 + 21 = 75 parameters."""

    layers = ("below", "above")

    def __init__(self):
        super().__init__()
        self.below = nn.Linear(8, 6)
        self.above = nn.Linear(6, 3)

    def forward(self, x):
        return self.above(self.below(x).relu())

    @classmethod
    def passing(cls, forward: Callable) -> type:
        """The toy, which makes of rows what this makes of the network and them."""
        return type("Mine", (cls,), {"forward": forward})


def normed(**more) -> nn.Module:
    """With batch normalisation between two layers."""
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6, **more), nn.Linear(6, 3))


ABOVE = frozenset({"above.weight", "above.bias"})
BELOW = frozenset({"below.weight", "below.bias"})


def toy_split(rows: int, seed: int) -> Split:
    rng = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 3
    return Split(torch.randn(rows, 8, generator=rng) + 1.5 * torch.eye(8)[y], y)


def toy_partition(rows: int, tests: int, devices: int, seed: int) -> Partition:
    """Unequal devices: device k holds 5 + k training rows, 3 of them for validation."""
    rng = torch.Generator().manual_seed(seed)
    order = torch.randperm(rows, generator=rng)
    sizes = [5 + k for k in range(devices)]
    train = order[: sum(sizes)].split(sizes)
    return Partition(
        "toy",
        train=ClientIndices.from_lists([mine[3:] for mine in train]),
        validation=ClientIndices.from_lists([mine[:3] for mine in train]),
        test=ClientIndices.from_lists(torch.randperm(tests, generator=rng).tensor_split(devices)),
    )


def toy_federation(
    seeds=(0,),
    devices: int = 10,
    net: nn.Module | Callable[[], nn.Module] = Toy,
    fraction: float = 1.0,
) -> Federation:
    """net: a network, or what makes one, which then has the same parameters each time."""
    if not isinstance(net, nn.Module):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            net = net()
    data = Dataset("toy", toy_split(150, 1), toy_split(60, 2), 3)
    splits = [toy_partition(150, 60, devices, seed) for seed in seeds]
    return Federation(data, splits, net, list(seeds), participation=Participation(fraction))


SGD = LocalTraining(lr=0.1, batch_size=4, momentum=0.5)


def holding(fed: Federation, **rows) -> Federation:
    """With other rows: train, validation or test, a list of rows for each device, or None."""
    held = {kind: lists and ClientIndices.from_lists(lists) for kind, lists in rows.items()}
    return replace(fed, partitions=[replace(part, **held) for part in fed.partitions])


def reading(fed: Federation, kind: str = "train", **parts) -> Federation:
    """With other x, y or groups in its training or test data."""
    split = replace(getattr(fed.data, kind), **parts)
    return replace(fed, data=replace(fed.data, **{kind: split}))


def prepared(fed, method, training=SGD, tracker=None, forked=False, **more):
    start = joined(fed.net).expand(len(fed.seeds), -1)
    return prepare(fed, method, training, start, tracker or Tracker(), forked, **more)


def alike(fed, method, training=SGD, rounds=2, **how):
    """What looped lanes make of it; batched lanes have to make the same."""
    looped, batched = (
        run(fed, method, training, rounds, lanes=lanes, workers=1, **how)
        for lanes in ("looped", "batched")
    )
    torch.testing.assert_close(models(looped), models(batched), rtol=0, atol=1e-5)
    for frame in ("history", "final"):
        one, other = (np.asarray(getattr(out, frame), float) for out in (looped, batched))
        np.testing.assert_allclose(one, other, rtol=1e-5)
    return looped


def batches(fed: Federation, round: int = 0, epochs: int = 1, size: int = 4, device: int = 0):
    """What a device of the first run sees in a round, as (x, y)."""
    split, rows = fed.data.train, fed.partitions[0].train.of(device)
    for order in visits(fed.seeds[0], round, device, len(rows), epochs):
        for at in rows[torch.from_numpy(order)].split(size):
            yield split.x[at], split.y[at]


def step(net: nn.Module, optimiser, x, y) -> None:
    optimiser.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimiser.step()


@contextmanager
def in_float64():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def answering(base=FedAvg, **answers) -> type:
    """A method that answers as ``base`` does but for these."""
    return type("Mine", (base,), answers)


@contextmanager
def saving_each_round():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "SAVE_SECONDS", 0.0)
        patch.setattr(loop, "SAVE_SHARE", 1e9)
        yield patch


@contextmanager
def stopped(at: int):
    """What runs in here saves after every round, and is stopped in round ``at`` (from 0)."""
    one_round = loop.round_of

    def killed(*now):
        if now[-2] == at:
            raise KeyboardInterrupt
        return one_round(*now)

    with saving_each_round() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "round_of", killed)
        yield


@contextmanager
def rounds_played():
    """The numbers of the rounds that are played in here."""
    played, one_round = [], loop.round_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "round_of", lambda *now: played.append(now[-2]) or one_round(*now))
        yield played


def models(outcome) -> torch.Tensor:
    """All devices' full parameter vectors [R, K, P]."""
    t = outcome.tensors
    return outcome.layout.join(t["shared"][:, None], t["personal"])


def named(outcome) -> dict[str, torch.Tensor]:
    """All devices' parameters by name, [R, K, ...] each."""
    t = outcome.tensors
    shared = t["shared"][:, None].expand(-1, t["personal"].shape[1], -1)
    return outcome.layout.views(shared, t["personal"])


def stored_row(**columns) -> dict:
    """A row as `evidence.records` keeps it: as described and at paper scale, unless ``columns``."""
    usual = dict(protocol="as_described", selection="best_val", scale="paper")
    made = dict(device="cpu", torch="2", commit="x", seconds=1.0)
    return usual | made | columns


def every(**columns) -> pd.DataFrame:
    """A line for each combination of the values of ``columns``, the last of which changes first."""
    return pd.MultiIndex.from_product(columns.values(), names=columns).to_frame(index=False)


class Small(nn.Module):
    """Eight inputs, three classes, two groups; with or without batch normalisation."""

    def __init__(self, normalised: bool = False):
        super().__init__()
        norm = [nn.BatchNorm1d(6)] if normalised else []
        self.encoder = nn.Sequential(nn.Linear(8, 6), *norm, nn.Tanh())
        self.classifier = nn.Linear(6, 3)
        self.discriminator = nn.Linear(6, 1)

    def forward(self, x, watch=None):
        z = self.encoder(x)
        outputs = self.classifier(z)
        return outputs if watch is None else (outputs, self.discriminator(watch(z)))


def grouped(seeds=(0,), devices=4, normalised=False, who=None):
    """A federation of devices with 20 rows each, in which device k belongs to group k mod 2."""
    torch.manual_seed(3)
    plain = toy_federation(seeds, devices, Small(normalised))
    split, held = plain.data.train, torch.arange(20 * devices).view(devices, 20)
    group = torch.zeros(len(split.y), 1, dtype=torch.long)
    group[held[1::2].flatten()] = 1
    data = replace(plain.data, train=Split(split.x, split.y, group))
    partition = replace(
        plain.partitions[0], train=ClientIndices.from_lists(list(held)), validation=None
    )
    who = who or Participation()
    return replace(plain, data=data, partitions=[partition] * len(seeds), participation=who)


def ten_classes() -> Features:
    """Ten classes in twelve dimensions, 300 rows, a sixth for testing."""
    rng, y = np.random.default_rng(0), np.arange(300) % 10
    x = rng.standard_normal((300, 12)) + 3 * np.eye(12)[y]
    return features("toy", x, y, y, test=np.arange(300) // 10 % 6 == 5, stand_in="made up")


def noisy_digits(name: str, rows: int, tests: int, seed: int = 0) -> Dataset:
    """Noise in the place of pictures of ten digits, 28 x 28."""
    rng = torch.Generator().manual_seed(seed)
    sizes = (rows, tests)
    parts = [Split(torch.rand(n, 1, 28, 28, generator=rng), torch.arange(n) % 10) for n in sizes]
    return Dataset(name, *parts, classes=10)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not asked for its status does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(happened: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"not within {seconds:g} seconds"
        time.sleep(0.02)


def python(code: str, *arguments: str, **how) -> subprocess.CompletedProcess:
    """What a fresh process says and how it ends."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, **how)


def picture(value: int, kind: str = "PNG", size: tuple[int, int] = (20, 10)) -> bytes:
    """The file of a picture of one colour."""
    out = io.BytesIO()
    Image.new("RGB", size, (value, 0, 255 - value)).save(out, kind)
    return out.getvalue()


def cells(notebook: Path, kind: str = "") -> list[tuple[str, list[str]]]:
    """The source and the tags of each cell, or of each of a ``kind``: code, markdown."""
    found = json.loads(notebook.read_text("utf-8"))["cells"]
    return [
        ("".join(c["source"]), c["metadata"].get("tags", []))
        for c in found
        if kind in ("", c["cell_type"])
    ]


def page(name: str) -> SimpleNamespace:
    """What the cells of a page import, and the functions and constants that they define."""
    code = cells(ROOT / "book" / f"{name}.ipynb", "code")
    lines = [line for source, _ in code for line in ast.parse(source).body if _names(line)]
    found: dict = {}
    exec(compile(ast.Module(lines, []), name, "exec"), found)
    return SimpleNamespace(**found)


def _names(line: ast.stmt) -> bool:
    if isinstance(line, ast.Assign):
        return all(isinstance(to, ast.Name) and to.id.isupper() for to in line.targets)
    return isinstance(line, ast.Import | ast.ImportFrom | ast.FunctionDef)
