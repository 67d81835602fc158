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
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.methods import FADE
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.digits import DigitsNet
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Part, Piece, following

from . import domains, pieces
from .adaptation import Adaptation
from .settings import CENTRAL, CURVES, OPT_OUT, POWERS, SCALES, STATISTICS, TABLE, Settings

NAME = "fade.digits"


def federation(
    cfg: Settings,
    direction: str,
    seeds: Sequence[int],
    probabilities: Sequence[float],
    device: torch.device = CPU,
) -> tuple[Federation, Tensor]:
    """A run per seed and probability of the target (a seed's lie together), and first parameters.

    Returns the federation and [R, P]; the runs of a seed start alike.
    """
    both = domains.digits(direction, per_class=cfg.per_class, tested=cfg.tested)
    found = [models.make(DigitsNet, seed) for seed in seeds]
    there = torch.tensor([[1 - p, p] for p in probabilities], dtype=torch.double)  # [P, 2]
    runs = [seed for seed in seeds for _ in probabilities]
    fed = Federation(
        both.data,
        [both.partition] * len(runs),
        found[0],
        runs,
        device,
        Participation(0.5, there.repeat(len(seeds), 1)),
    )
    return fed, torch.stack([joined(net) for net in found for _ in probabilities])


@dataclass(frozen=True)
class Parts:
    """The parts of one direction, with the seeds that train together and their checkpoints."""

    cfg: Settings
    direction: str
    seeds: Sequence[int]
    device: torch.device
    folder: Path | None
    engine: dict

    def pretraining(self) -> Outcome:
        """The source alone, until it knows its digits."""
        cfg = self.cfg
        fed, start = federation(cfg, self.direction, self.seeds, [0.0], self.device)
        method = FADE(opt_out=1.0, beta=1.0, batch_norm="averaged")
        return self._run("pretraining", fed, method, self._training(), cfg.pretraining, start)

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
        fed, _ = federation(cfg, self.direction, self.seeds, probabilities, self.device)
        usual = dict(beta=cfg.beta, rounds=cfg.rounds, start=cfg.pretraining)
        powers = powers or [1.0] * len(probabilities)
        playing = [FADE(power=q, **usual, **method) for q in powers] * len(self.seeds)
        training = self._training(annealing=Annealing(cfg.rounds * cfg.steps))
        start = _start(before, len(probabilities))
        return self._run(name, fed, playing, training, cfg.rounds, start, cfg.pretraining)

    def played(self, before: Outcome, name: str) -> Outcome:
        """The part called ``name``, from the pre-trained model."""
        cfg, (kind, *what) = self.cfg, name.split(":")
        if kind == CENTRAL:
            return self.central(before, *what)
        name = name.replace(":", "_")
        if kind == "opt_out":
            return self.game(before, name, [0.5], opt_out=float(what[0]))
        if kind == "statistics":
            return self.game(before, name, cfg.probabilities, batch_norm=what[0])
        lanes = [(POWERS[loss], p) for loss in cfg.losses for p in cfg.probabilities]
        powers, probabilities = zip(*lanes, strict=True)
        return self.game(before, name, probabilities, powers)

    def central(self, before: Outcome, batch_norm: str = "frozen") -> Outcome:
        """Both domains in every step, in equal parts: what a server with all data would do.

        A step of each device and their plain average is one step on the mean of both losses: the
        adversarial one at the full rate, the task's, which the source alone has, at half of it. As
        many batches as in a federated run. With ``batch_norm`` "local" each domain is normalised by
        itself.
        """
        cfg = self.cfg
        fed, _ = federation(cfg, self.direction, self.seeds, [0.5], self.device)
        fed = replace(fed, participation=Participation())
        rounds = cfg.rounds * cfg.steps // 2
        playing = dict(beta=1.0, weighted=False, rounds=rounds, start=cfg.pretraining)
        method = FADE(**playing, batch_norm=batch_norm)
        training = self._training(annealing=Annealing(rounds), batches=1)
        start = _start(before, 1)
        name = CENTRAL if batch_norm == "frozen" else f"{CENTRAL}_{batch_norm}"
        return self._run(name, fed, method, training, rounds, start, cfg.pretraining)

    def _training(self, **more) -> LocalTraining:
        cfg = self.cfg
        usual = dict(
            weight_decay=cfg.weight_decay,
            keep_momentum=True,
            nesterov=cfg.momentum > 0,
            batches=cfg.steps,
        )
        return LocalTraining(cfg.lr, cfg.batch_size, cfg.momentum, **(usual | more))

    def _run(self, name, fed, method, training, rounds, start, first_round=0) -> Outcome:
        saved = self.folder / f"{self.direction}_{name}.safetensors" if self.folder else None
        return run(
            fed,
            method,
            training,
            rounds,
            start,
            first_round=first_round,
            saved=saved,
            tracker=Adaptation(max(1, rounds // self.cfg.looks)),
            label=f"seed {self.seeds[0]}, {self.direction}: {name}",
            **self.engine,
        )


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
        "opt_out": [{"probability": 0.5}],
    }.get(kind, [{"loss": kind, "probability": None}])
    keys = ["seed", *(["round"] if "round" in wide else [])]
    ids = pd.DataFrame(lanes).iloc[wide.groupby(keys).cumcount()]
    wide = pd.concat([wide.reset_index(drop=True), ids.reset_index(drop=True)], axis=1)
    long = wide.melt([*keys, *ids.columns], var_name="metric")
    percent = long["metric"].str.endswith("_acc")
    return long.assign(value=long["value"].where(~percent, 100 * long["value"]))


def scale_of(cfg: Settings, kind: str) -> str:
    """The scale of a part's rows: "short" where the game has fewer rounds than the paper's."""
    fewer = cfg.rounds < Settings.rounds and kind != "pretraining"
    return "short" if cfg.scale == "paper" and fewer else cfg.scale


class Digits(Experiment):
    """The parts of each direction: ``mnist-usps:losses``, ``mnist-usps:opt_out:0.5``, ..."""

    name, table = NAME, TABLE
    Settings, scales, protocols = Settings, SCALES, ("as_described",)
    apart = frozenset({"directions"})  # not all of them have run with every rate of opting out
    chooses = frozenset(
        {"directions", "probabilities", "losses", "opt_outs", "statistics", "central", "rounds"}
        | {"central_statistics"}
    )
    federation = staticmethod(federation)

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        folder = self.folder(cfg, seeds)
        for direction in cfg.directions:
            for name, rounds in cfg.lengths.items():
                saved = folder / f"{direction}_{name.replace(':', '_')}.safetensors"
                yield Part(f"{direction}:{name}", rounds, saved)

    def pieces(self, protocol: str) -> list[Piece]:
        return pieces.of(self.name, protocol)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        for direction in cfg.directions:
            parts = Parts(cfg, direction, seeds, device, folder, engine)
            for name in cfg.lengths:
                if name == "pretraining":
                    outcome = before = parts.pretraining()
                else:
                    outcome = following(before, parts.played(before, name))
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
            protocol=cfg.protocol,
            selection="last",
            rounds=cfg.pretraining if kind == "pretraining" else cfg.rounds,
            scale=scale_of(cfg, kind),
            seconds=outcome.seconds,
            **outcome.provenance,
        )
        history = outcome.history
        if history.empty:  # all runs ended before the first look
            history = pd.DataFrame({"round": 1, "seed": outcome.final.index, "target_acc": 0.0})
        end = history[history["round"] == history["round"].max()].drop(columns="round")
        end = _long(cfg, part, end).assign(**common)
        if kind == "opt_out":
            return end.drop(columns="probability").assign(table=OPT_OUT, opt_out=float(what[0]))
        if kind == "statistics":
            return end.assign(table=STATISTICS, statistics=what[0])
        end = end.assign(table=TABLE, statistics="".join(what))  # of `central`; "" is frozen
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
