"""Settings of the page on digits, and the pieces of it that can be run alone."""

from dataclasses import dataclass
from typing import Any, ClassVar

from lgfed_core.errors import SettingsError
from lgfed_core.methods.interface import BATCH_NORM as KINDS
from lgfed_core.papers.parts import Piece
from lgfed_core.papers.settings import INSIDE, PART, Checked, Range

from . import domains

NAME = "fade.digits"
TABLE = "fade_figure2"
CURVES = "fade_figure2_curves"  # the same, by round
OPT_OUT = "fade_digits_opt_out"  # tables of ours
STATISTICS = "fade_digits_statistics"
CENTRAL = "central"  # a part, and what rows of it call their loss
POWERS = {"vanilla": 1.0, "squared": 2.0}
ENDS = (0.05, 0.5, 0.95)  # the probabilities that claims are about
SHORT = 500  # rounds of recorded runs from which the time of longer ones is told
NOTHING: dict[str, Any] = dict(losses=(), opt_outs=(), statistics=(), central=False)
SCALES = {
    "smoke": dict(
        pretraining=2,
        rounds=4,
        steps=2,
        per_class=10,
        tested=100,
        looks=2,
        probabilities=(0.1, 0.9),
        directions=("mnist-usps",),
        opt_outs=(1.0,),
        statistics=("local",),
    ),
    "quick": dict(
        pretraining=30,
        rounds=30,
        steps=5,
        tested=300,
        looks=4,
        probabilities=(0.05, 0.5),
        directions=("mnist-usps",),
        opt_outs=(1.0,),
        statistics=(),
        central=False,
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values; where it gives none, those of the released code's other experiments."""

    directions: tuple[str, ...] = domains.DIRECTIONS
    probabilities: tuple[float, ...] = (0.05, 0.2, 0.5, 0.8, 0.95)  # of the target
    losses: tuple[str, ...] = ("vanilla", "squared")
    opt_outs: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # vanilla loss, probability 1/2
    statistics: tuple[str, ...] = ("local", "averaged")  # beside "frozen"; vanilla loss
    central: bool = True
    central_statistics: tuple[str, ...] = ()  # of `central`, beside "frozen"
    pretraining: int = 400  # rounds on the source, without the game
    rounds: int = 8600
    steps: int = 10  # of a device in a round
    batch_size: int = 32
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.001
    beta: float = 0.5
    looks: int = 20  # measurements on the way
    per_class: int | None = None  # training rows of each class; None: all
    tested: int | None = None  # test rows of each domain

    RANGES: ClassVar = dict(probabilities=INSIDE, opt_outs=PART)
    RANGES |= dict(per_class=Range(1, 542))  # USPS has no more of its rarest digit
    CHOICES: ClassVar = dict(scale=SCALES, losses=POWERS, directions=domains.DIRECTIONS)
    CHOICES |= dict(statistics=KINDS, central_statistics=KINDS)
    EMPTY = frozenset({"probabilities", "losses", "opt_outs", "statistics", "central_statistics"})
    UNRELEASED = "the digits have no released protocol: the code holds no settings for them"

    def fits(self) -> None:
        super().fits()
        if not self.probabilities and (self.losses or self.statistics):
            raise SettingsError("probabilities is empty; losses and statistics need some")

    @property
    def lengths(self) -> dict[str, int]:
        """The parts of a direction, in order, and how many rounds each trains."""
        names = [f"opt_out:{rate:g}" for rate in self.opt_outs]
        names += [f"statistics:{kind}" for kind in self.statistics]
        central = [CENTRAL] * self.central
        central += [f"{CENTRAL}:{kind}" for kind in self.central_statistics]
        games = ["losses"] if self.losses and self.probabilities else []
        found = {"pretraining": self.pretraining} | dict.fromkeys(games, self.rounds)
        found |= dict.fromkeys(central, self.rounds * self.steps // 2)
        return found | dict.fromkeys(names, self.rounds)


def pieces(protocol: str) -> list[Piece]:
    """By direction: Figure 2's middle and ends, and every rate of opting out. Aside stand other
    running statistics and the central game, which no claim is about."""
    games = dict(losses=Settings.losses, probabilities=ENDS)  # both losses train together
    some: dict[str, tuple[dict, dict]] = {"losses": (games, dict(loss=Settings.losses[-1]))}
    for rate in Settings.opt_outs:
        ids = dict(table=OPT_OUT, opt_out=rate)
        some[f"opt_out:{rate:g}"] = games | dict(opt_outs=(rate,)), ids
    for kind in Settings.statistics:
        lanes = dict(probabilities=ENDS, statistics=(kind,))
        some[f"statistics:{kind}"] = lanes, dict(table=STATISTICS, statistics=kind)
    some[CENTRAL] = dict(central=True), dict(loss=CENTRAL, statistics="")
    return [
        _piece(protocol, direction, name, *one)
        for direction in Settings.directions
        for name, one in some.items()
    ]


def _piece(protocol: str, direction: str, name: str, changes: dict, ids: dict) -> Piece:
    """The piece called ``name`` of a direction: what picks it, and the ids of its rows."""
    ids = dict(table=TABLE, direction=direction) | ids
    games = (f"{direction}:losses",) if name.startswith("opt_out") else ()
    return Piece(
        *(NAME, protocol, f"{direction}:{name}"),
        changes=tuple((dict(directions=(direction,)) | NOTHING | changes).items()),
        cell=tuple((ids | dict(rounds=Settings.rounds)).items()),
        after=(f"{direction}:pretraining", *games),
        like=tuple((ids | dict(rounds=SHORT, scale="short")).items()),
        share=Settings.rounds / SHORT,
        aside=not name.startswith(("losses", "opt_out")),
    )
