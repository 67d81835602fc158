"""FADE on UCI Adult: Figure 3a of Hong et al. (KDD 2021), section 6.1.

One user holds the rows of all women, 1 to 16 users share those of men; who has more users is more
often there. Two users a round take a step on one batch each. The parts, for each choice of inputs:

* ``figure``: no adversary, the vanilla loss, the squared one; fresh probes of the representation
  beside the adversary's own AUC;
* ``between``: the same with a power between those two, which no paper prints;
* ``sweep:...``: other learning rates, strengths and steps of D's own at both ends of the figure.
  What validation rows choose is judged (`claims`);
* ``qffl``: losses reweighted by user instead of a game;
* ``central``: what a practitioner would try first, with all rows in one place.

Only `as_described` exists: the released code has no run file for these figures. What the text
leaves open: SGD with momentum 0.9 that each user keeps.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.methods import QFFL, Method
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.income import IncomeNet
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Measured, Part, who

from . import census
from .census import POWERS, SCALES, Settings, Tuning
from .measures import Watch, central, measure
from .stronger_game import Game

NAME = "fade.income"
TABLE = "fade_figure3a"
SWEEP, QFFL_TABLE, CENTRAL = "fade_income_sweep", "fade_income_qffl", "fade_income_central"


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


def _part(
    cfg: Settings,
    inputs: str,
    name: str,
    seeds: Sequence[int],
    device: torch.device,
    folder: Path | None,
    engine: dict,
) -> Measured:
    """Train what a part asks for, all seeds together, and measure it on rows left out."""
    if name == "central":
        return central(cfg, inputs, seeds)
    cells, tuning = cfg.cells(name), Tuning(lr=cfg.lr)
    if name.startswith("sweep"):
        top, lr, own = (cells[0][field] for field in Tuning._fields)
        tuning = Tuning(top, lr, int(own))
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
    fed, start = federation(cfg, inputs, seeds, [c["males"] for c in cells], device)
    training = LocalTraining(
        tuning.lr,
        cfg.batch_size,
        cfg.momentum,
        keep_momentum=True,
        batches=1,
        annealing=Annealing(cfg.rounds),
    )
    outcome = run(
        fed,
        methods * len(seeds),
        training,
        cfg.rounds,
        start,
        saved=folder / f"{inputs}_{_file(name)}" if folder else None,
        tracker=Watch(max(1, cfg.rounds // cfg.looks)),
        label=f"{who(seeds)}, {inputs}: {name}",
        **engine,
    )
    return measure(fed, outcome, 0 if name == "qffl" else cfg.probed)


class Income(Experiment):
    """``with_sex:figure``, ``with_sex:sweep:3_0.01_0``, ...; all seeds in one stack of lanes."""

    name, table, together, usual_lanes = NAME, TABLE, True, "batched"
    Settings, scales, protocols = Settings, SCALES, ("as_described",)
    chooses = frozenset({"inputs", "swept", "parts"})

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        folder = self.folder(cfg, seeds)
        for inputs in cfg.inputs:
            for name in cfg.names():
                trains = name != "central"
                saved = folder / f"{inputs}_{_file(name)}" if trains else None
                yield Part(f"{inputs}:{name}", cfg.rounds if trains else None, saved)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Measured]]:
        for inputs in cfg.inputs:
            for name in cfg.names():
                found = _part(cfg, inputs, name, seeds, device, folder, engine)
                yield f"{inputs}:{name}", found

    def measured(self, cfg: Settings, part: str, outcome: Outcome | Measured) -> pd.DataFrame:
        """The tidy rows of one part, after its last round; delta EO from 0 to 2, the rest in %."""
        inputs, name = part.split(":", 1)
        wide = outcome.final.reset_index()
        ids = pd.DataFrame(cfg.cells(name)).iloc[wide.groupby("seed").cumcount()]
        wide = pd.concat([wide, ids.reset_index(drop=True)], axis=1)
        long = wide.melt(["seed", *ids.columns], var_name="metric").dropna(subset="value")
        tables = {"figure": TABLE, "between": TABLE, "qffl": QFFL_TABLE, "central": CENTRAL}
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
            if name not in ("figure", "between") or not len(history):
                continue
            ids = pd.DataFrame(cfg.cells(name)).iloc[history.groupby(["round", "seed"]).cumcount()]
            lines = pd.concat([history.reset_index(drop=True), ids.reset_index(drop=True)], axis=1)
            lines["validation_acc"] *= 100
            out.append(lines.assign(inputs=inputs))
        return pd.concat(out, ignore_index=True) if out else pd.DataFrame()


INCOME = Income()


def _file(name: str) -> str:
    return f"{name.replace(':', '_')}.safetensors"
