"""FADE on objects with non-i.i.d. users: Table 1 of Hong et al. (KDD 2021), section 5.2.

One user has the source domain with its labels, three share the target without. The model is
pre-trained on the source; then DANN, CDAN, SHOT, DANN+SHOT and CDAN+SHOT adapt it, federated (two
of four users a round) and, as a reference, centrally. At *feature level*: a frozen backbone, and
bottleneck, classifier and discriminator that learn.

`as_described`: 20 of 31 classes a user, CDAN's weights weigh, SHOT's parameters are its own.
`as_released`: 15 classes, weights that cancel, no information maximisation, pseudo-labels at 0.1.
"""

from typing import ClassVar

import pandas as pd

from lgfed_core.engine import Outcome
from lgfed_core.evidence.records import select
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers.commands import again

from ..parts import Tasks, by_metric, looks
from . import domains
from .adaptation import Parts
from .domains import METHODS, SCALES, USERS, Settings, bottleneck

NAME = "fade.objects"
PRINTED = "fade_table1_office"
TABLE = "fade_objects"  # cells that the paper does not print, and further measures of all
CURVES = "fade_objects_curves"  # accuracy of each user by round
FEDERATED = {"dann": "fade_dann", "cdan": "fade_cdan", "shot": "fedavg_shot"}  # as printed
# The source's model by bottleneck, and the central line, reprinted from others, that it stands for:
# "ResNet" has DANN's network, "source only" is SHOT's own
PRETRAINED = {
    "relu": (("source_only", "federated"), ("resnet", "central")),
    "norm": (("source_only_norm", "federated"), ("source_only", "central")),
}
TRIED = ("rounds", "lr", "weight")  # settings of which rows name other values than the usual
COLLAPSED = 0.5  # a run has collapsed if it ends below this share of the accuracy it began with


