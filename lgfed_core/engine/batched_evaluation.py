"""Testing models as one stack of tensors: some hundred of them go through their rows together.

Devices that share all parameters are one model, which reads the rows of all of them; those that
share some go through these together. A *place* is r K + k, of device k in run r.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from .graphs import Graphs
from .memory import to_device
from .outputs import both, decided
from .phase import Job, Phase
from .sheltered import filled

AT_ONCE = 128  # models
ROWS_OF_ONE = 5_000  # of a device, tested at once, so that they fit into the memory


class StackedTests:
    """What batched lanes say about their models, `AT_ONCE` of them together."""

    phase: Phase
    laid: dict[str, tuple[Tensor, Tensor]]  # of `_laid`
    graphs: Graphs
    tests: dict[tuple[str, str, str], "Hits"]  # of `correct`, by what it is asked

    @property
    def _devices(self) -> int:
        """K."""
        return self.phase.devices("train")

    def correct(
        self, shared: str, personal: str, rows: str, only: list[Job] | None = None
    ) -> Tensor:
        """Number of rows each device's model gets right -> int64 [R, K]; see `LoopedTests`."""
        asked, devices = (shared, personal, rows), self._devices
        runs = len(self.phase.seeds)
        if only is None or len(only) == runs * devices:
            hits = self.tests.get(asked) or self.tests.setdefault(asked, Hits(self, *asked))
            self.graphs.again(hits.count, asked)
        else:
            hits = Hits(self, *asked, [r * devices + k for r, k in only])
            hits.count()
        found = torch.full((runs * devices,), -1)
        found[hits.places] = hits.found.cpu()
        return found.view(runs, devices)

    @torch.no_grad()
    def own_outputs(self, shared: str, personal: str, rows: str, **more: object) -> Tensor:
        """Each device's model on its own rows -> [R, K, n_max, classes]; see `LoopedTests`."""
        split, per_run = self.phase.rows[rows]
        index, real = self._laid(rows)
        width = max(int(r.size.max()) for r in per_run)
        index, real = index[..., :width], real[..., :width].flatten(0, 1)  # [R, K, n], [R K, n]
        found = []
        for some in self._parts(shared, personal, range(len(real))):
            x = split.x[_of(index, some)]  # [l, n, ...]
            found.append(self._outputs(shared, personal, some, x, **more))
        out = torch.cat(found)
        return (out * real[..., None].to(out)).unflatten(0, (len(per_run), -1))

    @torch.no_grad()
    def mean_outputs(self, shared: str, personal: str, split: str) -> Tensor:
        """Averaged outputs and probabilities -> [R, 2, n, classes]; see `LoopedTests`."""
        x = self.phase.rows[split][0].x
        runs, devices = self.phase.tensors[personal].shape[:2]
        means = []
        for r in range(runs):
            total = x.new_zeros(())
            for k in range(0, devices, 10):
                some = range(r * devices + k, r * devices + min(k + 10, devices))
                stacked = x.expand(len(some), *x.shape)  # [l, n, ...]
                outputs = self._outputs(shared, personal, some, stacked)  # [l, n, classes]
                total = total + both(self.phase.net, outputs).sum(0)
            means.append(total / devices)
        return torch.stack(means)

    def _laid(self, rows: str) -> tuple[Tensor, Tensor]:
        """The rows of each place, padded, and which of them are real, [R, K, n]; laid out once."""
        if rows not in self.laid:
            split, per_run = self.phase.rows[rows]
            width = max(r.index.shape[1] for r in per_run)
            index = torch.stack([F.pad(r.index, (0, width - r.index.shape[1])) for r in per_run])
            size = torch.stack([r.size for r in per_run]).cpu()  # [R, K]
            real = torch.arange(width) < size[..., None]
            self.laid[rows] = index.to(split.x.device), real.to(split.x.device)
        return self.laid[rows]

    def _parts(self, shared: str, personal: str, places: Sequence[int]) -> list[Sequence[int]]:
        """``places`` in parts of `AT_ONCE`, each of one run where devices share a vector."""
        runs, devices = len(self.phase.seeds), self._devices
        groups: list[Sequence[int]] = [places]
        if any(_by_run(self.phase.tensors[name]) for name in (shared, personal)):
            of_run = [range(r * devices, (r + 1) * devices) for r in range(runs)]
            every = isinstance(places, range)
            groups = [own if every else [p for p in places if p in own] for own in of_run]
        return [g[i : i + AT_ONCE] for g in groups for i in range(0, len(g), AT_ONCE)]

    def _outputs(
        self, shared: str, personal: str, places: Sequence[int], x: Tensor, **more: object
    ) -> Tensor:
        """x [l, n, ...] -> [l, n, classes], row i through the model of places[i] (of `_parts`)."""
        net, layout, run = self.phase.net, self.phase.layout, places[0] // self._devices
        two = [self.phase.tensors[name] for name in (shared, personal)]
        alike = [_by_run(t) or not t.shape[-1] for t in two]  # for all places here
        params = layout.views(*(t[run] if _by_run(t) else _of(t, places) for t in two))
        if all(alike):
            return filled(net, params)(x.flatten(0, 1), **more).unflatten(0, x.shape[:2])
        axes = {name: None if alike[name in layout.personal] else 0 for name in params}
        return vmap(lambda p, x: filled(net, p)(x, **more), (axes, 0))(params, x)


class Hits:
    """How many of its ``rows`` the model of each of n ``places`` (None: all) gets right.

    `count` writes them into ``found`` [n], on the device, from the tensors called ``shared`` and
    ``personal`` as they are then; ``places`` has their order.
    """

    def __init__(
        self,
        tests: StackedTests,
        shared: str,
        personal: str,
        rows: str,
        places: Sequence[int] | None = None,
    ):
        self.tests, self.names, self.split = tests, (shared, personal), tests.phase.rows[rows][0]
        index, real = tests._laid(rows)  # [R, K, n]
        places = range(len(index.flatten(0, 1))) if places is None else places
        self.parts = [
            (some, _of(index, some), _of(real, some))  # [l, n] each
            for some in tests._parts(shared, personal, places)
        ]
        places = [place for some, *_ in self.parts for place in some]
        self.places = torch.tensor(places, dtype=torch.long)
        self.found = index.new_zeros(len(self.places))

    @torch.no_grad()
    def count(self, _: int | None = None) -> None:
        """Once more, in parts that fit into the memory."""
        (x, y), counted = (self.split.x, self.split.y), 0
        for some, at, there in self.parts:
            right = self.found[counted : counted + len(some)].zero_()
            for few in range(0, at.shape[1], ROWS_OF_ONE):
                now = slice(few, few + ROWS_OF_ONE)
                said = decided(self.tests._outputs(*self.names, some, x[at[:, now]]))  # [l, n]
                right += ((said == y[at[:, now]]) & there[:, now]).sum(1)
            counted += len(some)


def _by_run(vectors: Tensor) -> bool:
    """Whether devices share a vector: [R, P], P > 0."""
    return vectors.dim() == 2 and vectors.shape[1] > 0


def _of(tensor: Tensor, places: Sequence[int]) -> Tensor:
    """``tensor`` [R, K, ...] at some places: a view of it where they lie side by side."""
    if tensor.dim() == 2 and not tensor.shape[1]:
        return tensor[0]  # nothing: the same for all
    flat = tensor.flatten(0, 1)
    if isinstance(places, range):
        return flat[places.start : places.stop]
    return flat[to_device(torch.tensor(places), flat.device)]
