"""Settings of the page on personal mood: the text's values, and ours where it has none."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from lgfed_core import models, require
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.errors import SettingsError
from lgfed_core.methods import LGFedAvg
from lgfed_core.models.text import TextNet
from lgfed_core.papers.settings import Checked, Range

from .made_up import RHOS, TITLES, made_up
from .texts import CHATS, EACH, LABELS, PERSONS, Texts, chats, read, vocabulary

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SLOWER = 1e-3  # a rate that is tried beside the paper's
SOURCES = {"chats": CHATS} | TITLES  # whose texts stand in -> what rows call them
OWN = "own"  # the source that is one's own file
SCALES = {
    "smoke": dict(sources=("between",), alphas=(0.0, 0.4, 1.0), restarts=2, rounds=3, epochs=1)
    | dict(words=6, width=8, hidden=4, mlp=8, persons=3, each=20, lr=1e-3),
    "quick": dict(sources=("alike", "apart"), alphas=(0.0, 0.4, 1.0), restarts=1, rounds=8)
    | dict(epochs=1, hidden=32, mlp=128),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """As the text has it; what it leaves open has a comment."""

    sources: tuple[str, ...] = tuple(SOURCES)
    alphas: tuple[float, ...] = ALPHAS  # the share of layers that is shared
    side: str = "last"  # next to the output; "first": next to the words
    restarts: int = 5
    rounds: int = 15
    epochs: int = 2  # in a round
    words: int = 24  # read of each text
    tokens: int = 2000  # words of a batch, at most
    lr: float = 5e-3
    shrink: float = 0.5  # what is left of the rate after half of the rounds
    width: int = 64  # numbers of a word
    hidden: int = 128
    mlp: int = 512
    persons: int = PERSONS
    each: int = EACH  # texts of each person
    file: str = ""  # one's own, for the source "own"

    RANGES: ClassVar = dict(persons=Range(2, 10**6), each=Range(10, 10**6))
    CHOICES: ClassVar = dict(scale=SCALES, side=("last", "first"), alphas=ALPHAS)
    CHOICES |= dict(sources=(*SOURCES, OWN))
    SHORTER = ("restarts", "rounds", "epochs")
    UNRELEASED = "mood has no released protocol: neither code nor data are public"

    def fits(self) -> None:
        super().fits()
        if OWN in self.sources and not self.file:
            raise SettingsError(f"sources has {OWN!r}, and file is empty; name your file")
        if self.scale == "paper" and self.restarts > Settings.restarts:
            raise SettingsError(
                f"restarts is {self.restarts}; at paper scale the best of {Settings.restarts} is "
                "taken, and rows of a better of more would stand in their place"
            )
        require.at_least(self.words, tokens=self.tokens)
        require.at_most(10**6, **{"persons times each": self.persons * self.each})

    @property
    def cells(self) -> dict[str, tuple[str, float]]:
        """The parts, in order: "chats:0.2" -> ("chats", 0.2), source and alpha."""
        return {f"{s}:{alpha:g}": (s, alpha) for s in self.sources for alpha in self.alphas}

    @property
    def training(self) -> AdamTraining:
        """Adam; "learning rate shrink 0.5" is read as a rate that falls to a half midway."""
        decay = (1 / self.shrink - 1) / (self.rounds / 2)
        return AdamTraining(self.lr, self.tokens // self.words, epochs=self.epochs, decay=decay)

    def texts(self, source: str, seed: int) -> Texts:
        """The texts of a source, in the repetition ``seed``."""
        if source == OWN:
            return read(self.file)
        if source == "chats":
            return chats(self.persons, self.each)
        return made_up(RHOS[source], seed, self.persons, self.each).texts

    def net(self, texts: Texts) -> partial[TextNet]:
        """Makes a network for these texts; it begins with the vectors of words that are known."""
        words = vocabulary(texts, self.words)
        known = None if words.vectors is None else words.vectors[:, : self.width]
        sizes = self.width, self.hidden, self.mlp
        return partial(TextNet, len(words), LABELS, *sizes, known)

    def method(self, alpha: float, net: TextNet) -> LGFedAvg:
        """LG-FedAvg that shares ``alpha`` of the layers."""
        layers = models.last_layers if self.side == "last" else models.first_layers
        return LGFedAvg(layers=layers(net, round(alpha * len(net.layers))))
