"""CGAU and clients that were never trained: an experiment of ours on CIFAR-10.

Two of the ten clients of `cifar10.run` stay away from training. Afterwards they are served with
the shared network and a row that they have not learnt in it. A network with client rows has none
for a newcomer; which it should take, the CGAU paper leaves open:

* ``zero``: no client; equation (1) without its client terms;
* ``mean``: the mean of the rows of all trained clients;
* ``fitted_n``: n local steps on the newcomer's own training rows, from zero. Only its row moves;
  what is shared stays as it is, so nothing is sent to anybody.

A network without client rows is served ``as_it_is``, or with a part of its own, fitted to the
newcomer's rows as a CGAU's row is: ``biases_n`` (all of them) or ``last_n`` (the last layer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import functional_call

from lgfed_core.data import Split
from lgfed_core.engine import LocalTraining, Outcome
from lgfed_core.errors import SettingsError
from lgfed_core.models.layout import Layout
from lgfed_core.partition import ClientIndices, Partition
from lgfed_core.partition.feature_clusters import Clients

from .. import federated
from . import run as cifar10

NAME = "cgau.new_clients"
TABLE = "cgau_new_clients"
SCALES = {
    "smoke": cifar10.SCALES["smoke"] | dict(new=1, fit=(2,)),
    "quick": cifar10.SCALES["quick"] | dict(fit=(10, 100), shuffles=(0.0,)),
    "paper": dict(shuffles=(0.0, 1.0)),
}


@dataclass(frozen=True)
class Settings(cifar10.Settings):
    """new: clients that stay away. fit: after how many local steps a newcomer's row is judged."""

    new: int = 2
    fit: tuple[int, ...] = (10, 100, 1000)

    def fits(self) -> None:
        super().fits()
        if self.new >= self.clients:
            raise SettingsError(
                f"new is {self.new}, and there are {self.clients} clients; one has to be left that "
                "trains"
            )


class NewClients(cifar10.Cifar10):
    """Each method, trained without the newcomers."""

    name, table = NAME, TABLE
    Settings, scales = Settings, SCALES
    chooses = frozenset({"features", "methods", "per_class"})

    def rounds(self, cfg) -> dict[str, int | None]:
        return dict.fromkeys(cfg.methods, cfg.rounds)

    def federation(self, cfg, stored, seeds, method, device):
        fed, start = super().federation(cfg, stored, seeds, method, device)
        known = [known_and_new(partition, cfg.new)[0] for partition in fed.partitions]
        return replace(fed, partitions=known), start

    def tracker(self, cfg: Settings) -> None:
        return None

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """Accuracies at the last round, percent: of the known clients' test rows with their own
        rows, and of the newcomers' with each way to choose one; columns method and way."""
        stored, seeds = cfg.load(), list(dict.fromkeys(outcome.final.index))
        split = stored.dataset().train
        tensors = zip(
            outcome.tensors["shared"].cpu(), outcome.tensors["personal"].cpu(), strict=True
        )
        lines = []
        for seed in seeds:
            clients = federated.simulated(cfg, stored, seed)
            net = cfg.net(part, stored.x.shape[1], stored.dataset().classes)
            for p in cfg.shuffles:
                model = net, outcome.layout, *next(tensors)
                for way, hits, n in _hits(cfg, model, split, clients.shuffled(p, seed), seed):
                    lines.append((seed, p, part, way, hits, n))
        ids = ["seed", "shuffle_proportion", "method", "way"]
        found = pd.DataFrame(lines, columns=[*ids, "hits", "rows"])
        found = found.groupby(ids, sort=False, as_index=False).sum().query("rows > 0")
        found["value"] = 100 * found.pop("hits") / found.pop("rows")
        return found.assign(
            table=TABLE,
            features=cfg.features,
            stand_in=stored.stand_in,
            metric="test_acc",
            selection="last",
        )


