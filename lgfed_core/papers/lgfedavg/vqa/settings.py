"""What can be set: the text's values for VQA, what it leaves open, and the stand-in's sizes."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from torch import nn

from lgfed_core import partition, paths
from lgfed_core.data import easy_vqa, official_vqa
from lgfed_core.data.questions import Asked
from lgfed_core.errors import SettingsError
from lgfed_core.models.vqa import QuestionNet, shared
from lgfed_core.papers.settings import POSITIVE, Checked
from lgfed_core.partition import Partition

LINES = ("lg_fedavg", "lg_scratch")  # LG-FedAvg from FedAvg's model, and from the first weights
DATA = {"easy_vqa": "easy-VQA", "vqa_v1": "VQA v1"}
TEXT = dict(side=224, lr=0.01, batch_size=100)  # what ours is not, see `Settings.stand_in`
MOST = 16  # GiB of pixels in all rows, each with its picture's own; twice that while being made
SMALL = dict(widths=(8, 16, 64), blocks=1, norm="group", small=True, seen=64, even=True)
SMALL |= dict.fromkeys(("embedding", "hidden", "joint", "fused"), 32)
SCALES = {
    "smoke": dict(devices=4, fraction=0.5, questions=(240, 200), side=8, batch_size=40, goal=0.2)
    | dict(rounds=4, start=2, further=2, scratch=2, every=1),
    "quick": dict(devices=10, fraction=0.5, questions=(2000, 400))
    | dict(rounds=20, start=10, further=10, scratch=4),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values (Table 9 and appendix C.2.3), but for the stand-in's ``batch_size`` and
    ``lr``, which the text has as 100 and 0.01, and ``further``, which is 100 - 32 and ours, as are
    those from ``alpha`` on."""

    data: str = "easy_vqa"
    lines: tuple[str, ...] = LINES
    devices: int = 50
    fraction: float = 0.1
    batch_size: int = 20
    lr: float = 0.05
    momentum: float = 0.9
    decay: float = 0.0005  # of the rate, by round
    rounds: int = 100  # of FedAvg
    start: int = 32  # FedAvg rounds before LG-FedAvg goes on,
    further: int = 68  # for so many rounds
    goal: float = 0.4  # mean accuracy of the devices, on validation rows
    alpha: float = 1.0  # who holds which answers: the lower, the more devices differ
    validation: float = 0.1  # share of each device's training rows
    weighted: bool = True  # average by n_k/n; False: 1/m
    scratch: int = 20  # rounds of LG-FedAvg from the first weights
    every: int = 2  # rounds between two looks
    long: int = 1  # times as many rounds, of every line, to see where curves level
    network: str = "small"  # or "paper": ResNet-18 and an LSTM of 512
    side: int = 16  # pixels
    closed: bool = False  # whether easy-VQA's questions for yes or no are asked, too
    questions: tuple[int, int] | None = None  # (training, test), the first ones; None: all

    figure: ClassVar[int] = 20  # rounds after which the text compares its learning curves
    RANGES: ClassVar = dict(alpha=POSITIVE)
    CHOICES: ClassVar = dict(scale=SCALES, data=DATA, network=("small", "paper"), lines=LINES)
    EMPTY = frozenset({"lines"})
    UNRELEASED = "VQA has no released protocol: no code for it"

    def fits(self) -> None:
        super().fits()
        if not self.start < self.rounds:
            raise SettingsError(f"start is {self.start}; it must be below rounds, {self.rounds}")
        if self.closed and self.data != "easy_vqa":
            raise SettingsError(
                f"closed is True, which is easy-VQA's alone: {DATA[self.data]} has all its "
                "questions; leave it out"
            )
        if self.network == "paper" and "lg_fedavg" in self.lines:
            raise SettingsError(
                "network is 'paper', lines has lg_fedavg: running statistics stay with the "
                "devices, and what is kept of FedAvg's model at start has none, so that LG-FedAvg "
                "cannot go on from it; leave lg_fedavg out, or use network='small'"
            )
        if (taken := 4 * 3 * self.side**2 * self.rows / 2**30) > MOST:
            raise SettingsError(
                f"side is {self.side}, questions is {self.questions}: pixels of {self.rows:,} rows "
                f"take {taken:,.1f} GiB, and {MOST} is the most; lower side or questions"
            )

    @property
    def rows(self) -> int:
        """Questions of both parts, of which some may have no answer among the commonest."""
        every = official_vqa.ROWS
        if self.data == "easy_vqa":
            every = easy_vqa.ROWS if self.closed else easy_vqa.OPEN
        return sum(map(min, every, self.questions or every))

    @property
    def stand_in(self) -> str:
        """What is not the paper's: data, network, and where either is, what of `TEXT` is not.

        Never "", as the paper's encoders are pre-trained, and ours begin from random weights.
        """
        network = "a small network" if self.network == "small" else "the paper's network"
        named = f"{DATA[self.data]}, {network}"
        if (self.data, self.network) == ("easy_vqa", "small"):
            return named  # that says it all
        own = {name: getattr(self, name) for name in TEXT}
        other = [f"{name} {value:g}" for name, value in own.items() if value != TEXT[name]]
        return ", ".join([named, *other, "random weights"])

    def net(self) -> nn.Module:
        """The network, of random weights."""
        asked = asked_of(self)
        sizes = SMALL if self.network == "small" else {}
        return QuestionNet(asked.side, asked.vocabulary, len(asked.answers), **sizes)

    def shared(self, net: nn.Module) -> frozenset[str]:
        """The parameters that LG-FedAvg shares."""
        return shared(net)

    def split(self, asked: Asked, seed: int) -> Partition:
        """Who holds which questions: the answers are dealt by `partition.dirichlet`."""
        labels = asked.data.train.y, asked.data.test.y
        split = partition.dirichlet(*labels, self.devices, self.alpha, seed)
        return partition.with_validation(split, self.validation, seed)


def asked_of(cfg: Settings) -> Asked:
    """The questions and pictures that ``cfg`` asks for, read once."""
    return _asked(cfg.data, cfg.side, cfg.questions, cfg.closed)


@lru_cache(maxsize=2)
def _asked(data: str, side: int, questions: tuple[int, int] | None, closed: bool) -> Asked:
    if data == "easy_vqa":
        return easy_vqa.load(side, questions, closed)
    return official_vqa.read(paths.CACHE / "vqa_v1", side, questions)
