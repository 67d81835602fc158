"""What the federation trains. One's own app is a copy of this folder with another `plan`."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from lgfed_core import require
from lgfed_core.engine import LocalTraining, Participation
from lgfed_core.flower import Plan
from lgfed_core.flower.client import client_app
from lgfed_core.flower.server import server_app
from lgfed_core.methods import FADE, ClientRowsKept, FedAvg, LGFedAvg
from lgfed_core.models import make
from lgfed_core.models.cgau import GatedMLP

PIXELS, CLASSES = 64, 10


class Watched(nn.Module):
    """64 -> 32 -> 10 with ReLU, and FADE's discriminator on the 32."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(PIXELS, 32)
        self.classifier = nn.Linear(32, CLASSES)
        self.discriminator = nn.Linear(32, 1)

    def forward(
        self, x: Tensor, watch: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, 64] -> logits [n, 10]; with ``watch`` also those of group 1, [n, 1]."""
        z = self.encoder(x).relu()  # [n, 32]
        outputs = self.classifier(z)
        return outputs if watch is None else (outputs, self.discriminator(watch(z)))


def plain() -> nn.Module:
    """64 -> 32 -> 10 with ReLU."""
    return nn.Sequential(nn.Linear(PIXELS, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def gated() -> nn.Module:
    """Two layers of 16 gated units, as one client has them."""
    return GatedMLP(PIXELS, 16, CLASSES)


def plan(config: Mapping[str, Any]) -> Plan:
    """What server and nodes train, from the run's configuration, which both are given."""
    above = frozenset({"2.weight", "2.bias"})
    known = {
        "FedAvg": (plain, FedAvg()),
        "LG-FedAvg": (plain, LGFedAvg(layers=above)),
        "CGAU": (gated, ClientRowsKept()),
        "FADE": (Watched, FADE(rounds=config["rounds"], power=2.0)),
    }
    require.one_of("method", config["method"], known)
    build, method = known[config["method"]]
    return Plan(
        make(build, config["seed"]),
        method,
        LocalTraining(config["lr"], config["batch-size"], epochs=config["epochs"]),
        rounds=config["rounds"],
        clients=config["clients"],
        seed=config["seed"],
        participation=Participation(config["fraction"], farthest=config.get("farthest", math.inf)),
    )


server = server_app(plan)
client = client_app(plan)
