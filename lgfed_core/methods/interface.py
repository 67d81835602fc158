"""What a federated method is: four answers, each with the plainest default.

The engine (`loop.run`) is the same for all methods. A method answers

* ``shared(net)``: which parameters the server averages;
* ``steps(net)``: what a device minimises on a batch, in one step or several. Where it is one step
  on all parameters, ``loss(local, batch)`` says it;
* ``weights(rows)``: how much each upload counts in the average;
* ``server_update(before, average)``: where the server moves.

A server that wants no weighted average overrides ``aggregate``; one that remembers earlier rounds
has a ``server_memory`` and ``server_step``; one that sets each upload against what was there before
has a ``merge``. A device that has something to do once it has trained has a ``finish``. Who takes
part is a fact of the federation, `engine.Participation`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import grad

from lgfed_core.errors import SettingsError

from .field_checks import refuse_ignored, refuse_outside, refuse_types
from .privacy import Treatment

BATCH_NORM = ("frozen", "local", "averaged")


@dataclass(frozen=True)
class Batch:
    """Some rows of one device."""

    x: Tensor  #: [b, ...]
    y: Tensor  #: [b]
    weight: Tensor | None = None  #: [b], sums to one, 0 on padding; None stands for 1/b everywhere
    groups: Tensor | None = None  #: [b, g], protected attributes where the data set has some

    def mean(self, values: Tensor) -> Tensor:
        """The mean over rows of ``values`` [b, ...]."""
        if self.weight is None:
            return values.mean(0)
        return torch.tensordot(self.weight, values, 1)

    def attributes(self, kinds: int, columns: slice = slice(None)) -> Tensor:
        """``columns`` of ``groups``, [b, g], numbered from 0 to ``kinds`` - 1.

        That all rows are is made sure of before anything trains (`engine.checks`). Raises
        SettingsError where there are no groups, or one number a row in place of a column.
        """
        if self.groups is None:
            raise SettingsError("an adversary needs protected attributes; there are no groups")
        if self.groups.dim() != 2:
            raise SettingsError(
                f"groups are {list(self.groups.shape)}; they must be [b, g], a column for each "
                "protected attribute"
            )
        return self.groups[:, columns]


@dataclass(frozen=True)
class Local:
    """One device in the middle of a round, as its objective sees it."""

    net: Callable[..., Tensor]  #: inputs [b, ...] -> outputs [b, classes]; more arguments pass on
    params: dict[str, Tensor]  #: current values, differentiable
    received: dict[str, Tensor]  #: values at the start of the round, constant
    #: the mean of the other participants' models then, or its own without any, for who
    #: `needs_peers`; devices without rows are none
    others: dict[str, Tensor] = field(default_factory=dict)
    #: how many there are in this round, itself one of them, for who `needs_peers`; else 1
    participants: int | Tensor = 1
    round: int | Tensor = 0  #: the number of this round; see `Method.round_as_tensor`
    _elsewhere: Any = field(default=None, repr=False)  # an `engine.sheltered.Elsewhere`

    def at(self, params: Mapping[str, Tensor]) -> "Local":
        """The same device with other values of ``params``, name -> tensor; all others stay.

        For a loss that looks elsewhere: ``super().loss(local.at(there), batch)``.
        """
        return self._with(params, self._elsewhere.net)

    def gradients(
        self, loss: Callable[["Local", Batch], Tensor], batch: Batch
    ) -> dict[str, Tensor]:
        """Of ``loss`` by all parameters that are not frozen, name -> tensor.

        They can be differentiated again; ``detach`` them for a first-order method. Running
        statistics stay as they are.
        """

        def of(there: dict[str, Tensor]) -> Tensor:
            return loss(self._with(there, self._elsewhere.apart), batch)

        return grad(of)({name: self.params[name] for name in self._elsewhere.moving})

    def _with(self, params: Mapping[str, Tensor], net: Callable[[dict], Callable]) -> "Local":
        """With some other values; net: from all values to the network that has them."""
        now = self.params | dict(params)
        return replace(self, net=net(now), params=now)


class Step(NamedTuple):
    """A gradient step on a batch: what is minimised, and which parameters move (None: all).

    when: whether a device takes this step in this round, from a number between 0 and 1 that it has
        drawn for the round; None: always.
    part: in which part of a device's batches in a round the step is taken, from 0 (the first) to 1:
        (0, 0.5) is the first half of them. One that begins at 0 has at least the first, one that
        ends at 1 at least the last. See `now`.
    pull: mu, where mu/2 ||w - w_received||^2 is minimised beside the loss; the engine adds its
        gradient, mu (w - w_received), which costs less than to find it.
    """

    loss: Callable[[Local, Batch], Tensor]
    params: frozenset[str] | None = None
    when: Callable[[float], bool] | None = None
    pull: float = 0.0
    part: tuple[float, float] = (0.0, 1.0)

    def now(self, batch: int | Tensor, batches: int | Tensor) -> bool | Tensor:
        """Whether it is taken with batch number ``batch``, from 0, of a device's ``batches``."""
        first, end = self.part
        begun = (batch >= first * batches) | (batch + 1 == batches)
        return begun & (batch < end * batches)


