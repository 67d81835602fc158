"""Which layers should be shared? LG-FedAvg with every cut, from one FedAvg model; our own question.

100 rounds of LG-FedAvg start from one FedAvg model once for every cut: the last n layers shared,
n = 0 (each device fine-tunes) to 5 (FedAvg goes on), and the first n, n = 1 to 4. Devices, batches
and the FedAvg model are those of `mnist` and `cifar10`, whose checkpoints are read (or made): the
paper's own cut costs nothing where that experiment has run. Compare the cuts of a seed in pairs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pandas as pd

from lgfed_core import models
from lgfed_core.engine import Outcome
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers import differences, experiment
from lgfed_core.papers.parts import Part, percent, saved_at
from lgfed_core.papers.settings import FROM_0, Checked

from . import records as lgfedavg_rows, settings
from .cifar10 import CIFAR10
from .comparisons import WORDS
from .mnist import MNIST

NAME = "lgfedavg.layers"
TABLE = "lgfedavg_cuts"  # of our own: no paper prints it
SCALES = {  # changes to the data set's own scale: ten cuts must take no longer than its page
    "smoke": {},
    "quick": {
        "mnist": dict(devices=10, fraction=0.5, rows_per_class=(100, 30), shrink=0.03)
        | dict(budgets=(800,), starts=(800,)),
        "cifar10": dict(rows_per_class=(100, 20), shrink=0.02, budgets=(1200,), starts=(1200,)),
    },
    "paper": {},
}
TASKS = {"mnist": (MNIST, 800), "cifar10": (CIFAR10, 1200)}  # and the start
OUTPUTS = "new_test_acc_outputs"  # how new devices are served as described


@dataclass(frozen=True)
class Settings(Checked):
    """One data set and the cuts to try on it; the rest is the data set's own experiment."""

    data: str = "mnist"  # or "cifar10"
    classes: int = 2  # classes per device; 10 means i.i.d.
    budget: int | None = None  # FedAvg rounds before; None: 800 (MNIST), 1200 (CIFAR-10)
    last: tuple[int, ...] = (3, 0, 5, 1, 2, 4)  # how many layers to share next to the output, and
    first: tuple[int, ...] = (2, 3, 1, 4)  # next to the input; in the order they run

    RANGES: ClassVar = dict(last=FROM_0)
    CHOICES: ClassVar = dict(data=TASKS)
    EMPTY = frozenset({"last", "first"})

    def fits(self) -> None:
        super().fits()
        if self.start not in self.base.budgets:
            raise SettingsError(f"budget is {self.start}; FedAvg keeps {self.base.budgets}")
        layers = len(self.base.net().layers)
        if not (set(self.last) <= {*range(layers + 1)} and set(self.first) <= {*range(1, layers)}):
            raise SettingsError(
                f"last {self.last}, first {self.first}: of {layers} layers, the last 0 to {layers} "
                f"or the first 1 to {layers - 1} can be shared"
            )

    @property
    def base(self) -> settings.Settings:
        """The data set's own experiment, with the paper's cut."""
        changes = SCALES.get(self.scale, {}).get(self.data, {})
        own = TASKS[self.data][0]
        return own.settings(self.scale, self.protocol, classes=self.classes, **changes)

    @property
    def start(self) -> int:
        """FedAvg rounds before the cut, as the paper's rows name them."""
        return TASKS[self.data][1] if self.budget is None else self.budget

    def at_cut(self, side: str, n: int) -> settings.Settings:
        """`base` with the ``n`` layers of ``side`` shared."""
        return replace(self.base, shared_side=side, shared_layers=n)

    @property
    def cuts(self) -> list[tuple[str, int]]:
        """(side, layers shared) of each cut, in the order they run."""
        return [("last", n) for n in self.last] + [("first", n) for n in self.first]


