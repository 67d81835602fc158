"""FADE on objects with non-i.i.d. users: Table 1 of Hong et al. (KDD 2021), section 5.2.

One user has the source domain with its labels, three share the target without. The model is
pre-trained on the source; then DANN, CDAN, SHOT, DANN+SHOT and CDAN+SHOT adapt it, federated (two
of four users a round) and, as a reference, centrally. At *feature level*: a frozen backbone, and
bottleneck, classifier and discriminator that learn.

`as_described`: 20 of 31 classes a user, CDAN's weights weigh, SHOT's parameters are its own.
`as_released`: 15 classes, weights that cancel, no information maximisation, pseudo-labels at 0.1.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods.cdan import CDAN, ENTROPY
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.fade import DISCRIMINATOR
from lgfed_core.methods.schedules import Annealing
from lgfed_core.methods.shot import CDANSHOT, SHOT
from lgfed_core.models.layout import Layout, joined, values
from lgfed_core.models.objects import CONDITIONAL, ObjectsNet
from lgfed_core.papers.experiment import Experiment, Part, following
from lgfed_core.papers.settings import FROM_0, REST, Checked, Range

from . import domains
from .adaptation import Users

NAME = "fade.objects"
PRINTED = "fade_table1_office"
TABLE = "fade_objects"  # cells that the paper does not print, and further measures of all
CURVES = "fade_objects_curves"  # accuracy of each user by round
METHODS = {"dann": DANN, "cdan": CDAN, "shot": SHOT, "dann+shot": SHOT, "cdan+shot": CDANSHOT}
FEDERATED = {"dann": "fade_dann", "cdan": "fade_cdan", "shot": "fedavg_shot"}  # as printed
USERS = ("noniid", "noniid15", "iid")
COLLAPSED = 0.5  # a run has collapsed if it ends below this share of the accuracy it began with
PRETRAINING_STEPS, PRETRAINING_ROWS = 38, 64  # of a round, of a batch
BACKBONES = ("resnet50", "inception_v3", "mobilenet_v2")
SCALES = {
    "smoke": dict(
        data="digits",
        tasks=("M->U",),
        users=("noniid",),
        noniid=6,
        components=10,
        pretraining=4,
        rounds=4,
        looks=2,
        methods=("cdan", "dann+shot"),
        central_methods=("shot",),
    ),
    "quick": dict(
        data="digits",
        tasks=("U->M",),
        users=("noniid",),
        noniid=6,
        components=128,
        pretraining=40,
        rounds=60,
        looks=6,
        central_methods=("cdan", "shot"),
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values; where it gives none, those of the released code."""

    data: str = "office31"
    backbone: str = "inception_v3"
    components: int = 256  # principal ones of the features
    tasks: tuple[str, ...] = domains.TASKS["office31"]
    users: tuple[str, ...] = USERS
    noniid: int = 20  # classes of a user where users are "noniid"
    methods: tuple[str, ...] = tuple(METHODS)
    central_methods: tuple[str, ...] = tuple(METHODS)
    per_round: tuple[int, ...] = (2,)  # users that take part in a round
    target_users: int = 3
    pretraining: int = 25  # rounds on the source alone
    rounds: int = 100
    steps: int = 10  # of a round, divided among its users
    batch_size: int = 32
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.001
    beta: float = 0.5
    weight: float = 1.0  # of the adversarial loss
    smoothing: float = 0.1
    dropout: float = 0.5
    conditional: str = "mixed"
    entropy: str = "weighs"
    information: float = 1.0
    relabelled: float = 0.3
    least: int = 0
    looks: int = 10  # measurements on the way

    RANGES: ClassVar = dict(smoothing=REST, relabelled=Range(0), least=FROM_0)
    CHOICES: ClassVar = dict(scale=SCALES, data=domains.TASKS, backbone=BACKBONES, users=USERS)
    CHOICES |= dict(methods=METHODS, central_methods=METHODS)
    CHOICES |= dict(conditional=CONDITIONAL, entropy=ENTROPY)
    EMPTY = frozenset({"methods", "central_methods"})

    def fits(self) -> None:
        super().fits()
        if unknown := set(self.tasks) - set(known := domains.TASKS[self.data]):
            raise SettingsError(f"tasks has {sorted(unknown)}; there are {', '.join(known)}")
        if wrong := [m for m in self.per_round if m > 1 + self.target_users]:
            raise SettingsError(
                f"per_round has {wrong}; from 1 to {1 + self.target_users} users take part"
            )

        n, stride = domains.classes(self.data), domains.STRIDES[self.data]
        for kind in self.users:
            each = self.classes(kind, n)
            owned = domains.classes_of(self.target_users, n, each, stride)
            if nobodys := n - len({c for mine in owned for c in mine.tolist()}):
                raise SettingsError(
                    f"users has {kind}: with target_users {self.target_users} and {each} classes "
                    f"each (noniid is {self.noniid}), {nobodys} of the {n} classes of data "
                    f"{self.data} belong to nobody; raise one of them"
                )

    def classes(self, users: str, classes: int) -> int:
        """How many of all ``classes`` a target user has."""
        return {"noniid": self.noniid, "noniid15": 15, "iid": classes}[users]

    @property
    def central_rounds(self) -> int:
        """Central steps, of a batch of each domain: as many batches as in a federated run."""
        return max(1, self.rounds * self.steps // 2)

    @property
    def games(self) -> list[tuple[str, int]]:
        """(method, how many users a round) of each federated part of a task."""
        return [(method, many) for many in self.per_round for method in self.methods]

    @property
    def bottlenecks(self) -> list[str]:
        """Those that the methods need; "relu" in any case."""
        wanted = {bottleneck(m) for m in (*self.methods, *self.central_methods)}
        return [kind for kind in ("relu", "norm") if kind == "relu" or kind in wanted]


def bottleneck(method: str) -> str:
    """The bottleneck of a method, as released: SHOT has batch normalisation."""
    return "norm" if "shot" in method else "relu"


@lru_cache(maxsize=2)
def loaded(data: str, task: str, backbone: str, components: int) -> domains.Task:
    """`domains.load`, kept for the parts that follow."""
    return domains.load(data, task, backbone, components)


@dataclass(frozen=True)
class Parts:
    """The parts of one task, with the seeds that train together and their checkpoints."""

    cfg: Settings
    task: str
    seeds: Sequence[int]
    device: torch.device = CPU
    folder: Path | None = None
    engine: dict = field(default_factory=dict)

    @property
    def both(self) -> domains.Task:
        cfg = self.cfg
        return loaded(cfg.data, self.task, cfg.backbone, cfg.components)

    def federation(self, method: str, who: Participation, users: Sequence[str] = ()):
        """A run per seed and kind of ``users``, a seed's together, and first parameters [R, P].

        Without ``users`` the target is a single device's.
        """
        cfg, both = self.cfg, self.both
        classes, width = both.data.classes, both.data.train.x.shape[1]
        many = [(cfg.target_users, cfg.classes(kind, classes)) for kind in users]
        stride = domains.STRIDES[cfg.data]

        def build() -> ObjectsNet:
            seen = cfg.conditional if "cdan" in method else ""
            return ObjectsNet(width, classes, seen, bottleneck(method), cfg.dropout)

        nets = [models.make(build, seed) for seed in self.seeds]
        lanes = [
            (net, seed, one)
            for net, seed in zip(nets, self.seeds, strict=True)
            for one in many or [(1, classes)]
        ]
        held = [domains.partition(both, *one, stride, seed) for _, seed, one in lanes]
        runs = [seed for _, seed, _ in lanes]
        fed = Federation(both.data, held, nets[0], runs, self.device, who)
        return fed, torch.stack([joined(net) for net, _, _ in lanes])

    def pretraining(self, kind: str) -> Outcome:
        """The source alone, with the ``kind`` of bottleneck."""
        cfg, rows = self.cfg, self.both.sources
        alone = _drawn([1.0, 0.0], len(self.seeds))
        fed, start = self.federation("shot" if kind == "norm" else "dann", alone)
        method = DANN(opt_out=1.0, beta=1.0, batch_norm="averaged", smoothing=cfg.smoothing)
        batches = min(PRETRAINING_STEPS, max(1, rows // PRETRAINING_ROWS))  # whole ones
        passes = -(-PRETRAINING_STEPS // batches)
        training = self.training(
            batch_size=PRETRAINING_ROWS,
            batches=batches,
            epochs=passes,
            annealing=Annealing(cfg.pretraining * passes * batches),
        )
        return self.run(f"pretraining_{kind}", fed, method, training, cfg.pretraining, start)

    def game(self, before: Outcome, method: str, per_round: int) -> Outcome:
        """FADE with ``method`` from the pre-trained model, a run for each kind of users."""
        cfg = self.cfg
        who = Participation(per_round / (1 + cfg.target_users))
        fed, start = self.federation(method, who, cfg.users)
        steps = max(1, cfg.steps // per_round)
        training = self.training(batches=steps, annealing=Annealing(cfg.rounds * steps))
        plays = self.method(method, cfg.rounds, beta=cfg.beta)
        name = f"{method}_{per_round}"
        return self.run(name, fed, plays, training, cfg.rounds, self.taken(before, start, fed))

    def central(self, before: Outcome, method: str) -> Outcome:
        """Both domains in every step: what a server with all data would do. As many batches.

        A step of each device on its own batch, and their plain average, is one step on the mean of
        both losses; a doubled rate makes it their sum. The adversarial loss counts half on either
        side. SHOT has the target alone. Batch normalisation sees each domain by itself.
        """
        cfg, alone = self.cfg, method == "shot"
        who = _drawn([0.0, 1.0], len(self.seeds)) if alone else Participation()
        fed, start = self.federation(method, who)
        rounds, times = cfg.central_rounds, 1 if alone else 2
        training = self.training(
            lr=times * cfg.lr,
            weight_decay=cfg.weight_decay / times,
            batches=1,
            annealing=Annealing(rounds),
        )
        plays = self.method(
            method, rounds, beta=1.0, weighted=False, batch_norm="local", weight=cfg.weight / 2
        )
        start = self.taken(before, start, fed)
        return self.run(f"central_{method}", fed, plays, training, rounds, start)

    def method(self, name: str, rounds: int, **more) -> DANN:
        """The method called ``name``, for so many rounds."""
        cfg, own = self.cfg, {}
        if "shot" in name:
            own = dict(information=cfg.information, relabelled=cfg.relabelled, least=cfg.least)
            own |= dict(every=max(1, rounds // 15), opt_out=float(name == "shot"))
        if "cdan" in name:
            own |= dict(entropy=cfg.entropy)
        usual = dict(rounds=rounds, weight=cfg.weight, smoothing=cfg.smoothing)
        return METHODS[name](**(usual | dict(start=cfg.pretraining) | own | more))

    def taken(self, before: Outcome, start: Tensor, fed: Federation) -> Tensor:
        """``start`` [R, P] with all that the pre-trained model has, but D."""
        t = before.tensors
        times = len(start) // len(self.seeds)  # a seed's runs start alike
        ends = (v.repeat_interleave(times, 0) for v in (t["shared"], t["personal"][:, 0]))
        trained = before.layout.views(*ends)
        names = [name for name, _ in values(fed.net)]
        fresh = Layout(fed.net, names).views(start, start[:, :0])
        own = [(fresh if n.startswith(DISCRIMINATOR) else trained)[n].flatten(1) for n in names]
        return torch.cat(own, 1)

    def training(self, **more) -> LocalTraining:
        cfg = self.cfg
        usual = dict(
            lr=cfg.lr,
            batch_size=cfg.batch_size,
            momentum=cfg.momentum,
            weight_decay=cfg.weight_decay,
            keep_momentum=True,
            nesterov=True,
        )
        return LocalTraining(**(usual | more))

    def run(self, name, fed, method, training, rounds, start) -> Outcome:
        saved = self.folder / _file(self.task, name) if self.folder else None
        return run(
            fed,
            method,
            training,
            rounds,
            start,
            first_round=0 if name.startswith("pretraining") else self.cfg.pretraining,
            saved=saved,
            tracker=Users(max(1, rounds // self.cfg.looks)),
            label=f"seed {self.seeds[0]}, {self.task}: {name}",
            **self.engine,
        )


def _drawn(availability: list[float], runs: int) -> Participation:
    """One device a round, with these probabilities in every run."""
    there = torch.tensor([availability], dtype=torch.double)
    return Participation(1 / len(availability), there.repeat(runs, 1))


def _file(task: str, name: str) -> str:
    return f"{task.replace('->', '-')}_{name}.safetensors"


class Objects(Experiment):
    """The parts of each task: ``A->D:pretraining_relu``, ``A->D:noniid_cdan_2``, ..."""

    name, table = NAME, PRINTED
    Settings, scales = Settings, SCALES
    released: ClassVar[dict] = dict(
        noniid=15, conditional="whole", entropy="cancels", information=0.0, relabelled=0.1, least=10
    )
    chooses = frozenset(
        {"data", "backbone", "tasks", "users", "methods", "central_methods", "per_round", "rounds"}
    )

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        """Another set brings its own tasks, and how many classes its users have."""
        found = super().usual(scale, protocol, changes)
        if "data" in changes and changes["data"] in domains.TASKS:
            data = changes["data"]
            found |= dict(tasks=domains.TASKS[data], noniid=domains.NONIID.get(data, 20))
            if data != "office31":  # the released sweeps' 15 classes are of its 31
                found["users"] = tuple(u for u in found.get("users", USERS) if u != "noniid15")
        return found

    def names(self, cfg: Settings) -> dict[str, int]:
        """The parts of a task, in order, and how many rounds each trains."""
        found = {f"pretraining_{kind}": cfg.pretraining for kind in cfg.bottlenecks}
        found |= {f"central_{m}": cfg.central_rounds for m in cfg.central_methods}
        return found | {"_".join(map(str, game)): cfg.rounds for game in cfg.games}

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        folder = self.folder(cfg, seeds)
        for task in cfg.tasks:
            for name, rounds in self.names(cfg).items():
                yield Part(f"{task}:{name}", rounds, folder / _file(task, name))

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        for task in cfg.tasks:
            parts, before = Parts(cfg, task, seeds, device, folder, engine), {}
            for name in self.names(cfg):
                kind, what = name.split("_")
                if kind == "pretraining":
                    outcome = before[what] = parts.pretraining(what)
                elif kind == "central":
                    start = before[bottleneck(what)]
                    outcome = following(start, parts.central(start, what))
                else:
                    start = before[bottleneck(kind)]
                    outcome = following(start, parts.game(start, kind, int(what)))
                yield f"{task}:{name}", outcome

    def places(self, cfg) -> tuple[str, Iterable[str]]:
        start = f"{cfg.data}-{cfg.backbone}-{cfg.scale}-{cfg.protocol}"
        return start, self.chooses - {"users", "rounds"}  # these change what is trained

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """Tidy rows of one part: the last round, the round of most information, and the way.

        Accuracies in percent, ``information`` in nats. ``oracle_acc`` is the best accuracy on the
        target at any look: what a choice with the target's labels would give.
        """
        task, name = part.split(":")
        found = pd.concat(
            [self._cell(cfg, cell, history) for cell, history in _cells(cfg, name, outcome)]
        )
        return found.assign(
            data=cfg.data,
            task=task,
            backbone=cfg.backbone if cfg.data != "digits" else "gradients",
            rounds=None if cfg.rounds == Settings.rounds else cfg.rounds,
            stand_in=loaded(cfg.data, task, cfg.backbone, cfg.components).stand_in,
        )

    def _cell(self, cfg: Settings, cell: dict, history: pd.DataFrame) -> pd.DataFrame:
        """The rows of one cell, by its curves."""
        table = PRINTED if _printed(cfg, cell) else TABLE
        last = history[history["round"] == history["round"].max()]
        best = history.loc[history.groupby("seed")["information"].idxmax()]
        oracle = history.groupby("seed", as_index=False)["target_acc"].max()
        rows = [
            _long(last[["seed", "target_acc"]], table, "last"),
            _long(best[["seed", "target_acc"]], table, "best_val"),
            _long(last.drop(columns=["round", "target_acc"]), TABLE, "last"),
            _long(oracle.rename(columns={"target_acc": "oracle_acc"}), TABLE, "last"),
        ]
        if cfg.protocol == "as_released":
            rows.append(_long(oracle, table, "best_test"))
        if cell["target_users"] == "noniid" and cell["per_round"] == 2:
            way = [c for c in history if c.startswith("user")]
            rows.append(_long(history[["seed", "round", *way]], CURVES, "last"))
        return pd.concat(rows, ignore_index=True).assign(**cell)

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: task, the columns of a cell, seed, round, metric, value."""
        out = [
            _long(mine, CURVES, "last").assign(task=part.split(":")[0], **cell)
            for part, history in histories.items()
            for cell, mine in _by_cell(cfg, part.split(":")[1], history)
            if len(history) and ":pretraining" not in part
        ]
        return pd.concat(out, ignore_index=True) if out else pd.DataFrame()


def _cells(cfg: Settings, name: str, outcome: Outcome) -> list[tuple[dict, pd.DataFrame]]:
    """The columns of each cell of the part ``name``, and its history."""
    history = outcome.history
    if history.empty:  # all runs ended before the first look
        history = pd.DataFrame({"round": 1, "seed": outcome.final.index})
        history = history.assign(target_acc=0.0, information=0.0)
    return _by_cell(cfg, name, history)


def _by_cell(cfg: Settings, name: str, history: pd.DataFrame) -> list[tuple[dict, pd.DataFrame]]:
    """Columns method, setting, target_users and per_round of each cell, with its lines."""
    kind, what = name.split("_")
    if kind in ("pretraining", "central"):
        method = {"relu": "source_only", "norm": "source_only_norm"}.get(what, what)
        setting = "central" if kind == "central" else "federated"
        return [(dict(method=method, setting=setting, target_users="", per_round=None), history)]
    cell = dict(method=FEDERATED.get(kind, kind), setting="federated", per_round=int(what))
    if history.empty:
        return []
    at = history.groupby(["round", "seed"]).cumcount()  # a seed's runs are in the order of users
    return [(cell | dict(target_users=u), history[at == i]) for i, u in enumerate(cfg.users)]


def _printed(cfg: Settings, cell: dict) -> bool:
    """Whether the paper's Table 1 has this cell."""
    return (
        cfg.data in ("office31", "officehome")
        and cfg.backbone != "mobilenet_v2"
        and cfg.rounds == Settings.rounds
        and cell["per_round"] in (None, 2)
        and cell["target_users"] != "noniid15"
        and cell["method"] in ("source_only", "dann", "cdan", "shot", *FEDERATED.values())
    )


def _long(wide: pd.DataFrame, table: str, selection: str) -> pd.DataFrame:
    """A row per metric; accuracies in percent."""
    keys = [c for c in ("seed", "round") if c in wide]
    long = wide.melt(keys, var_name="metric").assign(table=table, selection=selection)
    percent = long["metric"].str.endswith("_acc")
    return long.assign(value=long["value"].where(~percent, 100 * long["value"]))


OBJECTS = Objects()