@dataclass(frozen=True, kw_only=True)
class Method:
    """Defaults: share everything, cross-entropy, n_k/n weights, the server moves to the average.

    weighted: True for weights n_k/n; False for 1/m, as LG-FedAvg's code has it.
    batch_norm: what becomes of running statistics: "frozen" as the run begins, "local" to each
        device, or "averaged" with what is shared.
    upload: what is done to each upload before it leaves the device, in order.

    Raises SettingsError for a setting of another type than its field's, and for one that a class
    overrides without a type, which Python would ignore.
    """

    weighted: bool = True
    batch_norm: str = "local"
    upload: Sequence[Treatment] = ()

    LEAST: ClassVar[Mapping[str, float]] = {}  #: the smallest values of settings
    CHOICES: ClassVar[Mapping[str, Iterable[str]]] = {"batch_norm": BATCH_NORM}
    SHARES: ClassVar[Sequence[str]] = ()  #: settings in (0, 1]
    BELOW_ONE: ClassVar[Sequence[str]] = ()  #: settings in [0, 1)
    unlabelled: ClassVar[bool] = False  #: whether it takes rows without a label, below 0
    server_memory: ClassVar[int] = 0  #: how many vectors [P_s] the server keeps between rounds
    needs_peers: ClassVar[bool] = False  #: whether the objective reads the other devices' models
    #: whether losses take the number of the round as a tensor, too (of batched lanes): on a GPU one
    #: recording of a step then serves all rounds; a loss that asks for Python's needs one in each
    round_as_tensor: ClassVar[bool] = False
    #: finish(trained), of a `Trained`: what its devices send [m, P_s] and keep of their own
    #: [m, P_p], each by itself; None: all as it has been trained
    finish: ClassVar[Callable[..., tuple[Tensor, Tensor]] | None] = None
    #: merge(arrived), of an `Arrived`: the shared vector [P_s] after the round, and the memory
    #: [server_memory, P_s]; None: as `aggregate`, `server_update` and `server_step` say
    merge: ClassVar[Callable[..., tuple[Tensor, Tensor]] | None] = None
    #: relabel(round): None, or how a device labels its rows that have no label (-1), before anybody
    #: trains: from what the network says with_features=True, [n_k, ...], to labels [n_k]
    relabel: ClassVar[Callable[..., Callable[[Tensor], Tensor] | None] | None] = None

    def __post_init__(self):
        refuse_ignored(self)
        refuse_types(self)
        refuse_outside(self)

    def shared(self, net: nn.Module) -> frozenset[str]:
        """Names of the parameters that are averaged."""
        return frozenset(name for name, _ in net.named_parameters())

    def loss(self, local: Local, batch: Batch) -> Tensor:
        """The scalar one device minimises on a batch.

        `Batch.mean` makes it of a number for each row: it weighs rows, and batched lanes have some
        of weight 0. A loss that is another with these is refused there. It goes by what it is given
        and keeps no count of its own: on a GPU its second call is played again for all others.
        """
        return cross_entropy(local.net(batch.x), batch)

    def steps(self, net: nn.Module) -> Sequence[Step]:
        """What a device does with each batch, in order: by default one step on all parameters."""
        return (Step(self.loss),)

    def weights(self, rows: Tensor) -> Tensor | None:
        """Weights [m] that sum to one, of uploads with ``rows`` [m] training rows behind them.

        None stands for 1/m everywhere. Rows are counted on the CPU, wherever models are.
        """
        return rows / rows.sum() if self.weighted else None

    def aggregate(self, uploads: Tensor, weights: Tensor | None) -> Tensor:
        """One vector [P_s] of ``uploads`` [m, P_s]: their average by ``weights`` [m].

        Shared parameters lie one after another, in the order of ``net.named_parameters()``.
        """
        return uploads.mean(0) if weights is None else weights.to(uploads) @ uploads

    def server_update(self, before: Tensor, average: Tensor) -> Tensor:
        """The shared vector [P_s] after a round, from that before it and from `aggregate`'s."""
        return average

    def server_step(self, before: Tensor, average: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """`server_update` of a server with a memory: the shared vector and the new memory.

        memory: [server_memory, P_s], zeros before the first round.
        """
        return self.server_update(before, average), memory


def partway(before: Tensor, average: Tensor, beta: float) -> Tensor:
    """A server's step of ``beta``, of the way from ``before`` to ``average``."""
    return beta * average + (1 - beta) * before


def cross_entropy(outputs: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy of outputs [b, classes] against the labels of ``batch``."""
    if batch.weight is None:
        return F.cross_entropy(outputs, batch.y)
    return batch.mean(F.cross_entropy(outputs, batch.y, reduction="none"))
