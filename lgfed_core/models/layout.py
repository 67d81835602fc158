"""Parameters as flat vectors: which part is shared with the server, which stays on the device.

A network's parameters, in the order of `net.named_parameters()`, make one vector of length P
(the *joined* order); running statistics of batch normalisation follow them. A method cuts it in
two: ``shared`` [P_s] and ``personal`` [P_p], P = P_s + P_p. Vectors make averaging, momentum,
checkpoints and messages one line each; the network reads them back through views, without a copy.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from lgfed_core.errors import SettingsError


class Layout:
    """Where each named parameter lies in the shared or the personal vector of a device."""

    def __init__(self, net: nn.Module, shared: Iterable[str]):
        """``shared``: names of the averaged parameters. Raises SettingsError for an unknown one."""
        self.shapes = {name: value.shape for name, value in values(net)}
        shared = frozenset(shared)
        if unknown := shared - self.shapes.keys():
            raise SettingsError(
                f"no parameter called {sorted(unknown)} in {type(net).__name__}; "
                f"it has {list(self.shapes)}"
            )
        self.shared = tuple(n for n in self.shapes if n in shared)
        self.personal = tuple(n for n in self.shapes if n not in shared)
        self.size_shared = sum(self.shapes[n].numel() for n in self.shared)
        self.size_personal = sum(self.shapes[n].numel() for n in self.personal)

    def views(self, shared: Tensor, personal: Tensor) -> dict[str, Tensor]:
        """Named views into [..., P_s] and [..., P_p]; leading axes (lanes) are kept.

        Raises SettingsError for vectors of another length, as `split` and `join` do.
        """
        self._long_enough(shared, self.size_shared, "shared parameters")
        self._long_enough(personal, self.size_personal, "personal parameters")
        return self._cut(shared, self.shared) | self._cut(personal, self.personal)

    def split(self, joined: Tensor) -> tuple[Tensor, Tensor]:
        """[..., P] in the order of the network -> ([..., P_s], [..., P_p]), copied."""
        self._long_enough(joined, self.size_shared + self.size_personal, "a network's parameters")
        parts = self._cut(joined, self.shapes)
        flat = {n: v.reshape(*joined.shape[:-1], -1) for n, v in parts.items()}
        empty = joined[..., :0]
        shared = torch.cat([empty, *(flat[n] for n in self.shared)], -1)
        return shared, torch.cat([empty, *(flat[n] for n in self.personal)], -1)

    def join(self, shared: Tensor, personal: Tensor) -> Tensor:
        """The inverse of `split`: -> [..., P]. Leading axes broadcast; ``shared`` [..., P_s] may
        lack the axis of devices that ``personal`` [..., K, P_p] has, as of a server and its K.
        """
        if personal.dim() == shared.dim() + 1:
            shared = shared.unsqueeze(-2)
        lead = torch.broadcast_shapes(shared.shape[:-1], personal.shape[:-1])
        parts = self.views(shared.expand(*lead, -1), personal.expand(*lead, -1))
        return torch.cat([parts[n].reshape(*lead, -1) for n in self.shapes], -1)

    @staticmethod
    def _long_enough(vector: Tensor, size: int, what: str) -> None:
        if vector.shape[-1:] != (size,):
            raise SettingsError(f"{what} are {list(vector.shape)}; they must be [..., {size}]")

    def _cut(self, vector: Tensor, names: Iterable[str]) -> dict[str, Tensor]:
        out, at = {}, 0
        for name in names:
            size = self.shapes[name].numel()
            part = vector[..., at : at + size]
            out[name] = part.view((*vector.shape[:-1], *self.shapes[name]))
            at += size
        return out


def parts(net: nn.Module, *names: str) -> frozenset[str]:
    """Names of the parameters of the parts ``names`` of ``net``, e.g. "local", "own"."""
    starts = tuple(f"{name}." for name in names)
    return frozenset(n for n, _ in net.named_parameters() if n.startswith(starts))


def values_of(values: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """Those of ``values`` that belong to a ``part``, by their names in there."""
    start = f"{part}."
    return {n.removeprefix(start): v for n, v in values.items() if n.startswith(start)}


def joined(net: nn.Module) -> Tensor:
    """All parameters of ``net``, and its running statistics, as one detached vector [P]."""
    return torch.cat([value.detach().reshape(-1) for _, value in values(net)])


def values(net: nn.Module) -> list[tuple[str, Tensor]]:
    """Parameters by name, then running statistics: all floats that make two networks differ."""
    statistics = [(n, b) for n, b in net.named_buffers() if b.is_floating_point()]
    return [*net.named_parameters(), *statistics]
