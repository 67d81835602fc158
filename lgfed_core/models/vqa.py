"""Questions about pictures: ResNet-18 and a two-layer LSTM, their product, two more layers.

==================  =====================================================  ==============
part                layers, at the paper's sizes                           parameters
==================  =====================================================  ==============
``pictures``        `ResNet` (He et al. 2016), 18 layers, 1,000 outputs    11,689,512
``words``           an embedding                                           512 a word
``questions``       two layers of 512 units; its final states and cells    4,202,496
``picture_fc``      linear (1,000, 1,024), tanh                            1,025,024
``question_fc``     linear (2,048, 1,024), tanh                            2,098,176
``fc1``, ``fc2``    linear (1,024, 1,000), tanh, linear (1,000, 1,000)     2,026,000
==================  =====================================================  ==============

The last three lines are what LG-FedAvg shares: 5,149,200, as printed. Of the encoders the text has
no sizes: those above come from the network that it adapts (Antol et al. 2015, "deeper LSTM"), but
for the embedding, see `PAPER`. Source: Liang et al. (2020), appendix C.2.3.
"""

from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core import require

from .layout import parts
from .recurrent import LSTM

SHARED = ("picture_fc", "question_fc", "fc1", "fc2")
GROUPS = 4  # of channels, in group normalisation


class Block(nn.Module):
    """Two 3 x 3 convolutions around a shortcut, the first one with ``stride``."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = norm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = norm(outputs)
        self.shortcut = nn.Sequential()
        if stride > 1 or inputs != outputs:
            project = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(project, norm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """x [n, inputs, h, w] -> [n, outputs, h / stride, w / stride]."""
        out = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(out)) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet-18: four stages of two blocks each, ``widths`` channels wide.

    blocks: of a stage. norm: "batch", as published, or "group", which keeps no statistics. small:
        a stem of 3 x 3 without pooling, for pictures of a few dozen pixels a side, not 224.
    """

    def __init__(
        self,
        widths: tuple[int, ...] = (64, 128, 256, 512),
        blocks: int = 2,
        outputs: int = 1000,
        norm: str = "batch",
        small: bool = False,
    ):
        super().__init__()
        require.one_of("norm", norm, ("batch", "group"))
        kind = nn.BatchNorm2d if norm == "batch" else partial(nn.GroupNorm, GROUPS)
        kernel = 3 if small else 7
        stem = [nn.Conv2d(3, widths[0], kernel, 2, kernel // 2, bias=False), kind(widths[0])]
        pool = [] if small else [nn.MaxPool2d(3, 2, 1)]
        self.stem = nn.Sequential(*stem, nn.ReLU(), *pool)
        stages, before = [], widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                stages.append(Block(before, width, stride, kind))
                before = width
        self.blocks = nn.Sequential(*stages)
        self.fc = nn.Linear(before, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, 3, h, w] -> [n, outputs]."""
        return self.fc(self.blocks(self.stem(x)).mean((-2, -1)))


class QuestionNet(nn.Module):
    """Answers questions about pictures; a row is a picture and its question, side by side.

    side: pixels of a picture's side. vocabulary: numbers that a word can have; 0 is behind the last
        word of a question. even: what both encoders say is brought to mean 0 and variance 1 before
        the product; with encoders that begin from nothing it is near zero otherwise, and so are
        gradients.
    """

    def __init__(
        self,
        side: int,
        vocabulary: int,
        answers: int,
        *,
        widths: tuple[int, ...] = (64, 128, 256, 512),
        blocks: int = 2,
        norm: str = "batch",
        small: bool = False,
        seen: int = 1000,
        embedding: int = 512,
        hidden: int = 512,
        joint: int = 1024,
        fused: int = 1000,
        even: bool = False,
    ):
        super().__init__()
        self.side, self.even = side, even
        self.pictures = ResNet(widths, blocks, seen, norm, small)
        self.words = nn.Embedding(vocabulary, embedding)
        self.questions = LSTM(embedding, hidden, layers=2)
        self.picture_fc = nn.Linear(seen, joint)
        self.question_fc = nn.Linear(4 * hidden, joint)
        self.fc1 = nn.Linear(joint, fused)
        self.fc2 = nn.Linear(fused, answers)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, 3 side² + t], pixels, then words -> logits [n, answers]."""
        pixels = 3 * self.side**2
        picture = x[:, :pixels].unflatten(1, (3, self.side, self.side))  # [n, 3, side, side]
        words = x[:, pixels:].long()  # [n, t]
        seen = self.pictures(picture)  # [n, seen]
        asked = self.questions.final(self.words(words), (words > 0).sum(1))  # [n, 4 hidden]
        if self.even:
            seen, asked = (F.layer_norm(z, z.shape[1:]) for z in (seen, asked))
        joint = self.picture_fc(seen).tanh() * self.question_fc(asked).tanh()  # [n, joint]
        return self.fc2(self.fc1(joint).tanh())  # [n, answers]


def shared(net: nn.Module) -> frozenset[str]:
    """What LG-FedAvg averages: the last layer of both channels, and those behind their product."""
    return parts(net, *SHARED)
