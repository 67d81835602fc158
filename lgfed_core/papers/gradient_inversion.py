"""How a curious server attacks the rows behind an upload: FedAvg and LG-FedAvg on MNIST.

Uploads are those of `engine.run`, after whatever `Method.upload` does to them. Each victim takes
one step on one row, the best case of an attacker, or a round on several. The server knows the model
that it sent. Of LG-FedAvg it reads off the representation h, and looks for the row with public
pictures (training rows of nobody's) and with what it takes for the layers below: those of the
global model from which LG-FedAvg begins, "just now" or after the device has trained its own
("later"), or layers drawn at random ("a stranger"). What it finds is set beside the true row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lgfed_core.data import Dataset, Split
from lgfed_core.data.mnist import MEAN, STD
from lgfed_core.engine import Federation, LocalTraining, run
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.verdict import greater
from lgfed_core.methods import FedAvg, LGFedAvg, Method
from lgfed_core.methods.privacy import Privacy, Treatment
from lgfed_core.metrics import inversion
from lgfed_core.models import last_layers, make
from lgfed_core.models.images import MnistMLP
from lgfed_core.models.layout import Layout, joined
from lgfed_core.partition import ClientIndices, Partition

BLACK, WHITE = -MEAN / STD, (1 - MEAN) / STD
STEP = LocalTraining(lr=0.1, batch_size=1, momentum=0.0)
FIRST, SHARED_FIRST = "fc1", "fc3"  # the lowest layers that FedAvg and LG-FedAvg send
PUBLIC = 20_000  # pictures that the server has, at most
SHARED = 3  # layers, as the paper has them on MNIST


class Overheard:
    """Keeps what passes; last in `Method.upload`, it hears what the server hears."""

    def __init__(self):
        self.changes: list[Tensor] = []

    def privatise(self, before: Tensor, upload: Tensor, rng: np.random.Generator) -> Tensor:
        self.changes.append(before - upload)  # a multiple of the gradient, after one step
        return upload


@dataclass
class Scene:
    """A global model that has learnt a little, and devices whose rows nobody should see.

    held: rows of each device [K, n], of training rows; the first is the one it steps on.
    """

    data: Dataset
    held: Tensor
    net: nn.Module = field(default_factory=lambda: make(MnistMLP, 0))

    def federation(self, rows: int) -> Federation:
        """Every device with the first so many of its rows."""
        mine = ClientIndices.from_lists(list(self.held[:, :rows]))
        test = torch.arange(len(self.data.test)).tensor_split(len(mine.size))
        part = Partition("victims", mine, None, ClientIndices.from_lists(test))
        return Federation(self.data, [part], self.net, [0])

    def public(self) -> Split:
        """Rows that belong to no device, and that the model has not learnt from."""
        return self.data.train.take(
            torch.arange(2 * self.held.numel(), len(self.data.train))[:PUBLIC]
        )

    def rows(self) -> Tensor:
        """The row of each device, [K, 784]."""
        return self.data.train.x[self.held[:, 0]]


def scene(data: Dataset, devices: int, rows: int, rounds: int) -> Scene:
    """Devices with so many rows of their own, and a model after some rounds of FedAvg on others."""
    here = Scene(data, torch.arange(devices * rows).view(devices, rows))
    others = replace(here, held=here.held + devices * rows)
    training = LocalTraining(lr=0.05, batch_size=10)
    out = run(others.federation(rows), FedAvg(), training, rounds, workers=1)
    values = out.layout.views(out.tensors["shared"][0], out.tensors["personal"][0, 0])
    here.net.load_state_dict(values)
    return here


def lg(net: MnistMLP, upload: Sequence[Treatment] = ()) -> LGFedAvg:
    return LGFedAvg(layers=last_layers(net, SHARED), upload=upload)


def overhear(
    scene: Scene,
    method: Method,
    rows: int = 1,
    training: LocalTraining = STEP,
    start: Tensor | None = None,
) -> list[dict[str, Tensor]]:
    """The change of each shared parameter, by name, that each device sends in one round."""
    ear = Overheard()
    method = replace(method, upload=[*method.upload, ear])
    run(scene.federation(rows), method, training, 1, start, workers=1)
    layout = Layout(scene.net, method.shared(scene.net))
    rest = torch.zeros(layout.size_personal)  # nobody has sent it
    named = (layout.views(sent, rest) for sent in ear.changes)
    return [{name: change[name] for name in layout.shared} for change in named]


def read_rows(changes: list[dict[str, Tensor]], layer: str) -> Tensor:
    """What the one row of each device was at the entry of ``layer``: [K, d]."""
    found = [inversion.only_input(c[f"{layer}.weight"], c[f"{layer}.bias"]) for c in changes]
    return torch.stack(found)


def nearest(changes: list[dict[str, Tensor]], layer: str, rows: Tensor) -> tuple[Tensor, Tensor]:
    """For each device the unit's mixture that is most like one of its ``rows`` [K, n, 784].

    The best that the server could pick out if it knew what it looks for: a bound. Returns mixtures
    and rows, both [K, 784].
    """
    best = []
    for change, mine in zip(changes, rows, strict=True):
        said = inversion.inputs(change[f"{layer}.weight"], change[f"{layer}.bias"])  # [u, 784]
        alike = inversion.correlation(said[:, None], mine)  # [u, n]
        unit, row = divmod(int(alike.argmax()), len(mine))
        best.append((said[unit], mine[row]))
    found, true = zip(*best, strict=True)
    return torch.stack(found), torch.stack(true)


def below(net: MnistMLP):
    """The private layers: rows [n, 784] -> h [n, 256]."""
    return lambda x: net.fc2(net.fc1(x).relu()).relu()


def attacks(
    scene: Scene, apart: Sequence[int], rows: int, steps: int
) -> dict[str, tuple[Tensor, Tensor]]:
    """What each attack brings back and what it was after: name -> ([K, 784], [K, 784]).

    apart: after how many rounds of LG-FedAvg, each for "later". rows: of a device in a whole round.
    steps: of the search behind private layers.
    """
    net, mine, public = scene.net, scene.rows(), scene.public().x
    few = scene.data.train.x[scene.held[:, :rows]]  # [K, n, 784]
    fed, local = FedAvg(), lg(net)
    batch = LocalTraining(lr=0.1, batch_size=10, momentum=0.5)
    found = {"FedAvg, one row": (read_rows(overhear(scene, fed), FIRST), mine)}
    several = overhear(scene, fed, rows, batch)
    found[f"FedAvg, a round of {rows} rows"] = nearest(several, FIRST, few)

    def sought(start: Tensor | None, layers: MnistMLP) -> tuple[Tensor, Tensor]:
        h = read_rows(overhear(scene, local, start=start), SHARED_FIRST).clamp(min=0)
        return inversion.behind(below(layers), h, public, BLACK, WHITE, steps=steps), mine

    found["LG-FedAvg, just now"] = sought(None, net)
    start, done = joined(net)[None], 0
    for until in sorted(apart):
        more = until - done
        way = run(scene.federation(rows), local, batch, more, start, first_round=done, workers=1)
        shared = way.tensors["shared"][:, None]
        start = way.layout.join(shared, way.tensors["personal"])  # of layers [1, K, P]
        name = f"LG-FedAvg, {until} round{'s' * (until > 1)} later"
        found[name], done = sought(start, net), until
    found["LG-FedAvg, a stranger"] = sought(start, make(MnistMLP, 1))
    return found


def by_nothing(scene: Scene) -> tuple[Tensor, Tensor]:
    """Who has heard nothing: the mean of all public pictures."""
    return scene.public().x.mean(0).expand(len(scene.held), -1), scene.rows()


def by_label(scene: Scene) -> tuple[Tensor, Tensor]:
    """Who knows the label alone: the mean picture of its class, from rows of nobody's."""
    public, labels = scene.public(), scene.data.train.y[scene.held[:, 0]]
    return torch.stack([public.x[public.y == label].mean(0) for label in labels]), scene.rows()


