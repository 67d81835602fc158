"""A newcomer with turned pictures: Table 3 of Liang et al. 2020 (v1 section 3.2, v2 section 5.4).

FedAvg trains 100 devices, i.i.d. or not, to 98 %. Then a device comes whose 3,000 MNIST pictures
are turned by 90 degrees, and 500 more rounds are trained by the newcomer and a fraction C of the
old devices: by FedAvg, FedProx or LG-FedAvg, all from the same model. What of the old remains?

There is no code, and the text leaves much open. Each such choice is a setting; `vary` names those
of which other values are tried as well, one at a time (`settings.VARIED`), and so are remedies.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models
from lgfed_core.data import Dataset
from lgfed_core.engine import Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.methods import FedAvg
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Part, Piece, following, percent, saved_at, who

from ..records import by_round
from .newcomer import WithNewcomers, arrived, old_devices, pictures
from .settings import LINES, SCALES, SPLITS, VARIED, Settings, matters, named
from .sides import BothSides, Until

NAME = "lgfedavg.rotated"
TABLE = "lgfedavg_table3_rotated_mnist"
CURVES = "lgfedavg_rotated_curves"  # tables of ours: the same by round,
CHOICES = "lgfedavg_rotated_choices"  # with another choice,
BEFORE = "lgfedavg_rotated_before"  # and the model that all go on from


@dataclass(frozen=True)
class Phases:
    """Training before and after the newcomer comes, of the seeds that go together."""

    cfg: Settings
    images: Dataset
    seeds: Sequence[int]
    device: torch.device
    engine: dict

    def before(self, saved) -> Outcome:
        """FedAvg of the old devices to the goal."""
        cfg = self.cfg
        fed = self._federation(self.images, self._old(), Participation(cfg.cohort))
        start = torch.stack([joined(models.make(models.mlp_mnist, seed)) for seed in self.seeds])
        how = dict(tracker=Until(cfg.goal, cfg.every), saved=saved)
        return self._run("before", fed, FedAvg(), Settings.lr, cfg.before, start, **how)

    def after(self, line: str, before: Outcome, saved) -> Outcome:
        """The rounds with the newcomers, from the model that ``before`` ended with."""
        cfg = self.cfg
        images, splits = arrived(cfg, self.images, self._old(), self.seeds)
        start, first = before.tensors["shared"], cfg.before
        if cfg.own_first and matters("own_first", line):
            start = self._own_first(line, images, splits, start, saved)
            first += cfg.own_first
        fed = self._federation(images, splits, cfg.participation(line))
        for name in models.last_layers(fed.net, cfg.frozen):
            fed.net.get_parameter(name).requires_grad_(False)
        tracker = BothSides(cfg.newcomers, max(1, cfg.rounds // cfg.looks))
        method, how = cfg.method(line, fed.net), dict(tracker=tracker, saved=saved)
        out = self._run(line, fed, method, cfg.lr, cfg.rounds, start, first_round=first, **how)
        return following(before, out)

    def _own_first(self, line: str, images, splits, start: Tensor, saved) -> Tensor:
        """Everybody's parameters [R, K, P] once newcomers have trained what stays with them, alone
        and under the shared layers as they are (v1: "before fine-tuning together")."""
        cfg = self.cfg
        fed = self._federation(images, splits, WithNewcomers(0.0, newcomers=cfg.newcomers))
        method = cfg.method(line, fed.net)
        for name in method.shared(fed.net):
            fed.net.get_parameter(name).requires_grad_(False)
        saved = saved and saved.with_name(f"{saved.stem}_own_first{saved.suffix}")
        how = dict(first_round=cfg.before, saved=saved)
        out = self._run(f"{line}, own first", fed, method, cfg.lr, cfg.own_first, start, **how)
        return out.layout.join(out.tensors["shared"][:, None], out.tensors["personal"])

    def _old(self) -> list:
        return [old_devices(self.cfg, self.images, seed) for seed in self.seeds]

    def _federation(self, images, splits, who) -> Federation:
        net = models.make(models.mlp_mnist, self.seeds[0])
        return Federation(images, splits, net, list(self.seeds), self.device, who)

    def _run(self, line: str, fed, method, lr, rounds, start: Tensor, **how) -> Outcome:
        """how: more arguments of `engine.run`."""
        training = LocalTraining(lr, self.cfg.batch_size)
        label = f"{SPLITS[self.cfg.classes]}, {who(self.seeds)}: {line}"
        return run(fed, method, training, rounds, start, label=label, **how, **self.engine)


class Rotated(Experiment):
    """FedAvg of the old devices ("before"), then each line, then each with other choices."""

    name, table = NAME, TABLE
    Settings, scales = Settings, SCALES
    stem, chooses = "{scale}-{classes}", frozenset({"classes", "lines", "vary", "usual"})

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        for name, (line, own) in cfg.cells.items():
            first = line == "before"
            folder = self.folder(own.first if first else own, seeds)
            yield Part(name, own.before if first else own.rounds, saved_at(folder, line))

    def pieces(self, protocol: str) -> list[Piece]:
        """A piece for each line of Table 3 and each split, what these go on from, and each other
        value of a line, which is no table's and decides no claim."""
        usual = [
            (line, "", dict(lines=(line,) if line in LINES else ())) for line in ("before", *LINES)
        ]
        others = [
            (line, f"{name}={value}", dict(lines=(line,), vary=(name,), usual=False))
            for name, values in VARIED.items()
            for line in LINES
            if matters(name, line)
            for value in values
        ]
        return [
            Piece(
                *(self.name, protocol, f"{line}:{choice}" if choice else line),
                changes=tuple((dict(classes=classes) | changes).items()),
                cell=tuple((ids(line, choice) | dict(classes_per_device=classes)).items()),
                after=("before",) if line in LINES else (),
                like=tuple(ids(line).items()),
            )
            for some in (usual, others)
            for classes in SPLITS
            for line, choice, changes in some
        ]

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        images, before = pictures(cfg), {}
        parts = self.parts(cfg, seeds, device)
        for part, (line, own) in zip(parts, cfg.cells.values(), strict=True):
            saved = folder and part.saved
            phases = Phases(own, images, seeds, device, engine)
            if line == "before":
                outcome = before[own.overlap] = phases.before(saved)
            else:
                outcome = phases.after(line, before[own.overlap], saved)
            yield part.name, outcome

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part: both sides at the end and before, in percent.

        Metrics begin with the split, as the table's columns do. Without another choice the way
        there is recorded as well, by round.
        """
        line, _, choice = part.partition(":")
        split, common = SPLITS[cfg.classes], dict(classes_per_device=cfg.classes, selection="last")
        end = percent(outcome.final.reset_index(), ["seed"])
        if line != "before":
            end["metric"] = split + "_" + end["metric"]
        end = end.assign(**common, **ids(line, choice))
        if line == "before" or choice or "round" not in outcome.history:
            return end
        way = percent(outcome.history, ["seed", "round"])
        return pd.concat([end, way.assign(**common, **ids(line) | dict(table=CURVES))])

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: method, finetune_fraction_C, choice, seed, round, metric, value in %."""
        lines = {part: some for part, some in histories.items() if part[:6] != "before"}
        return by_round(lines, lambda part: ids(*part.split(":")))


def ids(line: str, choice: str = "") -> dict:
    """The table and the columns that name the rows of a line, but for the split."""
    if line == "before":
        return dict(table=BEFORE, choice=choice)
    method, fraction = named(line)
    found = dict(table=CHOICES if choice else TABLE, method=method, finetune_fraction_C=fraction)
    return found | (dict(choice=choice) if choice else {})


ROTATED = Rotated()
