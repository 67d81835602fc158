"""How a model adapts to target users: what each part trains, and what is followed on the way."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lgfed_core.data.features.objects import BACKBONES, upper_blocks
from lgfed_core.engine import Federation, Outcome, Participation
from lgfed_core.methods import Batch
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.fade import DISCRIMINATOR
from lgfed_core.methods.schedules import Annealing
from lgfed_core.methods.shot import information
from lgfed_core.models.layout import Layout, values
from lgfed_core.models.objects import ObjectsNet
from lgfed_core.models.upper_blocks import UpperBlocks

from .. import parts
from . import domains
from .domains import METHODS, bottleneck

PRETRAINING_STEPS, PRETRAINING_ROWS = 38, 64  # of a round, of a batch


class Users(parts.Each):
    """Accuracy and information on each device's own test rows, every so many rounds.

    Device 0 is the source. Metrics: ``source_acc``; ``target_acc``, over all target rows;
    ``user1_acc``, ... of each target user (shares); ``information``, nats: H(mean p) - mean H(p) of
    a user's predictions p, mean over target rows. It is computed without labels, so that it may
    choose a model; it is 0 where a user's rows all look alike, or are all unsure.
    """

    def each(self, engine):
        split, per_run = engine.phase.rows["test"]
        said = engine.own_outputs("shared", "personal", "test")  # [R, K, n_max, C]
        for r, rows in enumerate(per_run):
            right, told, size = (np.zeros(len(rows)) for _ in range(3))
            for k in range(len(rows)):
                mine = rows.of(k)
                outputs, y = said[r, k, : len(mine)], split.y[mine]
                right[k], size[k] = float((outputs.argmax(-1) == y).float().mean()), len(mine)
                told[k] = -float(information(outputs, Batch(outputs, y)))
            weight = size[1:] / size[1:].sum()
            found = {"source_acc": right[0], "target_acc": weight @ right[1:]}
            found |= {f"user{k}_acc": right[k] for k in range(1, len(rows))}
            found["information"] = weight @ told[1:]
            yield {name: float(value) for name, value in found.items()}


class Parts(parts.Parts):
    """The parts of one task."""

    followed = Users

    @property
    def both(self) -> domains.Task:
        cfg = self.cfg
        return domains.load(cfg.data, self.task, cfg.backbone, cfg.components)

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
            own = classes, seen, bottleneck(method), cfg.dropout
            if domains.learns(cfg.data, cfg.backbone):
                return ObjectsNet(
                    BACKBONES["mobilenet_v2"].width, *own, UpperBlocks(*upper_blocks())
                )
            return ObjectsNet(width, *own)

        many = many or [(1, classes)]
        held = [domains.partition(both, *one, stride, s) for s in self.seeds for one in many]
        return self.side_by_side(build, both.data, held, who)

    def outcome(self, name: str) -> Outcome:
        kind, what = name.split("_")
        if kind == parts.PRETRAINING:
            self.before[what] = self.pretraining(what)
            return self.before[what]
        before = self.before[bottleneck(what if kind == "central" else kind)]
        if kind == "central":
            return self.central(before, what)
        return self.federated(before, kind, int(what))

    def pretraining(self, kind: str) -> Outcome:
        """The source alone, with the ``kind`` of bottleneck."""
        cfg, rows = self.cfg, self.both.sources
        fed, start = self.federation("shot" if kind == "norm" else "dann", self.one_of_two(0.0))
        method = DANN(opt_out=1.0, beta=1.0, batch_norm="averaged", smoothing=cfg.smoothing)
        batches = min(PRETRAINING_STEPS, max(1, rows // PRETRAINING_ROWS))  # whole ones
        passes = -(-PRETRAINING_STEPS // batches)
        training = self.training(
            lr=cfg.pretraining_lr,
            batch_size=PRETRAINING_ROWS,
            batches=batches,
            epochs=passes,
            annealing=Annealing(cfg.pretraining * passes * batches),
        )
        name = f"{parts.PRETRAINING}_{kind}"
        return self.run(name, fed, method, training, cfg.pretraining, start)

    def federated(self, before: Outcome, method: str, per_round: int) -> Outcome:
        """FADE with ``method`` from the pre-trained model, a run for each kind of users."""
        cfg = self.cfg
        who = Participation(per_round / (1 + cfg.target_users))
        fed, start = self.federation(method, who, cfg.users)
        steps = max(1, cfg.steps // per_round)
        plays = self.method(method, cfg.rounds, beta=cfg.beta)
        own = f"{method}_{per_round}", fed, plays, cfg.rounds, self.taken(before, start, fed)
        return self.game(*own, before, steps)

    def central(self, before: Outcome, method: str) -> Outcome:
        """Both domains in every step: what a server with all data would do.

        As many batches as in a federated run; SHOT has the target alone and takes half as many, all
        the target's, where a federated run has some of the source's. A step of each device on its
        own batch, and their plain average, is one step on the mean of both losses; a doubled rate
        makes it their sum. The adversarial loss counts half on either side. Batch normalisation
        sees each domain by itself.
        """
        cfg, alone = self.cfg, method == "shot"
        who = self.one_of_two(1.0) if alone else Participation()
        fed, start = self.federation(method, who)
        rounds, times = cfg.central_rounds, 1 if alone else 2
        plays = self.method(
            method, rounds, beta=1.0, weighted=False, batch_norm="local", weight=cfg.weight / 2
        )
        own = f"central_{method}", fed, plays, rounds, self.taken(before, start, fed), before
        return self.game(*own, lr=times * cfg.lr, weight_decay=cfg.weight_decay / times)

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
        start = start.to(t["shared"])
        times = len(start) // len(self.seeds)  # a seed's runs start alike
        ends = (v.repeat_interleave(times, 0) for v in (t["shared"], t["personal"][:, 0]))
        trained = before.layout.views(*ends)
        names = [name for name, _ in values(fed.net)]
        fresh = Layout(fed.net, names).views(start, start[:, :0])
        own = [(fresh if n.startswith(DISCRIMINATOR) else trained)[n].flatten(1) for n in names]
        return torch.cat(own, 1)
