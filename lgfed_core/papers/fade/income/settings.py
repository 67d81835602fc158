"""Settings of FADE on incomes: the text's values, and ours where it has none."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from lgfed_core.errors import SettingsError
from lgfed_core.papers.settings import INSIDE, Checked

from . import census, fairlearn_baseline
from .fairlearn_baseline import PARTS

POWERS = {"none": 1.0, "vanilla": 1.0, "between": 1.5, "squared": 2.0}  # "none": D looks on


def in_words(loss: str) -> str:
    """A loss for people: one of `POWERS` that no paper names goes by its power."""
    return loss if loss != "between" else f"power {POWERS[loss]:g}"


def users(males: float) -> str:
    """ "1 male user", "16 male users"."""
    return f"{males:g} male user{'s' * (males != 1)}"


class Tuning(NamedTuple):
    """What the sweep turns: lambda's top, learning rate, D's own steps with each batch."""

    top: float = 1.0
    lr: float = 1e-2
    own_steps: int = 0

    def __str__(self):
        return f"{self.top:g}_{self.lr:g}_{self.own_steps}"

    @property
    def words(self) -> str:
        """ "λ to 3, rate 0.01, 4 own steps of D"."""
        own = f"{self.own_steps or 'no'} own steps of D"
        return f"λ to {self.top:g}, rate {self.lr:g}, {own}"

    @classmethod
    def read(cls, text: str) -> "Tuning":
        """The tuning that reads so: "3_0.01_4". Raises SettingsError for anything else."""
        try:
            top, lr, own = text.split("_")
            return cls(float(top), float(lr), int(own))
        except ValueError:
            raise SettingsError(
                f"swept has {text!r}; it is top_lr_own steps, e.g. {cls()}"
            ) from None


SWEPT = (  # the first has the text's rate
    "1_0.001_0",
    "3_0.01_0",
    "10_0.01_0",
    "1_0.01_4",
    "3_0.01_4",
    "1_0.03_0",
    "3_0.03_0",
)
SCALES = {
    "smoke": dict(
        inputs=("with_sex",),
        males=(1, 2),
        losses=("none", "squared"),
        swept=("3_0.01_1",),
        qs=(2.0,),
        rounds=3,
        looks=1,
        first_rows=1500,
        probed=100,
        sweeps=4,
    ),
    "quick": dict(
        inputs=("with_sex",),
        males=(1, 16),
        losses=("none", "vanilla", "squared"),
        parts=("figure",),
        rounds=400,
        lr=0.05,
        looks=8,
        probed=1000,
        sweeps=5,
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values, and ours where it has none."""

    inputs: tuple[str, ...] = tuple(census.INPUTS)
    males: tuple[int, ...] = (1, 4, 16)  # users with the rows of men; the ends are swept
    losses: tuple[str, ...] = ("none", "vanilla", "squared")
    parts: tuple[str, ...] = PARTS
    swept: tuple[str, ...] = SWEPT  # each a `Tuning`
    qs: tuple[float, ...] = (2.0,)  # of q-FFL
    rounds: int = 8000
    per_round: int = 2  # users
    batch_size: int = 64
    lr: float = 1e-2  # the text's 1e-3 is of an optimiser that it does not name; it is in the sweep
    momentum: float = 0.9
    beta: float = 0.5
    dropout: float = 0.25
    test: float = 0.1  # share of all rows
    validation: float = 0.1  # share of each user's other rows
    looks: int = 10  # measurements on the way
    probed: int = 2000  # test rows, half to fit a probe and half to judge it
    first_rows: int | None = None  # of the census, for a quick look
    sweeps: int = 25  # of fairlearn's reduction

    RANGES: ClassVar = dict(test=INSIDE)
    CHOICES: ClassVar = dict(scale=SCALES, losses=POWERS, inputs=census.INPUTS, parts=PARTS)
    EMPTY = frozenset({"swept", "qs"})
    UNRELEASED = "income has no released protocol: the code holds no run file for Figure 3a"

    def fits(self) -> None:
        super().fits()
        if self.per_round > 1 + min(self.males):
            raise SettingsError(
                f"per_round is {self.per_round}; with males {self.males} it must be at most "
                f"{1 + min(self.males)}, as there are no more users"
            )
        for text in self.swept:
            Tuning.read(text)

    @property
    def ends(self) -> tuple[int, ...]:
        """The smallest and the largest number of male users."""
        return tuple(sorted({min(self.males), max(self.males)}))

    def names(self) -> list[str]:
        """The parts of a choice of inputs, in order."""
        each = {"sweep": [f"sweep:{tuning}" for tuning in self.swept]}
        return [name for part in self.parts for name in each.get(part, [part])]

    def cells(self, part: str) -> list[dict]:
        """What is identified by more than its seed, in the order in which a seed's runs lie."""
        kind, *what = part.split(":")
        if kind in ("figure", "between"):
            losses = self.losses if kind == "figure" else [kind]
            return [dict(loss=x, males=m) for x in losses for m in self.males]
        if kind == "qffl":
            return [dict(q=q, males=m) for q in self.qs for m in self.ends]
        if kind == "central":
            return [dict(method=name) for name in fairlearn_baseline.METHODS]
        tuned = dict(zip(Tuning._fields, map(float, Tuning.read(what[0])), strict=True))
        games = [x for x in self.losses if x != "none" or tuned["lr"] != self.lr]
        return [dict(loss=x, males=m, **tuned) for x in games for m in self.ends]
