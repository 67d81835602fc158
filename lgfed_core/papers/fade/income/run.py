"""FADE on UCI Adult: Figure 3a of Hong et al. (KDD 2021), section 6.1.

One user holds the rows of all women, 1 to 16 users share those of men; who has more users is more
often there. Two users a round take a step on one batch each. The parts, for each choice of inputs:

* ``figure``: no adversary, the vanilla loss, the squared one (and a power in between); fresh probes
  of the representation beside the adversary's own AUC;
* ``sweep:...``: other learning rates, strengths and steps of D's own at both ends of the figure.
  What validation rows choose is judged (`claims`);
* ``qffl``: losses reweighted by user instead of a game;
* ``central``: what a practitioner would try first, with all rows in one place (`practice`).

Only `as_described` exists: the released code has no run file for these figures. What the text
leaves open: SGD with momentum 0.9 that each user keeps.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import QFFL, Method
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.income import IncomeNet
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment, Part, who
from lgfed_core.papers.measured import Measured
from lgfed_core.papers.settings import INSIDE, Checked

from . import census, practice
from .game import Game
from .measures import Watch, measure

NAME = "fade.income"
TABLE = "fade_figure3a"
SWEEP, QFFL_TABLE, CENTRAL = "fade_income_sweep", "fade_income_qffl", "fade_income_central"
PARTS = ("figure", "sweep", "qffl", "central")
POWERS = {"none": 1.0, "vanilla": 1.0, "between": 1.5, "squared": 2.0}  # "none": D looks on


class Tuning(NamedTuple):
    """What the sweep turns: lambda's top, learning rate, D's own steps with each batch."""

    top: float = 1.0
    lr: float = 1e-2
    own_steps: int = 0

    def __str__(self):
        return f"{self.top:g}_{self.lr:g}_{self.own_steps}"

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
        if kind == "figure":
            return [dict(loss=x, males=m) for x in self.losses for m in self.males]
        if kind == "qffl":
            return [dict(q=q, males=m) for q in self.qs for m in self.ends]
        if kind == "central":
            return [dict(method=name) for name in practice.METHODS]
        tuned = dict(zip(Tuning._fields, map(float, Tuning.read(what[0])), strict=True))
        games = [x for x in self.losses if x != "none" or tuned["lr"] != self.lr]
        return [dict(loss=x, males=m, **tuned) for x in games for m in self.ends]


def federation(
    cfg: Settings,
    inputs: str,
    seeds: Sequence[int],
    males: Sequence[int],
    device: torch.device = CPU,
) -> tuple[Federation, Tensor]:
    """A run per seed and number of male users (a seed's lie together), and first parameters [R, P].

    Users are drawn alike; those that hold nothing never.
    """
    data, most = census.census(inputs, cfg.first_rows), max(males)
    split = cfg.test, cfg.validation
    held = {(s, m): census.users(data.train, m, s, most, *split) for s in seeds for m in set(males)}
    wide = data.train.x.shape[1]
    found = [models.make(lambda: IncomeNet(wide, cfg.dropout), seed) for seed in seeds]
    there = torch.zeros(len(males), 1 + most, dtype=torch.double)
    for line, m in zip(there, males, strict=True):
        line[: 1 + m] = 1 / (1 + m)
    fed = Federation(
        data,
        [held[s, m] for s in seeds for m in males],
        found[0],
        [s for s in seeds for _ in males],
        device,
        Participation(cfg.per_round / (1 + most), there.repeat(len(seeds), 1)),
    )
    return fed, torch.stack([joined(net) for net in found for _ in males])


@dataclass(frozen=True)
class Parts:
    """The parts of one choice of inputs, all seeds together, with their checkpoints."""

    cfg: Settings
    inputs: str
    seeds: Sequence[int]
    device: torch.device
    folder: Path | None
    engine: dict

    def part(self, name: str) -> Measured:
        """Train what the part ``name`` asks for, and measure it on rows left out."""
        cfg, cells = self.cfg, self.cfg.cells(name)
        if name == "central":
            return practice.central(cfg, self.inputs, self.seeds)
        if name == "qffl":
            methods = [QFFL(q=c["q"], unit=0.5, beta=cfg.beta, weighted=True) for c in cells]
            return self._run(name, cells, methods, Tuning(lr=cfg.lr))
        tuning = Tuning(lr=cfg.lr)
        if name != "figure":
            top, lr, own = (cells[0][field] for field in Tuning._fields)
            tuning = Tuning(top, lr, int(own))
        methods = [
            Game(
                power=POWERS[c["loss"]],
                top=tuning.top if c["loss"] != "none" else 0.0,
                own_steps=tuning.own_steps,
                rounds=cfg.rounds,
                beta=cfg.beta,
            )
            for c in cells
        ]
        return self._run(name, cells, methods, tuning)

    def _run(
        self, name: str, cells: list[dict], methods: Sequence[Method], tuning: Tuning
    ) -> Measured:
        cfg = self.cfg
        fed, start = federation(
            cfg, self.inputs, self.seeds, [c["males"] for c in cells], self.device
        )
        training = LocalTraining(
            tuning.lr,
            cfg.batch_size,
            cfg.momentum,
            keep_momentum=True,
            batches=1,
            annealing=Annealing(cfg.rounds),
        )
        saved = self.folder / f"{self.inputs}_{_file(name)}" if self.folder else None
        outcome = run(
            fed,
            list(methods) * len(self.seeds),
            training,
            cfg.rounds,
            start,
            saved=saved,
            tracker=Watch(max(1, cfg.rounds // cfg.looks)),
            label=f"{who(self.seeds)}, {self.inputs}: {name}",
            **self.engine,
        )
        return measure(fed, outcome, 0 if name == "qffl" else cfg.probed)


class Income(Experiment):
    """``with_sex:figure``, ``with_sex:sweep:3,0.01,0``, ...; all seeds in one stack of lanes."""

    name, table, together, usual_lanes = NAME, TABLE, True, "batched"
    Settings, scales, protocols = Settings, SCALES, ("as_described",)
    chooses = frozenset({"inputs", "swept", "parts"})
    federation = staticmethod(federation)

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        folder = self.folder(cfg, seeds)
        for inputs in cfg.inputs:
            for name in cfg.names():
                trains = name != "central"
                saved = folder / f"{inputs}_{_file(name)}" if trains else None
                yield Part(f"{inputs}:{name}", cfg.rounds if trains else None, saved)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Measured]]:
        for inputs in cfg.inputs:
            parts = Parts(cfg, inputs, seeds, device, folder, engine)
            for name in cfg.names():
                yield f"{inputs}:{name}", parts.part(name)

    def measured(self, cfg: Settings, part: str, outcome: Outcome | Measured) -> pd.DataFrame:
        """The tidy rows of one part, after its last round; delta EO from 0 to 2, the rest in %."""
        inputs, name = part.split(":", 1)
        wide = outcome.final.reset_index()
        ids = pd.DataFrame(cfg.cells(name)).iloc[wide.groupby("seed").cumcount()]
        wide = pd.concat([wide, ids.reset_index(drop=True)], axis=1)
        long = wide.melt(["seed", *ids.columns], var_name="metric").dropna(subset="value")
        tables = {"figure": TABLE, "qffl": QFFL_TABLE, "central": CENTRAL}
        return long.assign(
            table=tables.get(name, SWEEP),
            inputs=inputs,
            rounds=0 if name == "central" else cfg.rounds,
            selection="last",
        )

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: inputs, loss, males, seed, round, validation_acc (%) and delta EO."""
        out = []
        for part, history in histories.items():
            inputs, name = part.split(":", 1)
            if name != "figure" or not len(history):
                continue
            ids = pd.DataFrame(cfg.cells(name)).iloc[history.groupby(["round", "seed"]).cumcount()]
            lines = pd.concat([history.reset_index(drop=True), ids.reset_index(drop=True)], axis=1)
            lines["validation_acc"] *= 100
            out.append(lines.assign(inputs=inputs))
        return pd.concat(out, ignore_index=True) if out else pd.DataFrame()


INCOME = Income()


def _file(name: str) -> str:
    return f"{name.replace(':', '_').replace(',', '_')}.safetensors"
