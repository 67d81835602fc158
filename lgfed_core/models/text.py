"""The network for moods from texts: words, a Bi-LSTM of 128, an MLP [512, 512], an output layer.

=============  =============================================  ==================
layer          what                                           parameters
=============  =============================================  ==================
``embedding``  V words as 64 numbers each                     64 V
``encoder``    Bi-LSTM of 128, its two final states           198,656
``fc1``        linear (256, 512), ReLU                        131,584
``fc2``        linear (512, 512), ReLU                        262,656
``out``        linear (512, classes)                          2,565 (5 classes)
=============  =============================================  ==================

Source: Liang et al. (2020), section 5.3, appendix C.3 and Table 10; how wide the words are is ours.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .recurrent import LSTM

PADDING, UNKNOWN = 0, 1  # numbers of no word, and of one that is not in the vocabulary


class TextNet(nn.Module):
    """Texts of known words -> classes. Five layers, so that a fifth of them is one.

    vectors: of some words, [v, d] with d up to ``width``; what embeddings of word numbers 2 and on
    begin with, where they are known.
    """

    layers: tuple[str, ...] = ("embedding", "encoder", "fc1", "fc2", "out")  # input to output

    def __init__(
        self,
        words: int,
        classes: int = 5,
        width: int = 64,
        hidden: int = 128,
        mlp: int = 512,
        vectors: Tensor | None = None,
    ):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = LSTM(width, hidden, bidirectional=True)
        self.fc1 = nn.Linear(2 * hidden, mlp)
        self.fc2 = nn.Linear(mlp, mlp)
        self.out = nn.Linear(mlp, classes)
        if vectors is not None:
            with torch.no_grad():
                self.embedding.weight[2 : 2 + len(vectors)] = 0
                self.embedding.weight[2 : 2 + len(vectors), : vectors.shape[1]] = vectors

    def forward(self, x: Tensor) -> Tensor:
        """x [n, t], numbers of words as floats, 0 behind a text -> logits [n, classes]."""
        words = x.long()  # [n, t]
        _, z = self.encoder(self.embedding(words), (words != PADDING).sum(-1))  # [n, 2 hidden]
        z = F.relu(self.fc1(z))  # [n, mlp]
        z = F.relu(self.fc2(z))  # [n, mlp]
        return self.out(z)
