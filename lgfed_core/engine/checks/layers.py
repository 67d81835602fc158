"""Layers of PyTorch that lanes cannot take, refused by name before anything trains.

Batched lanes lift a network by vmap, which does not know the kernels of recurrent layers, and reads
an embedding without its ``padding_idx`` and ``max_norm``: it would train another network, silently.
"""

from collections.abc import Sequence

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from lgfed_core.errors import SettingsError

RECURRENT = (nn.RNNBase, nn.LSTMCell)
IGNORED = ("padding_idx", "max_norm")  # by batched lanes


def refuse_lazy(net: nn.Module) -> None:
    """Raise SettingsError for the first layer of ``net`` that has not got its shape yet."""
    for name, module in net.named_modules():
        own = *module.parameters(recurse=False), *module.buffers(recurse=False)
        if any(map(is_lazy, own)):
            raise SettingsError(
                f"{type(net).__name__}: {name or 'it'} is an nn.{type(module).__name__}, which has "
                "no parameters before it has seen rows; call the network once on a batch first, as "
                "net(x[:2]), or say how many inputs it has"
            )


def refuse_layers(net: nn.Module, batched: bool) -> None:
    """Raise SettingsError for the first layer of ``net`` that the lanes meant cannot take."""
    if not isinstance(getattr(net, "softmax", False), bool):
        raise SettingsError(
            f"{type(net).__name__}.softmax is {net.softmax!r}; an attribute of this name says "
            "whether the network ends in a softmax, True or False: call what it is otherwise"
        )
    for name, module in net.named_modules():
        what = f"{type(net).__name__}: {name or 'it'} is an nn.{type(module).__name__}"
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            lost = [n for n in IGNORED if getattr(module, n) is not None]
            refuse_told(what, module.sparse, lost if batched else [])
        if batched and isinstance(module, RECURRENT):
            raise SettingsError(
                f"{what}, which batched lanes cannot take; use lgfed_core.models.recurrent.LSTM, "
                'nn.GRUCell or nn.RNNCell, or lanes="looped" on a CPU'
            )


def refuse_told(what: str, sparse: bool, lost: Sequence[str]) -> None:
    """Raise SettingsError for ``what`` embeds by ``sparse`` gradients, or by what is ``lost``."""
    if sparse:
        raise SettingsError(f"{what} with sparse gradients; lanes need dense ones: sparse=False")
    if lost:
        raise SettingsError(
            f"{what} with {' and '.join(lost)}, which batched lanes would ignore; leave it out "
            '(LSTM of lgfed_core.models.recurrent takes lengths instead), or lanes="looped"'
        )


def has_batch_norm(net: nn.Module) -> bool:
    """Whether some layer of ``net`` keeps running statistics of its batches."""
    return any(isinstance(module, _BatchNorm) for module in net.modules())


def normalises(net: nn.Module) -> bool:
    """Whether ``net``, in training, normalises by the batch at hand."""
    return any(isinstance(module, _BatchNorm) and module.training for module in net.modules())
