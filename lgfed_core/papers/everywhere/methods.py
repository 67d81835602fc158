"""The methods side by side, a line each: a new one is a file in `lgfed_core/methods` and a line
here.

Their strengths are fixed, not searched: those of `Settings`, and of what came after LG-FedAvg those
of its paper.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from lgfed_core import methods as m
from lgfed_core.models.controlled import Controlled
from lgfed_core.models.twins import Mixture, Twins

from .net import base, head


class Entry(NamedTuple):
    """A method of the comparison.

    words: as people call it; "" for what is only the first part of another. make: the method, of
    `Settings` and its network. after: which one it goes on from, with the last rounds. wraps: makes
    of the small network one with more than one model on each device. gated, own, watcher: of
    `net.SmallNet`; a watcher needs rows of groups.
    """

    words: str
    make: Callable[[Any, nn.Module], m.Method]
    after: str = ""
    wraps: Callable[[nn.Module], nn.Module] | None = None
    gated: bool = False
    own: bool = False
    watcher: str = ""

    @property
    def parts(self) -> dict[str, Any]:
        """What `net.SmallNet` is made with."""
        return dict(gated=self.gated, own=self.own, watcher=self.watcher)


def _alone(cfg: Any, net: nn.Module) -> m.Method:
    return m.LocalOnly()


def _lg(cfg: Any, net: nn.Module) -> m.Method:
    return m.LGFedAvg(layers=head(net))


def _fair(cfg: Any, net: nn.Module) -> m.Method:
    return m.FairLGFedAvg(lambda_local=cfg.strength, lambda_global=cfg.strength)


ENTRIES = {
    "fedavg": Entry("FedAvg", lambda cfg, net: m.FedAvg()),
    "fedprox": Entry("FedProx", lambda cfg, net: m.FedProx(mu=cfg.mu)),
    "local_only": Entry("local only", _alone),
    "fine_tuned": Entry("fine-tuned FedAvg", _alone, after="fedavg"),
    "mtl": Entry("MTL", lambda cfg, net: m.MTL(scale=cfg.scale_mtl)),
    "lg_fedavg": Entry("LG-FedAvg", _lg),
    "lg_fedavg_later": Entry("LG-FedAvg after FedAvg", _lg, after="fedavg"),
    "lg_fedavg_adv": Entry("LG-FedAvg with adversary", _fair, own=True, watcher="adversary"),
    "cgau": Entry("CGAU", lambda cfg, net: m.ClientRowsKept(), gated=True),
    "lg_cgau": Entry("LG-FedAvg with CGAUs", _lg, gated=True),
    "fade": Entry(
        "FADE's game", lambda cfg, net: m.FADE(rounds=cfg.rounds), watcher="discriminator"
    ),
    "fedper": Entry("FedPer", lambda cfg, net: m.FedPer(layers=base(net))),
    "fedrep": Entry("FedRep", lambda cfg, net: m.FedRep(layers=base(net), head=cfg.head)),
    "fedbabu": Entry("FedBABU", _alone, after="body"),
    "per_fedavg": Entry("Per-FedAvg", _alone, after="ahead"),
    "ditto": Entry("Ditto", lambda cfg, net: m.Ditto(), wraps=Twins),
    "apfl": Entry("APFL", lambda cfg, net: m.APFL(), wraps=Mixture),
    "pfedme": Entry("pFedMe", lambda cfg, net: m.PFedMe(), wraps=Twins),
    "fedavgm": Entry("FedAvgM", lambda cfg, net: m.FedAvgM()),
    "fedadam": Entry("FedAdam", lambda cfg, net: m.FedAdam()),
    "scaffold": Entry("SCAFFOLD", lambda cfg, net: m.Scaffold(), wraps=Controlled),
    "fednova": Entry("FedNova", lambda cfg, net: m.FedNova()),
    "body": Entry("", lambda cfg, net: m.FedBABU(layers=base(net))),
    "ahead": Entry("", lambda cfg, net: m.PerFedAvg()),
}
METHODS = {name: entry.words for name, entry in ENTRIES.items() if entry.words}
GROUPED, MIXED = {"adult", "digits", "office31"}, {"adult"}  # tasks with groups; on each device


def missing(task: str, method: str) -> str:
    """Why a method cannot be put to a task of ours; "" where it can."""
    return no_room(method, task in GROUPED, task in MIXED)


def no_room(method: str, grouped: bool, mixed: bool) -> str:
    """Why a method has no room on such rows, "" where it has: grouped: each row is of a group;
    mixed: some device holds rows of both."""
    entry = ENTRIES.get(method)
    if entry and entry.watcher and not grouped:
        return "this task has no groups"
    if method == "lg_fedavg_adv" and not mixed:
        return "each device has only one group, so a private adversary learns nothing"
    return ""
