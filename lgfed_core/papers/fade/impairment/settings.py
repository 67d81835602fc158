"""Settings of FADE on impairment: the text's values, and ours where it has none."""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from lgfed_core.errors import SettingsError
from lgfed_core.papers.settings import Checked

from . import stand_in_people

LOSSES = {"none": 1.0, "vanilla": 1.0, "squared": 2.0}
SCALES = {
    "smoke": dict(
        people=("made_up",),
        per_round=(2,),
        lrs=(0.01,),
        losses=("none", "squared"),
        pretraining=2,
        rounds=2,
        hidden=6,
        looks=1,
        men=3,
        women=6,
    ),
    "quick": dict(
        people=("made_up",), per_round=(10,), pretraining=50, rounds=30, lrs=(0.1,), looks=5
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values, and ours where it has none."""

    people: tuple[str, ...] = tuple(stand_in_people.SOURCES)
    per_round: tuple[int, ...] = (2, 5, 10, 20)  # users
    losses: tuple[str, ...] = tuple(LOSSES)
    pretraining: int = 400
    rounds: int = 300
    batch_size: int = 16
    lrs: tuple[float, ...] = (0.01, 0.1)  # the text's first
    momentum: float = 0.9
    beta: float = 0.5
    hidden: int = 100
    variables: int = 8  # kept by mutual information
    men: int = 6
    women: int = 20
    effect: float = 1.0  # of sex, in made-up homes
    looks: int = 10  # measurements on the way

    CHOICES: ClassVar = dict(scale=SCALES, losses=LOSSES, people=people)  # all of them
    UNRELEASED = "impairment has no released protocol: the study is private"

    def fits(self) -> None:
        super().fits()
        if not all(m <= self.men + self.women for m in self.per_round):
            raise SettingsError(
                f"per_round is {self.per_round}; each from 1 to the {self.men + self.women} users"
            )
        if "made_up" in self.people and (
            self.men >= stand_in_people.MEN or self.women >= stand_in_people.WOMEN
        ):
            raise SettingsError(
                f"men is {self.men}, women is {self.women}; of people=made_up there are "
                f"{stand_in_people.MEN} and {stand_in_people.WOMEN}, of whom one each is left out "
                "to test on"
            )

    @property
    def cells(self) -> list[tuple[str, int, float]]:
        """(people, users a round, learning rate) of all that runs, one after another."""
        return list(product(self.people, self.per_round, self.lrs))
