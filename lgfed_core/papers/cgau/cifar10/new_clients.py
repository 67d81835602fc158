"""CGAU and clients that were never trained: an experiment of ours on CIFAR-10.

Two of the ten clients of `cgau_cifar10` stay away from training. Afterwards they are served with
the shared network and a row that they have not learnt in it (`new_clients`). The paper leaves open
what such a client should do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import torch

from lgfed_core.data.features.stored import Features
from lgfed_core.engine import CPU, Outcome, run
from lgfed_core.evidence import records as results

from .. import federated
from . import newcomers, run as cifar10
from .newcomers import KNOWN

NAME = "cgau.new_clients"
TABLE = "cgau_new_clients"
CHOOSES = {"features", "methods", "per_class"}
RELEASED = cifar10.RELEASED
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

    NAME, RELEASED, SCALES = NAME, RELEASED, SCALES


settings = Settings.at


def stages(
    cfg: Settings, seeds: Sequence[int], device: torch.device = CPU, resume: bool = True, **engine
) -> Iterator[tuple[str, Outcome]]:
    """Each method, trained without the newcomers, as (name, outcome)."""
    folder = federated.folder_of(cfg, seeds) if resume else None
    for name in cfg.methods:
        fed, start = _federation(cfg, tuple(seeds), name, device)
        saved = folder / f"{name}.safetensors" if folder else None
        who = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        label = f"{cfg.protocol} {who}, {cfg.new} stay away: {name}"
        method = cfg.method(name)
        yield (
            name,
            run(fed, method, cfg.training, cfg.rounds, start, saved=saved, label=label, **engine),
        )


def rows(cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
    """Accuracies at the last round, percent: of the known clients' test rows with their own rows,
    and of the newcomers' with each way to choose one; columns method and way."""
    stored, seeds = cfg.load(), list(dict.fromkeys(outcome.final.index))
    lines, at = [], 0
    for seed in seeds:
        who = federated.simulated(cfg, stored, seed)
        net = cfg.net(part, stored.x.shape[1], stored.dataset().classes)
        for p in cfg.shuffles:
            known, late = newcomers.apart(who.shuffled(p, seed).partition(), cfg.new)
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


def progress(cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Nothing is measured on the way."""
    return pd.DataFrame(columns=["method", "shuffle_proportion", "seed", "round"])


def stored(features: str = "inception_v3", scale: str = "paper") -> pd.DataFrame:
    """Our recorded rows; may be empty."""
    ours = ("shuffle_proportion", "method", "way", "features", "stand_in")
    found = results.of_tables(NAME, [TABLE], scale, ours)
    return found[found["features"] == features]


def _federation(cfg: Settings, seeds: tuple[int, ...], method: str, device: torch.device):
    fed, start = federated.federation(cfg, cfg.load(), seeds, method, device)
    known = [newcomers.apart(p, cfg.new)[0] for p in fed.partitions]
    return replace(fed, partitions=known), start


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
