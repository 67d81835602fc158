"""Questions about pictures: Table 2 and learning curves of Liang et al. (v1 3.1; v2 5.2, C.2.3).

50 devices answer questions about pictures. FedAvg trains the whole network; LG-FedAvg goes on from
FedAvg's model of round 32 and sends what lies behind both encoders. How many rounds, and
parameters, until the mean accuracy is 40 %? All lines go on for the whole budget; when they reached
the goal is found afterwards, on validation rows. Made-up questions and a smaller network stand in.
"""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import torch

from lgfed_core import models
from lgfed_core.engine import Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.methods import FedAvg, LGFedAvg
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Piece, following, percent, saved_at, who

from ..records import by_round, system
from .settings import LINES, SCALES, Settings, asked_of
from .watch import Watch

NAME = "lgfedavg.vqa"
TABLE = "lgfedavg_table2_vqa"
CURVES = "lgfedavg_vqa_curves"  # of our own: the same by round,
RATES = "lgfedavg_vqa_rates"  # and at other learning rates,
LONG = "lgfedavg_vqa_long"  # and for longer
METHOD = {"fedavg": "fedavg", "lg_fedavg": "lg_fedavg", "lg_scratch": "lg_fedavg"}


class Questions(Experiment):
    """FedAvg, which keeps its model of round ``start``, then LG-FedAvg from there, then LG-FedAvg
    from the first weights."""

    name, table = NAME, TABLE
    Settings, scales = Settings, SCALES
    stem, shared = "{scale}-{data}", frozenset({"lines", "data"})
    chooses = shared | {"lr", "long"}

    def rounds(self, cfg) -> dict[str, int]:
        """FedAvg's and those of its lines; for longer, all have as many in all."""
        own = dict(fedavg=cfg.rounds, lg_fedavg=cfg.further, lg_scratch=cfg.scratch)
        if cfg.long > 1:
            whole = cfg.long * cfg.rounds
            own = dict(fedavg=whole, lg_fedavg=whole - cfg.start, lg_scratch=whole)
        return {line: own[line] for line in ("fedavg", *cfg.lines)}

    def pieces(self, protocol: str) -> list[Piece]:
        """FedAvg and LG-FedAvg, as Table 2 has them, and LG-FedAvg from nothing."""
        return [
            Piece(
                *(self.name, protocol, line),
                changes=(("lines", (line,) if line in LINES else ()),),
                cell=tuple(ids(line).items()),
                after=("fedavg",) if line in LINES else (),
            )
            for line in METHOD
        ]

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        asked = asked_of(cfg)
        splits = [cfg.split(asked, seed) for seed in seeds]
        nets = [models.make(cfg.net, seed) for seed in seeds]
        there = Participation(cfg.fraction)
        fed = Federation(asked.data, splits, nets[0], list(seeds), device, there)
        first, fedavg = torch.stack([joined(net) for net in nets]), None  # [R, P]
        for line, rounds in self.rounds(cfg).items():
            kind = FedAvg() if line == "fedavg" else LGFedAvg(layers=cfg.shared(nets[0]))
            done = cfg.start if line == "lg_fedavg" else 0  # rounds of FedAvg before it
            rate = dict(decay=cfg.decay, before=done)
            outcome = run(
                fed,
                replace(kind, weighted=cfg.weighted),
                LocalTraining(cfg.lr, cfg.batch_size, cfg.momentum, **rate),
                rounds,
                fedavg.tensors["at_start"] if done else first,
                tracker=Watch(cfg.every * cfg.long, cfg.start if line == "fedavg" else 0),
                first_round=done,
                saved=saved_at(folder, line),
                label=f"{who(seeds)}: {line}",
                **engine,
            )
            fedavg = outcome if line == "fedavg" else fedavg
            yield line, following(fedavg, outcome, done) if done else outcome

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """Both accuracies by round, in percent; of the lines of Table 2, at the goal as well.
        At another learning rate, or for longer, by round alone, in a table that says which rate,
        and how many times as long.

        Where the goal was not reached, ``goal_reached`` is 0 and the numbers are the last round's.
        """
        history = outcome.history
        if history.empty:  # nobody was looked at: every seed has diverged before
            nothing = dict(round=0, validation_acc=0.0, local_test_acc=0.0)
            history = pd.DataFrame(dict(seed=outcome.final.index)).assign(**nothing)
        common = dict(stand_in=cfg.stand_in, selection="last")
        way = percent(history, ["seed", "round"]).assign(**ids(part) | dict(table=CURVES))
        if cfg.long > 1 or cfg.lr != Settings.lr:
            way = way.assign(**common, table=RATES, lr=cfg.lr)
            return way.assign(table=LONG, long=cfg.long) if cfg.long > 1 else way
        if part == "lg_scratch":
            return way.assign(**common)
        end = at_goal(cfg, part, history).reset_index().melt("seed", var_name="metric")
        return pd.concat([end.assign(**ids(part)), way]).assign(**common)

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: method, start, seed, round (of the line), metric, value in percent."""
        return by_round(histories, ids)


def ids(line: str) -> dict:
    """The table and the columns that name the rows of a line.

    start: "first" weights, or "fedavg", the model of FedAvg that it goes on from.
    """
    start = "fedavg" if line == "lg_fedavg" else "first"
    table = CURVES if line == "lg_scratch" else TABLE
    return dict(table=table, method=METHOD[line], start=start)


def at_goal(cfg: Settings, part: str, history: pd.DataFrame) -> pd.DataFrame:
    """Table 2's numbers by seed at the first look at which it had the goal, or in the last round;
    parameters sent by the papers' count, of the network that was trained."""
    there = history[history["validation_acc"] >= cfg.goal]
    looks = pd.concat([there, history.groupby("seed").tail(1)])
    first = looks.drop_duplicates("seed").set_index("seed")
    own = first["round"].astype(int)
    rounds = (own, 0) if part == "fedavg" else (cfg.start, own)
    found = dict(
        local_test_acc=100 * first["local_test_acc"],
        fedavg_rounds=rounds[0],
        lg_rounds=rounds[1],
        params_communicated=system(cfg).papers(*rounds),
        goal_reached=first.index.isin(there["seed"]),
    )
    return pd.DataFrame(found, dtype=float)


QUESTIONS = Questions()
