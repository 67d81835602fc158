"""FADE on UCI Adult: Figure 3a of Hong et al. (KDD 2021), section 6.1.

One user holds the rows of all women, 1 to 16 users share those of men; who has more users is more
often there. Two users a round take a step on one batch each. The parts, for each choice of inputs:

* ``figure``: no adversary, the vanilla loss, the squared one; fresh probes of the representation;
* ``between``: the same with a power between those two, which no paper prints;
* ``sweep:...``: other learning rates, strengths and steps of D's own at both ends of the figure;
* ``qffl``: losses reweighted by user instead of a game;
* ``central``: what a practitioner would try first, with all rows in one place.

Only `as_described` exists: the released code has no run file for these figures. What the text
leaves open: SGD with momentum 0.9 that each user keeps.
"""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from lgfed_core.engine import Federation, LocalTraining, Outcome, Participation
from lgfed_core.methods import QFFL, Method
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.income import IncomeNet

from .. import parts
from . import census
from .census import POWERS, SCALES, Settings, Tuning
from .measures import Watch, central, measure
from .stronger_game import Game

NAME = "fade.income"
TABLE = "fade_figure3a"
SWEEP, QFFL_TABLE, CENTRAL = "fade_income_sweep", "fade_income_qffl", "fade_income_central"


class Parts(parts.Parts):
    """The parts of one choice of inputs."""

    followed = Watch

    def federation(self, males: Sequence[int]) -> tuple[Federation, Tensor]:
        """A run per seed and number of male users, and first parameters [R, P].

        Users are drawn alike; those that hold nothing never.
        """
        cfg, most = self.cfg, max(males)
        data = census.census(self.task, cfg.first_rows)
        each = {
            (seed, m): census.users(data.train, m, seed, most, cfg.test, cfg.validation)
            for seed in self.seeds
            for m in set(males)
        }
        held = [each[seed, m] for seed in self.seeds for m in males]
        last = torch.tensor(males)[:, None]  # of the users that hold rows
        there = (torch.arange(1 + most) <= last).double() / (1 + last)  # [M, 1 + most]
        who = Participation(cfg.per_round / (1 + most), there.repeat(len(self.seeds), 1))
        inputs = data.train.x.shape[1]
        return self.side_by_side(lambda: IncomeNet(inputs, cfg.dropout), data, held, who)

    def outcome(self, name: str) -> Outcome:
        """Train what a part asks for, all seeds together, and measure it on rows left out."""
        cfg = self.cfg
        if name == "central":
            return central(cfg, self.task, self.seeds)
        cells, (_, _, swept) = cfg.cells(name), name.partition(":")
        tuning = Tuning.read(swept) if swept else Tuning(lr=cfg.lr)
        methods: list[Method] = [
            QFFL(q=c["q"], unit=0.5, beta=cfg.beta, weighted=True)
            if name == "qffl"
            else Game(
                power=POWERS[c["loss"]],
                top=tuning.top if c["loss"] != "none" else 0.0,
                own_steps=tuning.own_steps,
                rounds=cfg.rounds,
                beta=cfg.beta,
            )
            for c in cells
        ]
        fed, start = self.federation([c["males"] for c in cells])
        how = dict(keep_momentum=True, batches=1, annealing=Annealing(cfg.rounds))
        training = LocalTraining(tuning.lr, cfg.batch_size, cfg.momentum, **how)
        own = methods * len(self.seeds), training, cfg.rounds, start
        return measure(fed, self.run(name, fed, *own), 0 if name == "qffl" else cfg.probed)


class Income(parts.Tasks):
    """``with_sex:figure``, ``with_sex:sweep:3_0.01_0``, ...; all seeds in one stack of lanes."""

    name, table, over, together, usual_lanes = NAME, TABLE, "inputs", True, "batched"
    Settings, scales, Parts = Settings, SCALES, Parts
    chooses = frozenset({"inputs", "swept", "parts"})

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part, after its last round; delta EO from 0 to 2, the rest in %."""
        inputs, name = part.split(":", 1)
        cells = cfg.cells(name)
        wide = parts.labelled(outcome.final.reset_index(), cells)
        long = wide.melt(["seed", *cells[0]], var_name="metric").dropna(subset="value")
        tables = {"figure": TABLE, "between": TABLE, "qffl": QFFL_TABLE, "central": CENTRAL}
        return long.assign(
            table=tables.get(name, SWEEP),
            inputs=inputs,
            rounds=0 if name == "central" else cfg.rounds,
            selection="last",
        )

    def curve(self, cfg: Settings, part: str, history: pd.DataFrame) -> pd.DataFrame | None:
        """Of the figure: inputs, loss, males, seed, round, validation_acc (%) and delta EO."""
        inputs, name = part.split(":", 1)
        if name not in ("figure", "between"):
            return None
        lines = parts.labelled(history, cfg.cells(name)).assign(inputs=inputs)
        return lines.assign(validation_acc=100 * lines["validation_acc"])


INCOME = Income()
