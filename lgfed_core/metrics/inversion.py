"""Gradient inversion: what an honest but curious server reads off a device's update.

A fully connected layer z = W x + b has, for one row, the gradient dW = d x', db = d, where d is the
loss's derivative by z. So dW_i / db_i is the row itself, for every unit i that is active
(Phong et al. 2018; Geiping et al. 2020, proposition 3.1). For several rows it is their mean,
weighted by d_i: a row alone in a unit comes back whole. `only_input` uses all units at once,
`inputs` takes each for itself; no search is needed, and it is exact but for rounding and noise.

Behind layers that a device keeps, this gives their output h, and no row. `behind` then looks for
rows whose h is the same, for an attacker who knows these layers, or takes others for them.

>>> d, x = torch.tensor([[0.5], [-0.25]]), torch.tensor([[3.0, 4.0]])
>>> only_input(d @ x, d[:, 0])
tensor([3., 4.])
"""

from collections.abc import Callable

import torch
from torch import Tensor

SMALL = 1e-12
LEAST = torch.finfo(torch.float32).tiny
MISSED = 0.03  # of |h|^2; layers that are known come to a tenth of that


def only_input(weight: Tensor, bias: Tensor) -> Tensor:
    """The row [d] behind gradients [u, d] and [u] of a layer that has seen one, by least squares.

    Of several rows, a mixture. Any multiple of a gradient will do, such as the change of weights
    after one step.
    """
    unit = bias / bias.abs().max().clamp(min=LEAST)
    return unit @ weight / (unit @ bias).clamp(min=LEAST)


def inputs(weight: Tensor, bias: Tensor) -> Tensor:
    """What each unit that has a gradient says of the rows: [units, d], mixtures of them."""
    heard = bias.abs() > SMALL * bias.abs().max()
    return weight[heard] / bias[heard, None]


def only_label(bias: Tensor) -> int:
    """The class of the one row behind the gradient [C] of the last bias (Zhao et al. 2020).

    Cross-entropy has p_c - 1 there for the row's class, and p_c > 0 for all others.
    """
    return int(bias.argmin())


def decoded(h: Tensor, seen: Tensor, x: Tensor, ridge: float = 1e-4) -> Tensor:
    """Rows [n, d] for representations h [n, r], by a linear map fitted to other rows.

    seen: representations [m, r] of pictures of the kind, x [m, d], which anybody has. ridge: the
    penalty, as a share of the mean variance of ``seen``.
    """
    middle, mean = seen.mean(0), x.mean(0)
    s = seen - middle
    penalty = ridge * s.square().sum() / s.shape[1]
    gram = s.T @ s + penalty * torch.eye(s.shape[1])
    return (h - middle) @ torch.linalg.solve(gram, s.T @ (x - mean)) + mean


def behind(
    layers: Callable[[Tensor], Tensor],
    h: Tensor,
    public: Tensor,
    low: float,
    high: float,
    *,
    steps: int = 400,
    restarts: int = 2,
    smooth: float = 0.1,
    seed: int = 0,
) -> Tensor:
    """Rows [n, d] of square pictures from ``low`` to ``high`` that ``layers`` take to h [n, r].

    Begins with what a linear map says, fitted to ``public`` rows [m, d] (`decoded`), blurred by
    noise in all restarts but the first; Adam minimises |layers(x) - h|^2 / |h|^2 + smooth * (total
    variation, the mean over neighbours). Of the ``restarts`` the one with the lowest value is
    taken, row by row. Where even that stays away from h (`MISSED`), the layers are not what one
    takes them for, and a search would only fit that error: then the row is what a cautious linear
    map says of h, brought to the usual length. No row is compared with the true one.
    """
    with torch.no_grad():
        seen = layers(public)  # [m, r]
        first = (decoded(h, seen, public) - low) / (high - low)  # [n, d]
        usual = h * (seen.norm(dim=-1).mean() / h.norm(dim=-1, keepdim=True).clamp(min=SMALL))
        cautious = decoded(usual, seen, public, ridge=1.0).clamp(low, high)
    side, rng = round(public.shape[1] ** 0.5), torch.Generator().manual_seed(seed)
    noise = torch.randn(restarts, *first.shape, generator=rng)
    noise[0] = 0
    raw = (first.clamp(0.02, 0.98).logit() + noise).requires_grad_()  # [restarts, n, d]
    adam = torch.optim.Adam([raw], lr=0.1)
    scale = h.square().sum(-1).clamp(min=SMALL)  # [n]

    def value() -> tuple[Tensor, Tensor, Tensor]:
        share = raw.sigmoid()
        picture = share.unflatten(-1, (side, side))
        rough = sum(picture.diff(dim=axis).abs().mean((-1, -2)) for axis in (-1, -2))
        x = low + (high - low) * share
        said = layers(x.flatten(0, 1)).unflatten(0, x.shape[:2])  # [restarts, n, r]
        far = (said - h).square().sum(-1) / scale  # [restarts, n]
        return far + smooth * rough, far, x

    for _ in range(steps):
        (raw.grad,) = torch.autograd.grad(value()[0].sum(), [raw])
        adam.step()
    with torch.no_grad():
        found, far, x = value()
        best = found.argmin(0), torch.arange(len(h))
        return torch.where(far[best][:, None] > MISSED, cautious, x[best])


def correlation(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's correlation of rows a and b [..., d] -> [...]; 0 for one that is constant."""
    return (_direction(a) * _direction(b)).sum(-1)


def _direction(v: Tensor) -> Tensor:
    """v [..., d] less its mean, at length 1; 0 where nothing but roundings is left."""
    off = v - v.mean(-1, keepdim=True)
    length = off.norm(dim=-1, keepdim=True)
    alike = length <= 4 * torch.finfo(v.dtype).eps * v.norm(dim=-1, keepdim=True)
    return torch.where(alike, 0.0, off / length.clamp(min=LEAST))


def psnr(a: Tensor, b: Tensor, span: float) -> Tensor:
    """Peak signal-to-noise ratio of pictures a against b [..., d], in dB -> [...].

    span: between the darkest and the lightest value that a pixel can have.
    """
    return 10 * (span**2 / (a - b).square().mean(-1).clamp(min=SMALL)).log10()
