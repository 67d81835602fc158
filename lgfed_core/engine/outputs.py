"""What a network's outputs stand for: classes, and probabilities."""

import torch
from torch import Tensor, nn


def decided(outputs: Tensor) -> Tensor:
    """The class that outputs [..., classes] stand for -> int64 [...]; of one output, 1 above 0."""
    return outputs.argmax(-1) if outputs.shape[-1] > 1 else (outputs[..., 0] > 0).long()


def both(net: nn.Module, outputs: Tensor) -> Tensor:
    """A network's outputs [..., n, classes] and their probabilities -> [..., 2, n, classes].

    Of one output, that of label 1, the probability less a half, as `decided` goes by its sign.
    """
    if outputs.shape[-1] == 1:
        return torch.stack([outputs, outputs.sigmoid() - 0.5], -3)
    ends_in_softmax = getattr(net, "softmax", False) is True
    return torch.stack([outputs, outputs if ends_in_softmax else outputs.softmax(-1)], -3)
