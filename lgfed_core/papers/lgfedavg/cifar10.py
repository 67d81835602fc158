"""LG-FedAvg on CIFAR-10: Tables 1 and 8 of Liang et al. 2020 (v2, section 5.2, appendix C.2.2).

As on MNIST, with a small convolutional network of which the two convolutions are shared. Table 1 is
Table 8's part for two classes per device, with mean-regularised multi-task learning (MTL) beside.

The text names a learning rate decay of 0.005 and no formula; as described, the rate after t rounds
is 0.1 / (1 + 0.005 t), and LG-FedAvg goes on where FedAvg's rate has come to: started anew at 0.1,
devices leave the finite numbers within a round. The released code has no decay.
"""

from dataclasses import dataclass

from lgfed_core import models
from lgfed_core.data.augment import CropFlip
from lgfed_core.data.cifar10 import MEAN, STD

from . import phases, settings

BLACK = tuple(-mean / std for mean, std in zip(MEAN, STD, strict=True))
RELEASED = settings.RELEASED | dict(
    decay=None,
    extra_rounds=4,  # the released notebook adds 4 % of the 100 LG rounds to FedAvg's
)
FEW = dict(devices=10, fraction=1.0, rows_per_class=(100, 30), batch_size=10, every=6)
SCALES = {
    "smoke": settings.SMOKE | dict(shrink=0.002, starts=(1200, 1800)),
    "quick": FEW | dict(shrink=0.03, starts=(1200, 1800), local_epochs=12, mtl_rounds=600),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(settings.Settings):
    """The paper's values, as described; `RELEASED` has what its code changes."""

    batch_size: int = 50
    fedavg_lr: float = 0.1
    lr: float = 0.1
    decay: float | None = 0.005
    shared_layers: int = 2
    shared_side: str = "first"
    every: int = 10
    patience: int | None = None  # validation on 50 rows is too coarse to stop early
    budgets: tuple[int, ...] = (1000, 1200, 1400, 1600, 1800)
    starts: tuple[int, ...] = (1200, 1800, 1000, 1400, 1600)
    mtl_scale: float = 1e-6
    mtl_rounds: int = 1800

    DATA = "cifar10"
    AUGMENT = CropFlip(BLACK)

    def net(self) -> models.CifarCNN:
        return models.cnn_cifar(self.softmax)


class Cifar10(phases.PhasedExperiment):
    """The experiment; Table 1 prints MTL's row, for two classes."""

    name, table = "lgfedavg.cifar10", "lgfedavg_v2_table8_cifar10"
    Settings, scales, released = Settings, SCALES, RELEASED

    def by_classes(self, classes: int, protocol: str) -> dict:
        alone = ("local", "mtl") if classes == 2 else ("local",)
        return super().by_classes(classes, protocol) | dict(alone=alone)

    def table_of(self, cfg: Settings, part: str) -> str:
        printed = part == "mtl" and cfg.classes == 2
        return "lgfedavg_v2_table1_cifar10" if printed else super().table_of(cfg, part)


CIFAR10 = Cifar10()
