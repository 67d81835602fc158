"""Personal mood from what people type: Figure 2d of Liang et al. 2020 (v2, 5.3, appendix C.3).

Each person is a device. A Bi-LSTM with an MLP reads a text and says which of five moods it goes
with. Of its five layers LG-FedAvg shares alpha = 0 (local only), .2, .4, .6, .8 or 1 (FedAvg). Of
five restarts on a split the best on validation rows is tested. There is no code, and the study is
private: chats (`texts`) and made-up texts (`made_up`) stand in.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models
from lgfed_core.data import Dataset, Split
from lgfed_core.engine import CPU, Federation, Outcome, run
from lgfed_core.engine.accuracy import pooled_accuracy
from lgfed_core.engine.trackers import Tracker
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Piece, percent, saved_at, who

from ..records import by_round
from .settings import OWN, SCALES, SLOWER, SOURCES, Settings
from .texts import LABELS, split, vocabulary

NAME = "lgfedavg.mood"
TABLE = "lgfedavg_figure2d_mood"
CURVES = "lgfedavg_mood_curves"  # a table of ours: the same by round
BEST = ("best_validation", "best_test", "best_round")  # what `Watch` keeps of a run


def federation(
    cfg: Settings, source: str, seeds: Sequence[int], device: torch.device = CPU
) -> tuple[Federation, Tensor]:
    """``cfg.restarts`` runs of each seed, side by side, and their first parameters [R, P].

    All texts are rows of one set, those of one seed behind those of another; a run's partition
    points to its own. Restarts differ in their first weights.
    """
    found = [cfg.texts(source, seed) for seed in seeds]
    words = vocabulary(found[0], cfg.words)  # the same for all seeds
    x = words.encoded([text for texts in found for text in texts.words], cfg.words)
    label = torch.from_numpy(np.concatenate([texts.label for texts in found]))
    before = np.cumsum([0, *map(len, found)])
    runs, parts, nets = [], [], []
    for seed, texts, at in zip(seeds, found, before[:-1], strict=True):
        runs += [seed] * cfg.restarts
        parts += [split(texts, seed, at)] * cfg.restarts
        nets += [models.make(cfg.net(texts), 1000 * seed + i) for i in range(cfg.restarts)]
    data = Dataset(found[0].title, Split(x, label), Split(x, label), classes=LABELS)
    fed = Federation(data, parts, nets[0], runs, device)
    return fed, torch.stack([joined(net) for net in nets])


class Watch(Tracker):
    """Accuracy on all validation rows and all test rows, each through its person's own model.

    Keeps the best on validation rows with its round and its accuracy on test rows: the first of
    equally good ones. Models do not outlive the run.
    """

    def allocate(self, allocate, phase):
        for name in BEST:
            allocate(name, len(phase.seeds), here=True).fill_(-1)

    def look(self, round, engine):
        t, found = engine.phase.tensors, self._now(engine)
        judged = found["validation_acc"].to(t["best_validation"])
        better = judged > t["best_validation"]
        t["best_validation"][better] = judged[better]
        t["best_test"][better] = found["test_acc"].to(judged)[better]
        t["best_round"][better] = round
        return found

    def final(self, engine):
        return self._now(engine) | {name: engine.phase.tensors[name] for name in BEST}

    def lasts(self, name):
        return name in BEST

    def _now(self, engine) -> dict[str, Tensor]:
        return {
            f"{rows}_acc": pooled_accuracy(engine, "shared", "personal", rows)
            for rows in ("validation", "test")
        }


class Mood(Experiment):
    """``chats:0.2`` and so on: one source and one alpha, all restarts side by side."""

    name, table = NAME, TABLE
    Settings, scales = Settings, SCALES
    shared = frozenset({"sources", "alphas"})
    chooses = shared | {"restarts", "lr", "file"}  # rows say these
    federation = staticmethod(federation)

    def rounds(self, cfg) -> dict[str, int]:
        return dict.fromkeys(cfg.cells, cfg.rounds)

    def pieces(self, protocol: str) -> list[Piece]:
        """A piece for each source and alpha; those of chats at the smaller rate too.

        Runs of another rate have a folder of their own, so that nothing joins the two.
        """
        usual = self.settings("paper", protocol)
        slower = self.settings("paper", protocol, sources=("chats",), lr=SLOWER)
        return [
            Piece(
                *(self.name, protocol, name),
                changes=(("sources", (source,)), ("alphas", (alpha,)), *rate),
                cell=tuple(ids(source, alpha, cfg.lr).items()),
                like=(("table", TABLE),),
            )
            for cfg, rate in ((usual, ()), (slower, (("lr", SLOWER),)))
            for name, (source, alpha) in cfg.cells.items()
        ]

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        # all of them are read, and a wrong file refused, before anything trains
        federations = {source: federation(cfg, source, seeds, device) for source in cfg.sources}
        for name, (source, alpha) in cfg.cells.items():
            fed, start = federations[source]
            how = fed, cfg.method(alpha, fed.net), cfg.training, cfg.rounds, start
            label = f"{who(seeds)}, {source}: alpha {alpha:g}"
            more = dict(saved=saved_at(folder, name), label=label) | engine
            yield name, run(*how, tracker=Watch(), **more)

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part, in percent.

        best_val: of each seed the restart and the round that are best on validation rows. last: the
        mean over restarts after the last round, where nothing is selected; and that by round.
        """
        line = ids(*cfg.cells[part], cfg.lr, cfg.file)
        ends = outcome.final.reset_index()
        ends["restart"] = ends.groupby("seed").cumcount()
        names = dict(zip(BEST, ("validation_acc", "test_acc", "round"), strict=True))
        best = ends.loc[ends.groupby("seed")["best_validation"].idxmax()]
        best = best[["seed", "restart", *names]].rename(columns=names)
        last = ends.groupby("seed")[["validation_acc", "test_acc"]].mean().reset_index()
        found = [
            percent(best, ["seed"]).assign(selection="best_val", **line),
            percent(last, ["seed"]).assign(selection="last", **line),
        ]
        if "test_acc" in outcome.history:
            curve = line | dict(table=CURVES, selection="last")
            found.append(percent(_mean(outcome.history), ["seed", "round"]).assign(**curve))
        return pd.concat(found, ignore_index=True)

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: stand_in, alpha, seed, round, metric, value (mean over restarts, %)."""
        means = {part: _mean(history) for part, history in histories.items() if len(history)}
        return by_round(means, lambda part: ids(*cfg.cells[part], cfg.lr, cfg.file))


def ids(source: str, alpha: float, lr: float = Settings.lr, file: str = "") -> dict:
    """The table and the columns that name the rows of a part; file: one's own."""
    title = f"one's own file {Path(file).name}" if source == OWN else SOURCES[source]
    return dict(table=TABLE, stand_in=title, alpha=alpha, lr=lr)


def _mean(history: pd.DataFrame) -> pd.DataFrame:
    """The mean over restarts: a line per seed and round."""
    means = history.groupby(["seed", "round"])[["validation_acc", "test_acc"]].mean()
    return means.reset_index()


MOOD = Mood()
