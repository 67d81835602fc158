"""How a local representation is learned: the panels of LG-FedAvg's Figure 1, side by side.

Liang et al. (2019, v1 section 2.1; 2020, v2 section 3.1 and appendix B.1) name four ways: from the
labels, from the rows themselves (autoencoder), from labels made up (jigsaw), and against an
adversary. They train the first, and the last on incomes. Here all train on the same data, devices
and batches, from the same f and g, with few labels or many; the question is our own.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch

from lgfed_core.engine import Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Piece, percent, saved_at, who

from ..records import by_round
from .labels import few, pictures, split
from .measures import Representations
from .settings import LABELS, SCALES, WAYS, WEIGHTS, WITHOUT, Settings, named

NAME = "lgfedavg.representations"
TABLE = "lgfedavg_representations"  # of our own: no paper prints it
CURVES = "lgfedavg_representations_curves"


class RepresentationsLearned(Experiment):
    """A part for each way, number of labels and weight of the auxiliary loss."""

    name, table = NAME, TABLE
    Settings, scales = Settings, SCALES
    chooses = frozenset({"ways", "labels", "weights"})

    def rounds(self, cfg) -> dict[str, int]:
        return dict.fromkeys(cfg.cells, cfg.rounds)

    def pieces(self, protocol: str) -> list[Piece]:
        """A piece for each part that the page shows; those of usual weight first."""
        every = [(1.0, way) for way in WAYS]
        every += [(w, way) for w in WEIGHTS if w != 1 for way in WAYS if way not in WITHOUT]
        return [
            Piece(
                *(self.name, protocol, named(way, n, weight)),
                changes=(("ways", (way,)), ("labels", (n,)), ("weights", (weight,))),
                cell=tuple(ids(way, n, weight).items()),
                like=tuple(dict(table=TABLE, way=way).items()),
            )
            for weight, way in every
            for n in LABELS
        ]

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        images = pictures(cfg)
        splits = [split(cfg, images, seed) for seed in seeds]
        every = max(1, cfg.rounds // cfg.looks)
        for name, (way, labels, weight) in cfg.cells.items():
            given, held = few(images, splits, seeds, labels)
            nets = [cfg.net(way, seed) for seed in seeds]
            outcome = run(
                Federation(given, held, nets[0], list(seeds), device, Participation(cfg.fraction)),
                cfg.method(way, weight, nets[0]),
                LocalTraining(cfg.lr, cfg.batch_size),
                cfg.rounds,
                torch.stack([joined(net) for net in nets]).to(device),
                tracker=Representations(way, every, cfg.probe_rows),
                saved=saved_at(folder, name),
                label=f"{who(seeds)}: {name}",
                **engine,
            )
            yield name, outcome

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part, in percent: at the end, and both tests by round."""
        common = ids(*cfg.cells[part]) | dict(selection="last")
        end = percent(outcome.final.reset_index(), ["seed"]).assign(**common)
        if "round" not in outcome.history:
            return end
        way_there = percent(outcome.history, ["seed", "round"])
        return pd.concat([end, way_there.assign(**common | dict(table=CURVES))])

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: way, labels, weight, seed, round, metric, value in percent."""
        return by_round(histories, lambda part: ids(*cfg.cells[part]))


def ids(way: str, labels: int, weight: float) -> dict[str, Any]:
    """The table and the columns that name the rows of a part."""
    return dict(table=TABLE, way=way, labels=labels, weight=weight)


REPRESENTATIONS = RepresentationsLearned()