class Layers(experiment.Experiment):
    """FedAvg ("start"), then LG-FedAvg from it with each cut ("last_3", ...)."""

    name, table = NAME, TABLE
    Settings, scales, protocols = Settings, SCALES, PROTOCOLS
    stem = "{data}-{scale}-{protocol}-{classes}"
    chooses = frozenset({"data", "classes", "budget", "last", "first"})  # all identify rows

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        return {}  # scales change the data set's own settings

    def at_cut(self, cfg: Settings, seeds, side: str, n: int) -> tuple[settings.Settings, Path]:
        """The settings with a cut, and the folder of its checkpoint."""
        own, base, changed = TASKS[cfg.data][0], cfg.base, cfg.at_cut(side, n)
        folder = own.folder(base, seeds)
        if changed != base:  # the paper's cut has its place in its own experiment
            folder = experiment.RUNS / NAME / f"{cfg.data}-{folder.name}" / f"{side}_{n}"
        return changed, folder

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        base, first = cfg.base, TASKS[cfg.data][0].folder(cfg.base, seeds)
        yield Part("start", base.fedavg_rounds, saved_at(first, "fedavg"))
        for side, n in cfg.cuts:
            changed, folder = self.at_cut(cfg, seeds, side, n)
            saved = saved_at(folder, f"lg_{cfg.start}")
            yield Part(f"{side}_{n}", changed.rounds(changed.lg_rounds), saved)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        own, base = TASKS[cfg.data][0], cfg.base
        start = own.start(base, seeds, device, folder and own.folder(base, seeds), engine)
        fedavg = start.fedavg()
        yield "start", fedavg
        for side, n in cfg.cuts:
            part, (changed, place) = f"{side}_{n}", self.at_cut(cfg, seeds, side, n)
            label = f"{start.label}, {part} shared"
            cut = replace(start, cfg=changed, folder=folder and place, label=label)
            yield part, cut.lg(fedavg, cfg.start)

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy result rows of one cut at both selections; see `records` for the columns.

        Accuracies in percent: local test, and new test by averaged weights, outputs, probabilities.
        Part "start" is FedAvg's model before the cut: one for everybody, so the three are equal.
        """
        side, _, n = part.partition("_")
        changed = cfg.base if side == "start" else cfg.at_cut(side, int(n))
        net = changed.net()
        if side == "start":
            n, shared, found = len(net.layers), models.count(net), _start(cfg, outcome)
        else:
            shared = models.count(net, changed.shared(net))
            found = lgfedavg_rows.rows(changed, f"lg_{cfg.start}", outcome, TABLE)
            found = found[found["metric"] != "new_test_acc"].drop(columns="method")
        size = found.drop_duplicates(["seed", "selection"])
        size = size.assign(metric="params_shared", value=shared)
        found = pd.concat([found, size], ignore_index=True)
        return found.assign(dataset=cfg.data, side=side, shared_layers=int(n))


def _start(cfg: Settings, outcome: Outcome) -> pd.DataFrame:
    """FedAvg's model at the start; as released its best on test so far, without a local test."""
    end, released = cfg.base.rounds(cfg.start), cfg.base.released
    history = outcome.history.reindex(columns=["seed", "round", "new_test_acc", "local_test_acc"])
    when = history["round"] <= end if released else history["round"] == end
    found = history[when].groupby("seed").max().reindex(outcome.final.index)
    tests = {f"new_test_acc_{way}": found["new_test_acc"] for way in lgfedavg_rows.NEW}
    tests |= {} if released else dict(local_test_acc=found["local_test_acc"])
    lines = percent(pd.DataFrame(tests).reset_index(), ["seed"])
    ids = dict(classes_per_device=cfg.classes, fedavg_rounds=cfg.start, lg_rounds=0)
    return lines.assign(selection="best_test" if released else "last", table=TABLE, **ids)


def chosen(data: str) -> tuple[str, int]:
    """(side, layers shared) of the paper."""
    own = TASKS[data][0].settings()
    return own.shared_side, own.shared_layers


def cell(
    rows: pd.DataFrame,
    data: str,
    selection: str = "best_val",
    scale: str = "paper",
    classes: int = 2,
    protocol: str = "as_described",
    start: int | None = None,
) -> pd.DataFrame:
    """One value per seed and cut: index (side, shared_layers, seed), a column per metric.

    rows: of `Layers.run` or `records.select`. start: FedAvg rounds before the cut; None: the data
    set's usual. The start's line ("start", 5) has no selection and is there for each. Empty when
    there is nothing of the kind.
    """
    start = TASKS[data][1] if start is None else start
    where = dict(table=TABLE, dataset=data, scale=scale, protocol=protocol)
    where |= dict(classes_per_device=classes, fedavg_rounds=start)
    rows = select(rows, columns=("side", "shared_layers"), **where)
    rows = rows[(rows["selection"] == selection) | (rows["side"] == "start")]
    return rows.pivot_table("value", ["side", "shared_layers", "seed"], "metric")


def by_cut(values: pd.DataFrame, metric: str = "local_test_acc") -> pd.DataFrame:
    """One number of `cell`: a line per seed, a column (side, shared_layers) per cut."""
    return values[metric].unstack(["side", "shared_layers"]) if metric in values else pd.DataFrame()


def sharing(values: pd.DataFrame, data: str, when: str = "best on validation rows") -> str:
    """The paper's cut minus each other one that has run, on both tests, from the same FedAvg model.

    values: of `cell`; when: their round or setting, in words.
    """
    own, pairs = chosen(data), []
    for metric, test in (("local_test_acc", "local test"), (OUTPUTS, "new test")):
        wide = by_cut(values, metric)
        for side, n in wide if own in wide else ():
            words = {0: "none shared", 5: "all shared"}.get(n, f"the {side} {n} layers shared")
            if side != "start" and (side, n) != own:
                pairs.append((f"{test}, {words}", wide[own], wide[side, n]))
    return differences.table(f"{WORDS[data]}: points ahead of the other cuts, {when}", pairs)


LAYERS = Layers()