class Objects(Tasks):
    """The parts of each task: ``A->D:pretraining_relu``, ``A->D:noniid_cdan_2``, ..."""

    name, table, over = NAME, PRINTED, "tasks"
    Settings, scales, protocols, Parts = Settings, SCALES, PROTOCOLS, Parts
    released: ClassVar[dict] = dict(
        noniid=15, conditional="whole", entropy="cancels", information=0.0, relabelled=0.1, least=10
    )
    stem = "{data}-{backbone}-{scale}-{protocol}"
    shared = frozenset({"data", "backbone", "tasks", "methods", "central_methods", "per_round"})
    chooses = shared | {"users", *TRIED}  # these change what is trained

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        """Another set brings its own tasks, and how many classes its users have."""
        found = super().usual(scale, protocol, changes)
        if "data" in changes and changes["data"] in domains.TASKS:
            data = changes["data"]
            found |= dict(tasks=domains.TASKS[data], noniid=domains.NONIID.get(data, 20))
            if data != "office31":  # the released sweeps' 15 classes are of its 31
                found["users"] = tuple(u for u in found.get("users", USERS) if u != "noniid15")
            found["per_round"] = domains.PER_ROUND.get(data, Settings.per_round)
        return found

    def names(self, cfg: Settings) -> dict[str, int]:
        wanted = {"relu", *map(bottleneck, (*cfg.methods, *cfg.central_methods))}
        found = {f"pretraining_{kind}": cfg.pretraining for kind in PRETRAINED if kind in wanted}
        found |= {f"central_{m}": cfg.central_rounds for m in cfg.central_methods}
        return found | {f"{m}_{n}": cfg.rounds for n in cfg.per_round for m in cfg.methods}

    def remade(self, rows: pd.DataFrame) -> list[str]:
        """The federated and central games at the usual and at other rounds, rates, weights and
        numbers of users a round, on each set; the shortest first."""
        own = rows.columns.union([*TRIED, "round"])  # none is stored before a row has one
        found = stored_names(rows.reindex(columns=own))
        mine = select(found, selection="last", metric="target_acc", round="", method=METHODS)
        mine = mine.fillna(dict.fromkeys((*TRIED, "per_round"), 0))
        by, same = ["protocol", "data", "backbone", *TRIED, "target_users", "per_round"], {}
        for at, runs in mine.groupby(by, sort=False):
            *setting, users, many = at
            methods = tuple(m for m in METHODS if m in set(runs["method"]))
            known = domains.TASKS[runs["data"].iloc[0]]
            tasks = tuple(t for t in known if t in set(runs["task"]))
            some = () if tasks == known else tasks
            key = (*setting, many, methods, runs["seed"].nunique(), some)
            same.setdefault(key, []).append(users)
        said = {_again(*key, tuple(users)) for key, users in same.items()}
        return sorted(said, key=lambda command: (len(command), command))

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """Tidy rows of one part: the last round, the round of most information, and the way.

        Accuracies in percent, ``information`` in nats. ``oracle_acc`` is the best accuracy on the
        target at any look: what a choice with the target's labels would give.
        """
        task, name = part.split(":")
        history = looks(outcome, "target_acc", "information")
        found = [self._cell(cfg, cell, mine) for cell, mine in _by_cell(cfg, name, history)]
        return pd.concat(found).assign(
            data=cfg.data,
            task=task,
            backbone=cfg.backbone if cfg.data != "digits" else "gradients",
            **{n: None if (v := getattr(cfg, n)) == getattr(Settings, n) else v for n in TRIED},
            stand_in=domains.load(cfg.data, task, cfg.backbone, cfg.components).stand_in,
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
        if cfg.released:
            rows.append(_long(oracle, table, "best_test"))
        own = _usual(cfg) and cfg.data == Settings.data  # of which the page draws each user's way
        if own and cell["target_users"] == "noniid" and cell["per_round"] == 2:
            way = [c for c in history if c.startswith("user")]
            rows.append(_long(history[["seed", "round", *way]], CURVES, "last"))
        return pd.concat(rows, ignore_index=True).assign(**cell)


def _by_cell(cfg: Settings, name: str, history: pd.DataFrame) -> list[tuple[dict, pd.DataFrame]]:
    """Columns method, setting, target_users and per_round of each cell, with its lines."""
    kind, what = name.split("_")
    if kind in ("pretraining", "central"):
        lines = PRETRAINED[what] if kind == "pretraining" else ((what, "central"),)
        cells = (dict(method=method, setting=setting) for method, setting in lines)
        return [(cell | dict(target_users="", per_round=None), history) for cell in cells]
    cell = dict(method=FEDERATED.get(kind, kind), setting="federated", per_round=int(what))
    at = history.groupby(["round", "seed"]).cumcount()  # a seed's runs are in the order of users
    return [(cell | dict(target_users=u), history[at == i]) for i, u in enumerate(cfg.users)]


def stored_names(rows: pd.DataFrame) -> pd.DataFrame:
    """Stored ``rows`` with methods by their plain names, as settings call them."""
    plain = {printed: name for name, printed in FEDERATED.items()}
    return rows.assign(method=rows["method"].replace(plain))


def _again(protocol, data, backbone, rounds, lr, weight, many, methods, seeds, tasks, users) -> str:
    """One of `Objects.remade`; a value of 0 is the usual one, and a central game has no user."""
    own = dict(data=data, backbone=backbone, rounds=int(rounds), lr=lr, weight=weight)
    own |= dict(backbone="") if data == "digits" else {}  # these have gradients, and no choice
    changes = [(name, v) for name, v in own.items() if v and v != getattr(Settings, name)]
    changes += [("tasks", tasks)] if tasks else []
    if not many:
        changes += [("methods", ()), ("central_methods", methods)]
    else:
        changes += [("users", users), ("methods", methods), ("central_methods", ())]
        usual = domains.PER_ROUND.get(data, Settings.per_round)
        changes += [("per_round", (int(many),))] if (many,) != usual else []
    return again(NAME, protocol, changes, seeds, least=1)


def _usual(cfg: Settings) -> bool:
    return all(getattr(cfg, n) == getattr(Settings, n) for n in TRIED)


def _printed(cfg: Settings, cell: dict) -> bool:
    """Whether the paper's Table 1 has this cell."""
    return (
        cfg.data in ("office31", "officehome")
        and not cfg.backbone.startswith("mobilenet_v2")
        and _usual(cfg)
        and cell["per_round"] in (None, 2)
        and cell["target_users"] != "noniid15"
        and cell["method"] in ("resnet", "source_only", "dann", "cdan", "shot", *FEDERATED.values())
    )


def _long(wide: pd.DataFrame, table: str, selection: str) -> pd.DataFrame:
    return by_metric(wide).assign(table=table, selection=selection)


OBJECTS = Objects()
