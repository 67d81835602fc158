"""LG-FedAvg on CIFAR-10 without FedAvg before it: how others have run it, and what they found.

The papers' LG-FedAvg goes on from a FedAvg model. Its released script starts anew unless it is
given one, and a user who ran the command of its README reports numbers below the paper's. Here
devices start from random weights, for 300 rounds or more.
"""

from dataclasses import dataclass

from . import cifar10

NAME, TABLE = "lgfedavg.scratch", "lgfedavg_from_scratch"  # of our own


@dataclass(frozen=True)
class Settings(cifar10.Settings):
    """As for CIFAR-10, from the first round on with private layers."""

    lg_rounds: int = 300


class Scratch(cifar10.Cifar10):
    """One part: ``lg_0``."""

    name, table, Settings = NAME, TABLE, Settings
    scales = cifar10.SCALES | {"smoke": cifar10.SCALES["smoke"] | dict(shrink=0.02)}
    chooses = frozenset({"classes", "lg_rounds"})
    stem = "{scale}-{protocol}-{classes}-{lg_rounds}"
    shared = cifar10.Cifar10.shared | {"lg_rounds"}
    splits = tuple(dict(classes=2, lg_rounds=rounds) for rounds in (300, 2000))

    def rounds(self, cfg: Settings) -> dict[str, int]:
        return {"lg_0": cfg.rounds(cfg.lg_rounds)}


SCRATCH = Scratch()
