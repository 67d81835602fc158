"""The upper blocks of a network trained on ImageNet, which go on learning, at a tenth of the rate.

What a device learns is how far each weight has moved, scaled by the square root of a tenth: a step
of SGD then moves the weight a tenth as far as it would another, and weight decay pulls it back to
ImageNet's value. Running statistics rest where they are (Hong et al., 2021, appendix B.2).
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call

RATE = 0.1  # of a block, against the layers above it; as released


class UpperBlocks(nn.Module):
    """``blocks``, of maps [n, *shape], and the mean over places of what they make, [n, width].

    Its parameters, one for each of ``blocks``' own, start at zero.
    """

    def __init__(self, blocks: nn.Module, shape: tuple[int, int, int]):
        super().__init__()
        self.shape = shape
        self.held = (blocks.eval().requires_grad_(False),)  # in a tuple, and so no part of it
        self.names = {name.replace(".", "_"): name for name, _ in blocks.named_parameters()}
        start = {own: torch.zeros_like(blocks.get_parameter(n)) for own, n in self.names.items()}
        self.moved = nn.ParameterDict(start)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, prod(shape)] -> [n, width]."""
        (blocks,) = self.held
        blocks.to(x.device)
        now = {
            name: blocks.get_parameter(name) + RATE**0.5 * self.moved[own]
            for own, name in self.names.items()
        }
        maps = functional_call(blocks, now, x.unflatten(1, self.shape))  # [n, width, h, w]
        return maps.mean((2, 3))
