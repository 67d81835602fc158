"""Adversaries in federated training: fair LG-FedAvg, and FedAvg with an adversary that looks on.

Liang et al. 2019 (v1), sections 2.3 and 6; 2020 (v2), appendix B. A device has a local model f, its
own head a, a copy of the shared head g and a local adversary r: `models.adult.AdultNet`.
With each batch it plays twice (v1 eqs 24 and 25):

    local    E(f, a, r) = L_f(f, a) - lambda_local  L_r(f, r)
    global   E(f, g, r) = L_f(f, g) - lambda_global L_r(f, r)

The heads and f descend E, r ascends it, which is to descend L_r: its gradient is not scaled by
lambda, so that the adversary is as good with a small lambda as with a large one. Only g is sent;
race and sex, and everything that has learned from them directly, stay on the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor, nn

from lgfed_core.errors import SettingsError
from lgfed_core.models.layout import parts

from .adversary import adversary_loss, reverse, unchanged
from .interface import Batch, Local, Method, Step, cross_entropy

PLAYS = ("alternating", "reversal")


@dataclass(frozen=True, kw_only=True)
class FairLGFedAvg(Method):
    """LG-FedAvg with a local adversary; with both lambdas zero, LG-FedAvg that is merely watched.

    play: "alternating", a step each for f, its head and r, in the order of v1 (10)-(12) and
        (21)-(23); or "reversal", one step for all three through gradient reversal.
    pretraining: only the local game, and nothing is shared.
    power: q of the adversary's loss, 1 vanilla and 2 squared.
    adversary_steps: how many the adversary takes with each batch and game.
    """

    lambda_local: float = 0.0
    lambda_global: float = 0.0
    play: str = "alternating"
    pretraining: bool = False
    power: float = 1.0
    adversary_steps: int = 1

    LEAST: ClassVar = {"adversary_steps": 1, "power": 1, "lambda_local": 0, "lambda_global": 0}
    CHOICES: ClassVar = {"play": PLAYS}

    def shared(self, net: nn.Module) -> frozenset[str]:
        return frozenset() if self.pretraining else parts(net, "head")

    def steps(self, net: nn.Module) -> Sequence[Step]:
        needed = ("local", "own", "adversary", *(["head"] * (not self.pretraining)))
        if missing := [name for name in needed if not parts(net, name)]:
            raise SettingsError(
                f"{type(net).__name__} has no parameters in {', '.join(missing)}; "
                f"{type(self).__name__} plays with the parts of models.adult.AdultNet"
            )
        local = self._game(net, "own", self.lambda_local)
        return local if self.pretraining else local + self._game(net, "head", self.lambda_global)

    def _game(self, net: nn.Module, top: str, strength: float) -> tuple[Step, ...]:
        """One game on a batch: the encoder and the head ``top`` against the adversary."""
        own = top == "own"
        read = Step(self.adversary, parts(net, "adversary"))  # (12), (23)
        reads = (read,) * self.adversary_steps
        if self.play == "reversal":
            moves = parts(net, "local", top, "adversary")
            return Step(partial(self.at_once, own=own, strength=strength), moves), *reads[1:]
        value = partial(self.value, own=own, strength=strength)
        encoder = Step(value, parts(net, "local"))  # (10), (21)
        head = Step(partial(self.task, own=own), parts(net, top))  # (11), (22)
        return encoder, head, *reads

    def value(self, local: Local, batch: Batch, own: bool, strength: float) -> Tensor:
        """E, v1 eqs (24) and (25)."""
        outputs, protected = local.net(batch.x, own=own, watch=unchanged)
        task = cross_entropy(outputs, batch)
        return task - strength * adversary_loss(protected, batch, self.power)

    def task(self, local: Local, batch: Batch, own: bool) -> Tensor:
        """L_f; of E, all that a head has a say in."""
        return cross_entropy(local.net(batch.x, own=own), batch)

    def adversary(self, local: Local, batch: Batch) -> Tensor:
        """L_r, v1 eq. (7)."""
        return adversary_loss(local.net(batch.x, watch=Tensor.detach)[1], batch, self.power)

    def at_once(self, local: Local, batch: Batch, own: bool, strength: float) -> Tensor:
        """What all players descend together, the sign turned between adversary and encoder."""
        watch = partial(reverse, strength=strength)
        outputs, protected = local.net(batch.x, own=own, watch=watch)
        return cross_entropy(outputs, batch) + adversary_loss(protected, batch, self.power)


@dataclass(frozen=True, kw_only=True)
class WatchedFedAvg(Method):
    """FedAvg of model and adversary; the adversary learns from h, the model not from the adversary.

    v2 section 5.5: "both updated using FedAvg".
    """

    def loss(self, local: Local, batch: Batch) -> Tensor:
        outputs, protected = local.net(batch.x, watch=Tensor.detach)
        return cross_entropy(outputs, batch) + adversary_loss(protected, batch)
