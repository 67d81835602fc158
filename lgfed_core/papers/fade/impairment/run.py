"""FADE on impairment: Figure 3b of Hong et al. (KDD 2021), section 6.2, on data that stand in.

26 users, 6 of them men, train on their windows of seven days: 400 rounds without the game, then 300
with it, as each loss plays it, for several numbers of users a round and two learning rates: the
text's, and ten times as much. The paper reports the users it trains with; beside them we report
users who were left out.

Only `as_described` exists: there is no released code, and the study is private. `people` says who
stands in. What the text leaves open: SGD with momentum 0.9 that each user keeps, one batch of
each user in a round, eight variables.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.func import functional_call

from lgfed_core.data import Dataset, Split
from lgfed_core.engine import LocalTraining, Outcome, Participation
from lgfed_core.methods import FADE
from lgfed_core.methods.schedules import Annealing
from lgfed_core.metrics.fairness import auc, delta_eo
from lgfed_core.models.sensors import SensorNet
from lgfed_core.partition import ClientIndices, Partition

from .. import parts
from . import homes, stand_in_people
from .stand_in_people import LOSSES, SCALES, Settings

NAME = "fade.impairment"
TABLE = "fade_figure3b"


@lru_cache(4)
def users_of(name: str, men: int, women: int, variables: int, effect: float):
    """(`Dataset`, `Partition`, names of the inputs): training users, and on test rows those left
    out. Scales and variables are learnt from all people's windows and from training users' labels.
    """
    table = stand_in_people.made_up(effect=effect) if name == "made_up" else stand_in_people.worn()
    some = homes.windows(table)
    taken, left = homes.chosen(some, men, women)
    train, test = some.of(taken), some.of(left)
    kept = homes.telling(train, variables)
    splits, held = [], []
    for part in (homes.narrowed(train, kept), homes.narrowed(test, kept)):
        y, male = (torch.from_numpy(a.astype(np.int64)) for a in (part.label, part.male))
        splits.append(Split(torch.from_numpy(part.x), y, male[:, None]))
    held.append([np.flatnonzero(train.user == user) for user in taken])
    held.append(np.array_split(np.arange(len(test.user)), len(taken)))
    partition = Partition(
        "a person each", ClientIndices.from_lists(held[0]), None, ClientIndices.from_lists(held[1])
    )
    return Dataset(stand_in_people.SOURCES[name], *splits, classes=2), partition, tuple(kept)


def scores(said: Tensor, guessed: Tensor, split: Split) -> dict[str, float]:
    """F1 of the impaired and AUC of D in percent, delta EO from 0 to 2; said, guessed [n]."""
    from sklearn.metrics import f1_score

    y, group = split.y.cpu().numpy(), split.groups[:, 0].cpu().numpy()
    return {
        "f1": 100 * float(f1_score(y, said, zero_division=0)),
        "acc": 100 * float((said == y).mean()),
        "delta_eo": delta_eo(said, y, group),
        "adv_auc": 100 * float(auc(guessed, group)),
    }


class Watch(parts.Each):
    """`scores` of the users trained with (``train_``) and of those left out (``left_``)."""

    @torch.no_grad()
    def each(self, engine):
        phase = engine.phase
        for r in range(len(phase.seeds)):
            params, found = phase.layout.views(*phase.models("shared", "personal", r, 0)), {}
            for name, rows in (("train", "train"), ("left", "test")):
                split = phase.rows[rows][0]
                watch = dict(watch=Tensor.detach)
                outputs, logit = functional_call(phase.net, params, (split.x,), watch)
                said, guess = outputs.argmax(-1).cpu().numpy(), logit[:, 0].cpu().numpy()
                found |= {f"{name}_{m}": v for m, v in scores(said, guess, split).items()}
            yield found

    def final(self, engine):
        return self.look(0, engine)


class Parts(parts.Parts):
    """The parts of one stand-in, number of users a round and learning rate."""

    followed = Watch

    def outcome(self, name: str) -> Outcome:
        """The task "alone", or the "game" from there: each loss side by side; of "none" D learns,
        and nobody listens."""
        cfg, (people, per_round, lr) = self.cfg, self.cfg.cells[self.task]
        game, methods, rounds = name == "game", [FADE(opt_out=1.0, beta=cfg.beta)], cfg.pretraining
        if game:
            rounds, still = cfg.rounds, {"none": 0.0}  # of the game
            usual = dict(rounds=rounds, start=cfg.pretraining, beta=cfg.beta)
            methods = [FADE(power=LOSSES[x], strength=still.get(x), **usual) for x in cfg.losses]
        data, part, kept = users_of(people, cfg.men, cfg.women, cfg.variables, cfg.effect)
        there = Participation(per_round / len(part))
        methods = methods * len(self.seeds)
        held = [part] * len(methods)
        fed, start = self.side_by_side(lambda: SensorNet(len(kept), cfg.hidden), data, held, there)
        start = parts.ends(self.before[""], len(cfg.losses)) if game else start
        how = dict(keep_momentum=True, batches=1, annealing=Annealing(rounds) if game else None)
        training = LocalTraining(lr, cfg.batch_size, cfg.momentum, **how)
        if game:
            return self.run(name, fed, methods, training, rounds, start, self.before[""])
        self.before[""] = self.run(name, fed, methods, training, rounds, start)
        return self.before[""]


class Impairment(parts.Tasks):
    """``made_up:5:0.01:alone``, then its ``game``: all losses from one model, side by side."""

    name, table, over = NAME, TABLE, "cells"
    Settings, scales, Parts = Settings, SCALES, Parts
    chooses = frozenset({"people", "per_round", "lrs"})

    def names(self, cfg) -> dict[str, int]:
        return {"alone": cfg.pretraining, "game": cfg.rounds}

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part, after its last round."""
        name, m, lr, kind = part.split(":")
        return (
            _with_losses(cfg, kind, outcome.final.reset_index())
            .melt(["seed", "loss"], var_name="metric")
            .dropna(subset="value")
            .assign(
                table=TABLE,
                stand_in=stand_in_people.SOURCES[name],
                per_round=int(m),
                lr=float(lr),
                rounds=cfg.pretraining + (cfg.rounds if kind == "game" else 0),
                selection="last",
            )
        )

    def curve(self, cfg: Settings, part: str, history: pd.DataFrame) -> pd.DataFrame:
        """People, per_round, lr, loss, round, seed, and what `Watch` measures."""
        name, m, lr, kind = part.split(":")
        lines = _with_losses(cfg, kind, history)
        lines["round"] += cfg.pretraining * (kind == "game")
        return lines.assign(people=name, per_round=int(m), lr=float(lr))


def _with_losses(cfg: Settings, kind: str, lines: pd.DataFrame) -> pd.DataFrame:
    losses = cfg.losses if kind == "game" else ["before"]
    return parts.labelled(lines, [dict(loss=loss) for loss in losses])


IMPAIRMENT = Impairment()
