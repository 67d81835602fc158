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

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from torch import Tensor

from lgfed_core.engine import Federation, Outcome, Participation
from lgfed_core.methods import FADE
from lgfed_core.models.digits import DigitsNet

from .. import parts
from ..parts import PRETRAINING, by_metric, ends, labelled, looks
from . import domains
from .adaptation import Adaptation
from .domains import CENTRAL, NAME, NOTHING, OPT_OUT, POWERS, STATISTICS, TABLE, Settings


class Parts(parts.Parts):
    """The parts of one direction."""

    followed = Adaptation

    def federation(self, probabilities: Sequence[float]) -> tuple[Federation, Tensor]:
        """A run per seed and probability of the target, and first parameters [R, P]."""
        both = domains.digits(self.task, self.cfg.per_class, self.cfg.tested)
        held = [both.partition] * len(probabilities) * len(self.seeds)
        return self.side_by_side(DigitsNet, both.data, held, self.one_of_two(*probabilities))

    def outcome(self, name: str) -> Outcome:
        if name == PRETRAINING:
            self.before[""] = self.pretraining()
            return self.before[""]
        cfg, before, (kind, *what) = self.cfg, self.before[""], name.split(":")
        if kind == CENTRAL:
            return self.central(before, *what)
        if kind == "opt_out":
            return self.federated(before, name, [0.5], opt_out=float(what[0]))
        if kind == "statistics":
            return self.federated(before, name, cfg.probabilities, batch_norm=what[0])
        lanes = cfg.lanes(kind)
        powers = [POWERS[lane["loss"]] for lane in lanes]
        return self.federated(before, name, [lane["probability"] for lane in lanes], powers)

    def pretraining(self) -> Outcome:
        """The source alone, until it knows its digits."""
        cfg = self.cfg
        fed, start = self.federation([0.0])
        method = FADE(opt_out=1.0, beta=1.0, batch_norm="averaged")
        training = self.training(batches=cfg.steps)
        return self.run(PRETRAINING, fed, method, training, cfg.pretraining, start)

    def federated(
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
        fed, _ = self.federation(probabilities)
        usual = dict(beta=cfg.beta, rounds=cfg.rounds, start=cfg.pretraining)
        powers = powers or [1.0] * len(probabilities)
        playing = [FADE(power=q, **usual, **method) for q in powers] * len(self.seeds)
        start = ends(before, len(probabilities))
        return self.game(name, fed, playing, cfg.rounds, start, before, cfg.steps)

    def central(self, before: Outcome, batch_norm: str = "frozen") -> Outcome:
        """Both domains in every step, in equal parts: what a server with all data would do.

        A step of each device and their plain average is one step on the mean of both losses: the
        adversarial one at the full rate, the task's, which the source alone has, at half of it. As
        many batches as in a federated run. With ``batch_norm`` "local" each domain is normalised by
        itself.
        """
        cfg = self.cfg
        fed, _ = self.federation([0.5])
        fed = replace(fed, participation=Participation())
        rounds = cfg.rounds * cfg.steps // 2
        playing = dict(beta=1.0, weighted=False, rounds=rounds, start=cfg.pretraining)
        method = FADE(**playing, batch_norm=batch_norm)
        name = CENTRAL if batch_norm == "frozen" else f"{CENTRAL}:{batch_norm}"
        return self.game(name, fed, method, rounds, ends(before, 1), before)


def _long(cfg: Settings, part: str, wide: pd.DataFrame) -> pd.DataFrame:
    """Lines of the runs [R] -> a row per metric; a seed's runs are in the order of `Parts.game`."""
    lanes = cfg.lanes(part.split(":")[1])
    return by_metric(labelled(wide, lanes), lanes[0])


class Digits(parts.Tasks):
    """The parts of each direction: ``mnist-usps:losses``, ``mnist-usps:opt_out:0.5``, ..."""

    name, table, over = NAME, TABLE, "directions"
    Settings, scales, Parts = Settings, domains.SCALES, Parts
    one_value = frozenset({"directions"})  # not all of them have run with every rate of opting out
    stem = "{scale}"
    shared = frozenset({"directions", *NOTHING, "central_statistics"}) - {"losses"}
    chooses = shared | {"losses", "probabilities", "rounds"}  # these change what trains together
    pieces = staticmethod(domains.pieces)

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
            scale=cfg.scale if kind == "pretraining" else cfg.recorded,
        )
        history = looks(outcome, "target_acc")
        end = history[history["round"] == history["round"].max()].drop(columns="round")
        end = _long(cfg, part, end).assign(**common)
        if kind == "opt_out":
            return end.assign(table=OPT_OUT, opt_out=float(what[0]))
        table = STATISTICS if kind == "statistics" else TABLE
        end = end.assign(table=table, statistics="".join(what))  # "" is frozen
        if kind != "losses":
            return end
        way = _long(cfg, part, history).assign(table=domains.CURVES, **common)
        return pd.concat([end, way], ignore_index=True)

    def curve(self, cfg: Settings, part: str, history: pd.DataFrame) -> pd.DataFrame | None:
        """Of the losses: direction, loss, probability, seed, round, metric, value."""
        direction, kind = part.split(":")[:2]
        return _long(cfg, part, history).assign(direction=direction) if kind == "losses" else None


DIGITS = Digits()
