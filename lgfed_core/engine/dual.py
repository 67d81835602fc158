"""A first layer in dual form: a device's local pass that reads and writes its weights once.

Every step of SGD reads and writes a wide first layer several times over for the sake of a few
rows. Where its inputs are the device's rows themselves, that can wait: its gradient is D_s' X_s, of
the rows X_s [b, in] of step s and what came back to the layer's outputs, D_s [b, out]. Whatever the
momentum, the weights are then at any time a combination of those before the first step, of their
velocity then, and of these gradients, and what they make of the rows of step t is

    X_t W_t' = w X_t W_0' + v X_t V_0' + sum_s c_s (X_t X_s') D_s

with two large products before the first step, X W_0' and the rows' Gram matrix X X', and one after
the last, which writes W. The coefficients w, v, c follow the optimiser's own recurrence, which is
linear. For plain SGD of rate lr and momentum m from rest, w = 1 and c_s = lr (1 - m^j) / (1 - m), j
steps after s began.

It is exact: equal to the plain pass up to rounding. `first_layer` says where it holds.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core.methods import Method, Step

from .optimiser import LocalTraining
from .phase import Phase, Ready, trainee

LEAST = 2**16  # weights; fewer stay in a core's cache, and nothing is won
BLOCK = 1024  # rows from one write of the weights to the next: the Gram matrix grows by squares
STRIP = 200  # rows
STEPS = 16  # at least so many steps a block, or the plain pass costs less


class NotTheRows(Exception):
    """The layer was given something else than the rows of the batch, or not just once."""


def ahead(batch_size: int) -> int:
    """How many rows are fetched at once, in whole batches: those of a block."""
    return max(1, BLOCK // batch_size) * batch_size


def first_layer(phase: Phase) -> str | None:
    """Name of the layer that may take the dual form; None where there is none.

    It may where devices minimise cross-entropy, in one step on all parameters (which may pull), and
    the network gives its rows as they are to a linear layer that it uses for nothing else.
    """
    for method in phase.methods:
        if type(method).loss is not Method.loss or not _one_step(method, phase.net):
            return None
    training, net = phase.training, trainee(phase)
    name, layer = next(((n, m) for n, m in net.named_modules() if m._parameters), ("", None))
    if type(layer) is not nn.Linear or not layer.weight.requires_grad:
        return None
    if training.adam or training.augment:
        return None
    if layer.weight.numel() < LEAST or training.batch_size * STEPS > BLOCK:
        return None
    split, per_run = phase.rows["train"]
    some = per_run[0].of(int(per_run[0].size.argmax()))[: training.batch_size]
    return name if _takes_rows(net, layer, split.x[some], split.y[some]) else None


def _one_step(method: Method, net: nn.Module) -> bool:
    """Whether devices take the step ``loss`` on all parameters, whatever it pulls, and no other."""
    steps = method.steps(net)
    return len(steps) == 1 and steps[0]._replace(pull=0.0) == Step(method.loss)


def _takes_rows(net: nn.Module, layer: nn.Linear, x: Tensor, y: Tensor) -> bool:
    """Whether ``net`` calls ``layer`` once, on ``x`` itself, and uses its weights nowhere else."""
    calls = []
    layer.register_forward_hook(lambda _, given, out: calls.append((given[0], out)))
    weight, rows = layer.weight, x.flatten(1)
    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        loss = F.cross_entropy(net(x.clone()), y)
    if len(calls) != 1 or not torch.equal(calls[0][0], rows):
        return False
    found, back = torch.autograd.grad(
        loss, (weight, calls[0][1]), allow_unused=True, materialize_grads=True
    )
    return bool((found - back.T @ rows).abs().max() <= 1e-4 * found.abs().max())


class Dual:
    """Stands in for the forward pass of ``layer``, and for its steps between two `start`s.

    Out of a pass it computes what the layer does.
    """

    def __init__(self, layer: nn.Linear, velocity: Tensor, training: LocalTraining):
        """``velocity`` [out, in] is read at a block's start and written at its end."""
        self.layer, self.velocity, self.training = layer, velocity, training
        self.running = False  # whether a pass is under way
        self.out: Tensor | None = None
        layer.forward = self  # type: ignore[method-assign, assignment]

    @torch.no_grad()
    def start(self, x: Tensor, moving: bool, goes_on: bool, pull: float = 0.0) -> None:
        """Before steps on the rows ``x`` [n, ...], in this order.

        moving: whether the velocity may be other than zero.
        goes_on: whether it is needed after these steps.
        pull: of each step (`methods.Step`), towards the weights as they are now.
        """
        self.pull = pull
        self.x, self.running = x.flatten(1), True  # [n, in]
        x = self.x
        n, weight = len(x), self.layer.weight
        self.moving = moving and self.training.momentum > 0
        self.goes_on = goes_on and self.training.momentum > 0
        self.before = x @ weight.T  # [n, out]
        self.drift = x @ self.velocity.T if self.moving else None  # [n, out]
        self.gram = x.new_empty(n, n)  # of its triangles the lower one, in strips
        for at in range(0, n, STRIP):
            end = min(at + STRIP, n)
            torch.mm(x[at:end], x[:end].T, out=self.gram[at:end, :end])
        self.back = torch.empty_like(self.before)  # [n, out], gradients by outputs
        # what weights and velocity are made of: of those at the start, and of each row's gradient
        self.weights, self.velocities = np.zeros((2, n + 2))
        self.weights[0] = self.velocities[1] = 1
        self.done, self.out = 0, None

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs [b, out] for the next rows ``x`` [b, in]. Raises NotTheRows for any others."""
        if not self.running:
            return F.linear(x, self.layer.weight, self.layer.bias)
        rows = slice(self.done, self.done + len(x))
        if self.out is not None or not torch.equal(x, self.x[rows]):
            raise NotTheRows
        with torch.no_grad():
            w, v, *_ = self.weights
            past = self.gram[rows, : self.done] * self._by_row(self.weights)[: self.done]
            out = torch.addmm(self.before[rows], past, self.back[: self.done], beta=w)
            if self.drift is not None:
                out.add_(self.drift[rows], alpha=v)
        self.out = out.requires_grad_()
        return out.clone() if self.layer.bias is None else out + self.layer.bias

    def outputs(self) -> Tensor:
        """What the last call made of its rows [b, out], without the bias; a leaf of the graph."""
        if self.out is None:
            raise NotTheRows
        return self.out

    def without_its_weights(self, ready: Ready) -> Ready:
        """The same step on all parameters but the layer's weights."""
        step, names, params, momenta = ready
        rest = [n for n, p in enumerate(params) if p is not self.layer.weight]
        names, params = [names[n] for n in rest], [params[n] for n in rest]
        return Ready(step, names, params, [momenta[n] for n in rest])

    @torch.no_grad()
    def step(self, gradient: Tensor, lr: float) -> None:
        """What SGD does to the weights, given the gradient by `outputs` [b, out]."""
        training, rows = self.training, slice(self.done, self.done + len(gradient))
        self.back[rows] = gradient
        slope = (training.weight_decay + self.pull) * self.weights
        slope[0] -= self.pull
        slope[2:][rows] = 1
        self.velocities = training.momentum * self.velocities + slope
        push = slope + training.momentum * self.velocities
        self.weights = self.weights - lr * (push if training.nesterov else self.velocities)
        self.done, self.out = rows.stop, None
        if self.done == len(self.x):
            self._write()

    def _write(self) -> None:
        weight, velocity = self.layer.weight.data, self.velocity
        new = self._combined(self.velocities) if self.goes_on else None
        weight.copy_(self._combined(self.weights))
        if new is not None:
            velocity.copy_(new)
        self.running = False

    def _combined(self, of: np.ndarray) -> Tensor:
        """A combination of weights and velocity at the start and of the gradients, [out, in]."""
        start = self.layer.weight.data
        found = torch.addmm(start, (self.back * self._by_row(of)[:, None]).T, self.x, beta=of[0])
        return found.add_(self.velocity, alpha=of[1]) if self.moving else found

    def _by_row(self, of: np.ndarray) -> Tensor:
        return torch.from_numpy(of[2:]).to(self.back)  # [n]