def labels_read(scene: Scene, method: Method) -> float:
    """The share of devices whose label the last layer's bias gives away."""
    said = [inversion.only_label(c["fc5.bias"]) for c in overhear(scene, method)]
    return float(np.mean(np.array(said) == scene.data.train.y[scene.held[:, 0]].numpy()))


def table(found: dict[str, tuple[Tensor, Tensor]]) -> pd.DataFrame:
    """Correlation and PSNR (dB) with the true row: mean over devices and its 95 % t interval."""
    lines = {}
    for name, (said, true) in found.items():
        alike = inversion.correlation(said, true)
        sharp = inversion.psnr(said.clamp(BLACK, WHITE), true, WHITE - BLACK)
        lines[name] = {"correlation": interval(alike), "PSNR": interval(sharp)}
    return pd.DataFrame(lines).T


def interval(values: Tensor) -> tuple[float, float, float]:
    """Mean, low and high of its 95 % interval, by Student's t over values [K]."""
    found = greater(values.double().numpy())
    return found.estimate, found.low, found.high


def noised(scene: Scene, noises: Sequence[float], clip: float, steps: int) -> pd.DataFrame:
    """One row by FedAvg and by LG-FedAvg just now, clipped at ``clip`` and blurred.

    Correlation (mean, low, high) for each noise, the share of labels read, and the epsilon of one
    upload at delta = 1e-5 from the accountant of Opacus (NaN where that is not installed).
    """
    public, lines = scene.public().x, {}
    for noise in noises:
        privacy = Privacy(clip, noise)
        fed, local = FedAvg(upload=[privacy]), lg(scene.net, [privacy])
        plain = read_rows(overhear(scene, fed), FIRST)
        h = read_rows(overhear(scene, local), SHARED_FIRST).clamp(min=0)
        behind = inversion.behind(below(scene.net), h, public, BLACK, WHITE, steps=steps)
        lines[noise] = {
            "FedAvg": interval(inversion.correlation(plain, scene.rows())),
            "LG-FedAvg, just now": interval(inversion.correlation(behind, scene.rows())),
            "labels, FedAvg": labels_read(scene, fed),
            "labels, LG-FedAvg": labels_read(scene, local),
            "epsilon": _epsilon(privacy),
        }
    return pd.DataFrame(lines).T.rename_axis("noise")


def _epsilon(privacy: Privacy) -> float:
    try:
        return privacy.epsilon(1, 1e-5)
    except SettingsError:  # no accountant here
        return float("nan")
