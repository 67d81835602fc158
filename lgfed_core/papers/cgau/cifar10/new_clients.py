"""CGAU and clients that were never trained: an experiment of ours on CIFAR-10.

Two of the ten clients of `cifar10.run` stay away from training. Afterwards they are served with
the shared network and a row that they have not learnt in it (`newcomers`). The paper leaves open
what such a client should do.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from lgfed_core.data.features.stored import Features
from lgfed_core.engine import Outcome
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.records import select
from lgfed_core.papers.parts import Part, who

from .. import federated
from . import newcomers, run as cifar10
from .newcomers import KNOWN

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

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        return (part for part in super().parts(cfg, seeds, device) if part.name != "clients")

    def federation(self, cfg, stored, seeds, method, device):
        fed, start = super().federation(cfg, stored, seeds, method, device)
        known = [newcomers.apart(partition, cfg.new)[0] for partition in fed.partitions]
        return replace(fed, partitions=known), start

    def tracker(self, cfg: Settings) -> None:
        return None

    def label(self, cfg: Settings, seeds, name: str) -> str:
        return f"{cfg.protocol} {who(seeds)}, {cfg.new} stay away: {name}"

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """Accuracies at the last round, percent: of the known clients' test rows with their own
        rows, and of the newcomers' with each way to choose one; columns method and way."""
        stored, seeds = cfg.load(), list(dict.fromkeys(outcome.final.index))
        lines, at = [], 0
        for seed in seeds:
            clients = federated.simulated(cfg, stored, seed)
            net = cfg.net(part, stored.x.shape[1], stored.dataset().classes)
            for p in cfg.shuffles:
                known, late = newcomers.apart(clients.shuffled(p, seed).partition(), cfg.new)
                shared, personal = (outcome.tensors[k][at].cpu() for k in ("shared", "personal"))
                found = _accuracies(cfg, stored, net, outcome, shared, personal, known, late, seed)
                lines += [(seed, p, part, way, value) for way, value in found.items()]
                at += 1
        columns = ["seed", "shuffle_proportion", "method", "way", "value"]
        return pd.DataFrame(lines, columns=columns).assign(
            table=TABLE,
            features=cfg.features,
            stand_in=stored.stand_in,
            metric="test_acc",
            selection="last",
            protocol=cfg.protocol,
            scale=cfg.scale,
            seconds=outcome.seconds,
            **outcome.provenance,
        )

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Nothing is measured on the way."""
        return pd.DataFrame(columns=["method", "shuffle_proportion", "seed", "round"])


NEW_CLIENTS = NewClients()


def stored(features: str = "inception_v3", scale: str = "paper") -> pd.DataFrame:
    """Our recorded rows; may be empty."""
    ours = ("shuffle_proportion", "method", "way", "features", "stand_in")
    return select(NAME, columns=ours, table=TABLE, scale=scale, features=features)


def _accuracies(cfg, stored: Features, net, outcome, shared, personal, known, late, seed):
    """{way: percent} over the test rows of all clients it is about; shared [P_s], personal
    [K, P_p]."""
    split, layout = stored.dataset().train, outcome.layout
    tests = [(KNOWN, personal[k], known.test.of(k)) for k in range(len(known))]
    for k in range(len(late)):
        mine = split.take(late.train.of(k))
        ways = newcomers.ways(net, layout, shared, personal, mine, cfg.training, cfg.fit, seed)
        tests += [(way, row, late.test.of(k)) for way, row in ways.items()]
    hits, total = {}, {}
    for way, row, at in tests:
        said = newcomers.right(net, layout, shared, row, split.take(at))
        hits[way] = hits.get(way, 0) + said
        total[way] = total.get(way, 0) + len(at)
    return {way: 100 * hits[way] / total[way] for way in hits if total[way]}
