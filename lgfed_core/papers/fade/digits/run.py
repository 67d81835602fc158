"""FADE on digits with unbalanced groups: Figure 2 of Hong et al. (KDD 2021), section 5.1.

Two devices, a domain each: MNIST and USPS, both ways. The source has labels, the target none. After
pre-training on the source, one device takes part in each round, the target with a probability from
0.05 to 0.95. Both adversarial losses, vanilla and squared, at all probabilities are lanes of one
run. Beside them `central`: both domains in every batch (DANN, Ganin & Lempitsky 2015); what opting
out of the game does; and what becomes of it with batch normalisation frozen, local or averaged.

Only `as_described` exists: the released code has no settings for digits. What the text leaves open
(momentum 0.9 with Nesterov, weight decay 0.001, learning rate 0.01, beta 0.5) is as in that code's
other experiments.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models
from lgfed_core.engine import CPU, Federation, Outcome, Participation
from lgfed_core.methods import FADE
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.digits import DigitsNet
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Part, Piece, following

from .. import parts
from ..parts import by_metric, saved_as
from . import domains
from .adaptation import Adaptation
from .settings import (
    CENTRAL,
    CURVES,
    NAME,
    NOTHING,
    OPT_OUT,
    POWERS,
    SCALES,
    STATISTICS,
    TABLE,
    Settings,
    pieces,
)


def federation(
    cfg: Settings,
    direction: str,
    seeds: Sequence[int],
    probabilities: Sequence[float],
    device: torch.device = CPU,
) -> tuple[Federation, Tensor]:
    """A run per seed and probability of the target (a seed's lie together), and first parameters.

    The runs of a seed start alike.
    """
    both = domains.digits(direction, per_class=cfg.per_class, tested=cfg.tested)
    nets = [models.make(DigitsNet, seed) for seed in seeds]
    there = torch.tensor([[1 - p, p] for p in probabilities], dtype=torch.double)  # [P, 2]
    who = Participation(0.5, there.repeat(len(seeds), 1))
    runs = [seed for seed in seeds for _ in probabilities]
    fed = Federation(both.data, [both.partition] * len(runs), nets[0], runs, device, who)
    return fed, torch.stack([joined(net) for net in nets for _ in probabilities])


class Parts(parts.Parts):
    """The parts of one direction."""

    followed = Adaptation

    def pretraining(self) -> Outcome:
        """The source alone, until it knows its digits."""
        cfg = self.cfg
        fed, start = federation(cfg, self.task, self.seeds, [0.0], self.device)
        method = FADE(opt_out=1.0, beta=1.0, batch_norm="averaged")
        training = self.training(batches=cfg.steps)
        return self.run(parts.PRETRAINING, fed, method, training, cfg.pretraining, start)

    def played(self, before: Outcome, name: str) -> Outcome:
        """The part called ``name``, from the pre-trained model."""
        cfg, (kind, *what) = self.cfg, name.split(":")
        if kind == CENTRAL:
            return self.central(before, *what)
        if kind == "opt_out":
            return self.game(before, name, [0.5], opt_out=float(what[0]))
        if kind == "statistics":
            return self.game(before, name, cfg.probabilities, batch_norm=what[0])
        lanes = [(POWERS[loss], p) for loss in cfg.losses for p in cfg.probabilities]
        powers, probabilities = zip(*lanes, strict=True)
        return self.game(before, name, probabilities, powers)

    def game(
        self,
        before: Outcome,
        name: str,
        probabilities: Sequence[float],
        powers: Sequence[float] | None = None,
        **method,
    ) -> Outcome:
        """FADE from the pre-trained model, a run for each of ``probabilities`` and ``powers``.

        ``method`` are further settings of `methods.FADE`.
        """
        cfg = self.cfg
        fed, _ = federation(cfg, self.task, self.seeds, probabilities, self.device)
        usual = dict(beta=cfg.beta, rounds=cfg.rounds, start=cfg.pretraining)
        powers = powers or [1.0] * len(probabilities)
        playing = [FADE(power=q, **usual, **method) for q in powers] * len(self.seeds)
        training = self.training(batches=cfg.steps, annealing=Annealing(cfg.rounds * cfg.steps))
        start = _start(before, len(probabilities))
        return self.run(name, fed, playing, training, cfg.rounds, start)

    def central(self, before: Outcome, batch_norm: str = "frozen") -> Outcome:
        """Both domains in every step, in equal parts: what a server with all data would do.

        A step of each device and their plain average is one step on the mean of both losses: the
        adversarial one at the full rate, the task's, which the source alone has, at half of it. As
        many batches as in a federated run. With ``batch_norm`` "local" each domain is normalised by
        itself.
        """
        cfg = self.cfg
        fed, _ = federation(cfg, self.task, self.seeds, [0.5], self.device)
        fed = replace(fed, participation=Participation())
        rounds = cfg.rounds * cfg.steps // 2
        playing = dict(beta=1.0, weighted=False, rounds=rounds, start=cfg.pretraining)
        method = FADE(**playing, batch_norm=batch_norm)
        training = self.training(batches=1, annealing=Annealing(rounds))
        name = CENTRAL if batch_norm == "frozen" else f"{CENTRAL}:{batch_norm}"
        return self.run(name, fed, method, training, rounds, _start(before, 1))


def _start(before: Outcome, times: int) -> Tensor:
    """Each seed's pre-trained model, ``times`` over -> [R, P]."""
    t = before.tensors
    return before.layout.join(t["shared"], t["personal"][:, 0]).repeat_interleave(times, 0)


def _long(cfg: Settings, part: str, wide: pd.DataFrame) -> pd.DataFrame:
    """Lines of the runs [R] -> a row per metric; a seed's runs are in the order of `Parts.game`."""
    kind = part.split(":")[1]
    lanes = {
        "losses": [{"loss": x, "probability": p} for x in cfg.losses for p in cfg.probabilities],
        "statistics": [{"probability": p} for p in cfg.probabilities],
        "opt_out": [{}],
    }.get(kind, [{"loss": kind, "probability": None}])
    keys = ["seed", *(["round"] if "round" in wide else [])]
    ids = pd.DataFrame(lanes).iloc[wide.groupby(keys).cumcount()]
    wide = pd.concat([wide.reset_index(drop=True), ids.reset_index(drop=True)], axis=1)
    return by_metric(wide, [*keys, *ids.columns])


def scale_of(cfg: Settings, kind: str) -> str:
    """The scale of a part's rows: "short" where the game has fewer rounds than the paper's."""
    fewer = cfg.rounds < Settings.rounds and kind != "pretraining"
    return "short" if cfg.scale == "paper" and fewer else cfg.scale


class Digits(Experiment):
    """The parts of each direction: ``mnist-usps:losses``, ``mnist-usps:opt_out:0.5``, ..."""

    name, table = NAME, TABLE
    Settings, scales, protocols = Settings, SCALES, ("as_described",)
    apart = frozenset({"directions"})  # not all of them have run with every rate of opting out
    chooses = frozenset({"directions", "probabilities", "rounds", *NOTHING, "central_statistics"})

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        folder = self.folder(cfg, seeds)
        for direction in cfg.directions:
            for name, rounds in cfg.lengths.items():
                yield Part(f"{direction}:{name}", rounds, folder / saved_as(direction, name))

    def pieces(self, protocol: str) -> list[Piece]:
        return pieces(protocol)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        for direction in cfg.directions:
            own = Parts(cfg, direction, seeds, device, folder, engine)
            for name in cfg.lengths:
                if name == "pretraining":
                    outcome = before = own.pretraining()
                else:
                    outcome = following(before, own.played(before, name))
                yield f"{direction}:{name}", outcome

    def places(self, cfg) -> tuple[str, Iterable[str]]:
        lanes = {"rounds", "losses", "probabilities"}  # these change what trains together
        return cfg.scale, self.chooses - lanes

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """Tidy rows of one part: the end, and for the losses also the way there, by round.

        Accuracies in percent, losses in nats. ``probability`` is the target's, blank where there is
        none.
        """
        direction, kind, *what = part.split(":")
        both = domains.digits(direction, per_class=cfg.per_class, tested=cfg.tested)
        common = dict(
            direction=direction,
            stand_in=both.stand_in,
            selection="last",
            rounds=cfg.pretraining if kind == "pretraining" else cfg.rounds,
            scale=scale_of(cfg, kind),
        )
        history = outcome.history
        if history.empty:  # all runs ended before the first look
            history = pd.DataFrame({"round": 1, "seed": outcome.final.index, "target_acc": 0.0})
        end = history[history["round"] == history["round"].max()].drop(columns="round")
        end = _long(cfg, part, end).assign(**common)
        if kind == "opt_out":
            return end.assign(table=OPT_OUT, opt_out=float(what[0]))
        table = STATISTICS if kind == "statistics" else TABLE
        end = end.assign(table=table, statistics="".join(what))  # "" is frozen
        if kind != "losses":
            return end
        way = _long(cfg, part, history).assign(table=CURVES, **common)
        return pd.concat([end, way], ignore_index=True)

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: direction, loss, probability, seed, round, metric, value."""
        out = [
            _long(cfg, part, history).assign(direction=part.split(":")[0])
            for part, history in histories.items()
            if part.endswith(":losses") and len(history)
        ]
        return pd.concat(out, ignore_index=True) if out else pd.DataFrame()


DIGITS = Digits()
