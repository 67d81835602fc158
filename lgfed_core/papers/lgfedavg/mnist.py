"""LG-FedAvg on MNIST: Table 6 of Liang et al. 2020 (v2, appendix C.2.1).

100 devices hold two (3, 4, 5, 10) classes each. LG-FedAvg goes on from a FedAvg model for 100
rounds with the last three layers shared. The phases are those of `phases`, the protocols those of
`settings`.
"""

from dataclasses import dataclass

from lgfed_core import models

from . import phases, settings

RELEASED = settings.RELEASED | dict(
    fedavg_lr=0.1,  # the released FedAvg never passes its learning rate on
    local_epochs=100,
    extra_rounds=15,  # the released notebook adds 15 % of the 100 LG rounds to FedAvg's
)
FEW = dict(devices=20, fraction=0.25, rows_per_class=(240, 50), every=2)
SCALES = {
    "smoke": settings.SMOKE | dict(shrink=0.005, starts=(400, 800)),
    "quick": FEW | dict(shrink=0.06, starts=(400, 800), local_epochs=5),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(settings.Settings):
    """The paper's values, as described; `RELEASED` has what its code changes."""

    budgets: tuple[int, ...] = (400, 500, 600, 700, 800)
    starts: tuple[int, ...] = (400, 800, 500, 600, 700)
    mtl_scale: float = 1e-7
    mtl_rounds: int = 800

    DATA = "mnist"

    def net(self) -> models.MnistMLP:
        return models.mlp_mnist(self.softmax)


class Mnist(phases.PhasedExperiment):
    """The experiment; no table prints MTL's row."""

    name, table = "lgfedavg.mnist", "lgfedavg_v2_table6_mnist"
    Settings, scales, released = Settings, SCALES, RELEASED


MNIST = Mnist()
