"""Embeddings that a network computes, by a layer or by itself: what they are asked for, and how.

Batched lanes stack the tables of all devices. A number beside its own table would read there, and
train, the table of another device, without a word; so every row that devices hold, or are tested
on, is looked up once before anything trains. What `torch.nn.functional.embedding` is told beside
its table would be ignored, as it would of a layer (`layers`).
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lgfed_core.data import Split
from lgfed_core.errors import SettingsError

from ..federation import Federation
from .layers import refuse_told

ROWS = 1000  # looked up at once


class Beside(IndexError):
    """An embedding was asked for a line that its table does not have."""


class _Enough(BaseException):
    """All embeddings have been asked: what the network makes of them does not matter."""


class Lookups(TorchFunctionMode):
    """Notices every embedding that is computed. Raises `Beside` for one beside its table.

    most: how many lines are asked for in all; with the last of them the network is left.
    """

    def __init__(self, most: int | None = None):
        super().__init__()
        self.most, self.lines = most, 0
        self.told: set[str] = set()  # what any was told beside its table

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is F.embedding:
            self._look(*args, **kwargs)
        elif func is torch.embedding:
            self._plain(*args, **kwargs)
        return func(*args, **kwargs)

    def _look(self, input, weight, padding_idx=None, max_norm=None, *_, sparse=False, **__):
        self.lines += input.numel()
        told = dict(padding_idx=padding_idx is not None, max_norm=max_norm is not None)
        self.told |= {name for name, value in (told | dict(sparse=sparse)).items() if value}
        wrong = input[(input < 0) | (input >= len(weight))]
        if len(wrong):
            raise Beside(
                f"an embedding of {len(weight)} lines, numbered from 0, is asked for line "
                f"{int(wrong[0])}"
            )
        if self.lines == self.most:
            raise _Enough

    def _plain(self, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
        """As PyTorch's own function below that is called."""
        self._look(indices, weight, None if padding_idx < 0 else padding_idx, sparse=sparse)


def refuse_embeddings(fed: Federation, net: nn.Module, seen: Lookups, batched: bool) -> None:
    """Raise SettingsError for what embeddings cannot be told, and the first row beside a table.

    net: tested as it is, on a CPU. seen: what it has computed of one row.
    """
    if not seen.lines:
        return
    name = type(net).__name__
    lost = sorted(seen.told - {"sparse"}) if batched else []
    refuse_told(f"{name} computes an embedding", "sparse" in seen.told, lost)
    for what, split, rows in _held(fed):
        for some in rows.split(ROWS):
            if _beside(net, split.x[some], seen.lines) is None:
                continue
            for row in some.tolist():
                if wrong := _beside(net, split.x[row : row + 1], seen.lines):
                    raise SettingsError(
                        f"{name} does not take {what} row {row}: {wrong}; give it a larger table, "
                        "or number the rows' words anew"
                    )


def _held(fed: Federation) -> Iterator[tuple[str, Split, Tensor]]:
    """The numbers of training rows that devices hold, validation rows too, and of all test rows."""
    data = fed.data
    parts = [rows for p in fed.partitions for rows in (p.train, p.validation) if rows is not None]
    held = torch.cat([rows.all.cpu() for rows in parts]).unique()
    yield "training", data.train, held.to(data.train.x.device)
    yield "test", data.test, torch.arange(len(data.test), device=data.test.x.device)


def _beside(net: nn.Module, x: Tensor, lines: int) -> Beside | None:
    """What is asked for beside a table, of rows ``x``, if anything; usually so many lines each."""
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), Lookups(lines * len(x)):
            net(x.to("cpu", copy=True))  # it may work in place
    except Beside as error:
        return error
    except (_Enough, Exception):  # other checks report other errors
        pass
    return None
