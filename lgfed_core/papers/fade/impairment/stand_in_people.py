"""Who stands in for the private study: made-up homes, and real sensors worn in a room; settings.

``made_up`` has the study's variables but ethnicity, and a *known* effect of the group. ``worn`` are
87 recordings of 14 older people with a sensor tag (Shinmoto Torres et al. 2013), 62 of women and 25
of men, in the same format: a recording is a user, a "day" is two seconds, the line is the antenna,
and the label is whether the person is out of bed. They know no diagnosis, and not who is who.
"""

import io
import tarfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from lgfed_core import data
from lgfed_core.errors import DataError, SettingsError
from lgfed_core.papers.settings import Checked
from lgfed_core.seeds import Purpose, stream

SOURCES = {"made_up": "made-up homes", "worn": "sensors worn by older people"}
WOMEN, MEN = 40, 16  # of made-up homes
SECONDS = 2.0  # of what takes the place of a day
_VARIABLES = ["meanws", "wsq3", "numwalks", "wscv", "wsstddev", "compuse", "numcsess"]
COLUMNS = ["time", "frontal", "vertical", "lateral", "linenum", "strength", "phase", "frequency"]


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

    people: tuple[str, ...] = tuple(SOURCES)
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
        if "made_up" in self.people and (self.men >= MEN or self.women >= WOMEN):
            raise SettingsError(
                f"men is {self.men}, women is {self.women}; of people=made_up there are "
                f"{MEN} and {WOMEN}, of whom one each is left out "
                "to test on"
            )

    @property
    def cells(self) -> dict[str, tuple[str, int, float]]:
        """All that runs, one after another: name -> (people, users a round, learning rate)."""
        cells = product(self.people, self.per_round, self.lrs)
        return {f"{name}:{m}:{lr:g}": (name, m, lr) for name, m, lr in cells}


def made_up(
    seed: int = 0, women: int = WOMEN, men: int = MEN, days: int = 280, effect: float = 1.0
) -> pd.DataFrame:
    """Homes in the format of `homes`, half of the people of each sex impaired.

    The impaired walk slower and less, and use the computer less, by one deviation of days, which is
    two of people. Men walk faster by ``effect`` of these, so that with 1 an impaired man walks as a
    healthy woman does: with 0, sex has no effect at all. A tenth of all days is missing, in runs.
    """
    rng = stream(seed, Purpose.CLIENTS)
    tables = []
    for k in range(women + men):
        male, impaired = k >= women, k % 2
        person = rng.normal(0, 0.5, 7) - impaired * np.array([1, 1, 1, -0.5, -0.5, 1, 1])
        person[:3] += effect * male
        there = np.flatnonzero(np.repeat(rng.random(days // 7 + 1) > 0.1, 7)[:days])
        daily = person + rng.normal(0, 1, (len(there), 7))
        table = pd.DataFrame(daily, columns=_VARIABLES)
        table["ageyrs"] = 70 + 10 * rng.random() + 3 * impaired + there / 365
        table["Ryrschool"] = float(rng.integers(8, 20))
        table["linenum"] = rng.integers(1, 4)
        tables.append(table.assign(user=k, day=there, sex="M" if male else "F", label=impaired))
    return pd.concat(tables, ignore_index=True)


def worn() -> pd.DataFrame:
    """The recordings in the format of `homes`: a line per recording and `SECONDS`, with means of
    the readings; ``label`` 1 where the person is out of bed (on a chair, or walking) for most of
    them. Raises DataError where they cannot be had, or are damaged."""
    path = data.get("older_people") / "healthy_older_people.tar.xz"
    tables = []
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = Path(member.name).name
                if member.isfile() and name[:1] == "d" and name[-1:] in "FM":
                    raw = archive.extractfile(member).read()
                    tables.append(_recording(name, pd.read_csv(io.BytesIO(raw), header=None)))
    except (OSError, ValueError, tarfile.TarError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not tables:
        raise DataError(f"{path} holds no recording (d1p01F and the like)")
    return pd.concat(tables, ignore_index=True)


def _recording(name: str, raw: pd.DataFrame) -> pd.DataFrame:
    raw.columns = [*COLUMNS, "activity"]
    raw["day"] = (raw["time"] // SECONDS).astype(int)
    raw["label"] = raw["activity"].isin([2, 4])
    found = raw.groupby("day")[["frontal", "vertical", "lateral", "strength", "label"]].mean()
    heard = raw.groupby(["day", "linenum"]).size().unstack(fill_value=0)
    found["linenum"] = heard.idxmax(axis=1)  # the antenna with most readings
    found["label"] = (found["label"] > 0.5).astype(int)
    return found.reset_index().assign(user=name, sex=name[-1])