NEW_CLIENTS = NewClients()
PARTS = {  # what a network without client rows may fit -> which of its parameters
    "biases": lambda name: name.endswith("bias"),
    "last": lambda name: name.startswith("out."),
}


def known_and_new(partition: Partition, new: int) -> tuple[Partition, Partition]:
    """The first K - ``new`` clients, who train, and the last ``new``, who come later."""
    known = len(partition) - new

    def some(word: str, which: range) -> Partition:
        kinds = (partition.train, partition.validation, partition.test)
        rows = (ClientIndices.from_lists([kind.of(k) for k in which]) for kind in kinds)
        return Partition(f"{partition.name}, {word}", *rows)

    return some("known", range(known)), some("new", range(known, len(partition)))


def right(net: nn.Module, layout: Layout, shared: Tensor, row: Tensor, data: Split) -> int:
    """How many rows of ``data`` the model (shared [P_s], row [P_p]) gets right."""
    with torch.no_grad():
        outputs = functional_call(net.eval(), layout.views(shared, row), (data.x,))
    return int((outputs.argmax(-1) == data.y).sum())


def ways(
    net: nn.Module,
    layout: Layout,
    shared: Tensor,
    rows: Tensor,
    data: Split,
    training: LocalTraining,
    steps: Sequence[int],
    seed: int,
) -> Iterator[tuple[str, Layout, Tensor, Tensor]]:
    """How a newcomer with training rows ``data`` may be served: way, layout, and the two vectors.

    shared [P_s]: what was learnt together; rows [K, P_p]: those of the known clients. A row, or a
    part of a network without rows, is fitted by SGD with momentum on cross-entropy, as in training,
    dropout included; the momentum is kept over all ``steps``.
    """
    how = data, training, steps, seed
    if layout.size_personal:
        zero = torch.zeros_like(rows[0])
        found = fitted(net, layout, shared, zero, *how)
        each = {"zero": zero, "mean": rows.mean(0)} | {f"fitted_{n}": found[n] for n in found}
        yield from ((way, layout, shared, row) for way, row in each.items())
        return
    yield "as_it_is", layout, shared, rows[0]
    whole = layout.join(shared, shared[:0])
    for word, mine in PARTS.items():
        cut = Layout(net, {name for name in layout.shapes if not mine(name)})
        rest, start = cut.split(whole)
        found = fitted(net, cut, rest, start, *how)
        yield from ((f"{word}_{n}", cut, rest, own) for n, own in found.items())


def fitted(
    net: nn.Module,
    layout: Layout,
    shared: Tensor,
    start: Tensor,
    data: Split,
    training: LocalTraining,
    steps: Sequence[int],
    seed: int,
) -> dict[int, Tensor]:
    """What is personal [P_p] after each number of ``steps`` from ``start``."""
    found, row = {}, start.clone().requires_grad_()
    sgd = torch.optim.SGD([row], training.lr, training.momentum)
    rng = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # dropout
        for step in range(1, max(steps) + 1):
            at = torch.randint(len(data), (training.batch_size,), generator=rng)
            outputs = functional_call(net.train(), layout.views(shared, row), (data.x[at],))
            sgd.zero_grad()
            nn.functional.cross_entropy(outputs, data.y[at]).backward()
            sgd.step()
            if step in steps:
                found[step] = row.detach().clone()
    return found


def _hits(cfg: Settings, model, split: Split, clients: Clients, seed: int):
    """(way, test rows that are right, of how many) of each client, for each way that it has.

    model: network, layout, shared [P_s] and the rows of the known clients [K, P_p].
    """
    net, layout, shared, rows = model
    known, late = known_and_new(clients.partition(), cfg.new)
    tests = [("known", layout, shared, rows[k], known.test.of(k)) for k in range(len(known))]
    for k in range(len(late)):
        mine, test = split.take(late.train.of(k)), late.test.of(k)
        tests += [(*one, test) for one in ways(*model, mine, cfg.training, cfg.fit, seed)]
    for way, *own, at in tests:
        yield way, right(net, *own, split.take(at)), len(at)
