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
import torch
from torch import Tensor, nn

from lgfed_core.data import Dataset, Split
from lgfed_core.data.mnist import MEAN, STD
from lgfed_core.engine import Federation, LocalTraining, run
from lgfed_core.methods import FedAvg, LGFedAvg, Method
from lgfed_core.methods.privacy import Treatment
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


def sought(
    scene: Scene, local: Method, layers: MnistMLP, steps: int, start: Tensor | None = None
) -> Tensor:
    """The row [K, 784] behind the h of each device, by so many steps of a search.

    local: LG-FedAvg. layers: of this network are those that the server takes for the private ones.
    start: as for `overhear`, where devices have trained on.
    """

    def below(x: Tensor) -> Tensor:  # rows [n, 784] -> h [n, 256]
        return layers.fc2(layers.fc1(x).relu()).relu()

    h = read_rows(overhear(scene, local, start=start), SHARED_FIRST).clamp(min=0)
    return inversion.behind(below, h, scene.public().x, BLACK, WHITE, steps=steps)


def attacks(
    scene: Scene, apart: Sequence[int], rows: int, steps: int
) -> dict[str, tuple[Tensor, Tensor]]:
    """What each attack brings back and what it was after: name -> ([K, 784], [K, 784]).

    apart: after how many rounds of LG-FedAvg, each for "later". rows: of a device in a whole round.
    steps: of the search behind private layers.
    """
    net, mine = scene.net, scene.rows()
    few = scene.data.train.x[scene.held[:, :rows]]  # [K, n, 784]
    fed, local = FedAvg(), lg(net)
    batch = LocalTraining(lr=0.1, batch_size=10, momentum=0.5)
    found = {"FedAvg, one row": (read_rows(overhear(scene, fed), FIRST), mine)}
    several = overhear(scene, fed, rows, batch)
    found[f"FedAvg, a round of {rows} rows"] = nearest(several, FIRST, few)
    found["LG-FedAvg, just now"] = sought(scene, local, net, steps), mine
    start, done = joined(net)[None], 0
    for until in sorted(apart):
        more = until - done
        way = run(scene.federation(rows), local, batch, more, start, first_round=done, workers=1)
        shared = way.tensors["shared"][:, None]
        start = way.layout.join(shared, way.tensors["personal"])  # of layers [1, K, P]
        name = f"LG-FedAvg, {until} round{'s' * (until > 1)} later"
        found[name], done = (sought(scene, local, net, steps, start), mine), until
    stranger = make(MnistMLP, 1)
    found["LG-FedAvg, a stranger"] = sought(scene, local, stranger, steps, start), mine
    return found
