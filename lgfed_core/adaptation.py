"""Arrays in, arrays out: unsupervised domain adaptation of one's own features in one call.

>>> rng = np.random.default_rng(0)
>>> y = np.arange(120) % 3
>>> user = np.repeat([0, 1, 2], 40)  # 0 has labels, 1 and 2 have none
>>> x = 4 * np.eye(3)[y] + 0.3 * rng.standard_normal((120, 3)) + user[:, None]
>>> adapted = adapt(x, y, user, rounds=10)
>>> bool((adapted.predict(x, user) == y)[user > 0].mean() > 0.9)
True
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.func import functional_call

from lgfed_core import require
from lgfed_core.data import Dataset, Split
from lgfed_core.engine import Federation, LocalTraining, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods.cdan import CDAN
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.schedules import Annealing
from lgfed_core.methods.shot import SHOT
from lgfed_core.models import make
from lgfed_core.models.layout import Layout, joined
from lgfed_core.models.objects import FEATURES, ObjectsNet
from lgfed_core.partition import ClientIndices, Partition

PRETRAINING = 20  # rounds on the labelled rows
SGD: dict[str, Any] = dict(momentum=0.9, nesterov=True, weight_decay=0.001, keep_momentum=True)


@dataclass(frozen=True, eq=False)
class Adapted:
    """A model that has been adapted; rows are [n, d], as those that it was made from.

    A method of ``batch_norm="local"``, as SHOT's is unless said otherwise, leaves each user
    statistics of its own: it must be said whose the rows are, by ``user``, [n] or one for all.
    Otherwise all have the same model.
    """

    net: nn.Module
    layout: Layout
    shared: Tensor  # [P_s]
    personal: Tensor  # [K, P_p], by user
    users: NDArray  # [K], as they were numbered
    classes: NDArray  # [C], as they were called
    middle: NDArray  # [d]
    scale: float

    @torch.no_grad()
    def outputs(self, x: ArrayLike, user: ArrayLike | None = None) -> Tensor:
        """Logits and features of rows x, [n, C + 256].

        Raises SettingsError for rows of another width, a number that is not finite, users that it
        was not made from, and none where each has a model of its own.
        """
        rows = np.asarray(x, float)
        if rows.ndim != 2 or rows.shape[1] != len(self.middle):
            raise SettingsError(f"x is {list(rows.shape)}; it must be [n, {len(self.middle)}]")
        _refuse_broken(rows)
        scaled = torch.from_numpy((rows - self.middle) / self.scale).float()
        out = torch.empty(len(rows), len(self.classes) + FEATURES)
        for k, at in self._whose(len(rows), user):
            values = self.layout.views(self.shared, self.personal[k])
            out[at] = functional_call(self.net.eval(), values, scaled[at], {"with_features": True})
        return out

    def _whose(self, rows: int, user: ArrayLike | None) -> list[tuple[int, Tensor]]:
        """The user, and which of the rows to give to the model of that user."""
        if not self.layout.size_personal:
            return [(0, torch.arange(rows))]
        if user is None:
            raise SettingsError("each user has a model of its own here; say by user whose x is")
        whose = np.asarray(user)
        if whose.shape not in ((), (rows,)):
            raise SettingsError(f"user is {list(whose.shape)}; it must be one, or [{rows}]")
        whose = np.broadcast_to(whose, (rows,))
        if not np.isin(whose, self.users).all():
            strange = whose[~np.isin(whose, self.users)][0]
            raise SettingsError(f"user {strange} is none of {', '.join(map(str, self.users))}")
        return [
            (k, torch.from_numpy(whose == name).nonzero()[:, 0])
            for k, name in enumerate(self.users)
        ]

    def predict(self, x: ArrayLike, user: ArrayLike | None = None) -> NDArray:
        """The class of each row x -> [n], as the classes were called."""
        return self.classes[self.outputs(x, user)[:, : len(self.classes)].argmax(-1).numpy()]

    def features(self, x: ArrayLike, user: ArrayLike | None = None) -> NDArray:
        """The adapted features of rows x -> [n, 256]."""
        return self.outputs(x, user)[:, len(self.classes) :].numpy()


def adapt(
    x: ArrayLike,
    y: ArrayLike,
    user: ArrayLike,
    method: DANN | None = None,
    *,
    rounds: int = 100,
    steps: int = 5,
    batch_size: int = 32,
    lr: float = 0.01,
    seed: int = 0,
) -> Adapted:
    """Federated adaptation from user 0, who has labels, to the others, who have none.

    x: features [n, d] of one kind (all columns are divided by one scale, the mean of their standard
    deviations over user 0's rows); y: labels [n], of which those of user 0 alone are read; user:
    [n], the number of each row's user. method: `DANN`, `CDAN` or `SHOT` with settings of its own;
    None: SHOT. Everybody takes part in each of ``rounds``, with ``steps`` batches.

    Raises SettingsError for arrays that do not belong together, a number that is not finite,
    impossible settings, and a user 0 without rows, with rows of one class, or without a label (NaN,
    None or -1).
    """
    require.whole(rounds=rounds, steps=steps, batch_size=batch_size, seed=seed)
    require.at_least(1, rounds=rounds, steps=steps, batch_size=batch_size)
    method = SHOT() if method is None else method
    require.instance("method", method, DANN)
    x, y, user = _together(x, y, user)
    own = user == 0
    classes, label = _labels(y, own)
    middle, scale = x[own].mean(0), float(x[own].std(0).mean()) or 1.0
    known = np.full(len(y), -1)
    known[own] = label
    split = Split(
        torch.from_numpy((x - middle) / scale).float(),
        torch.from_numpy(known),
        torch.from_numpy((user != 0).astype(int))[:, None],
    )
    data = Dataset("arrays", split, replace(split, y=split.y.clamp(min=0)), len(classes))
    names = np.array([0, *np.unique(user[~own])])
    held = [np.flatnonzero(user == name) for name in names]
    seen = "mixed" if isinstance(method, CDAN) else ""  # as in FADE's experiments on objects
    bottleneck = "norm" if isinstance(method, SHOT) else "relu"
    net = make(lambda: ObjectsNet(x.shape[1], len(classes), seen, bottleneck), seed)

    def phase(plays: DANN, users: list[NDArray], length: int, many: int, begun: int, start: Tensor):
        rows = ClientIndices.from_lists(users)
        fed = Federation(data, [Partition("arrays", rows, None, rows)], net, [seed])
        annealing = Annealing(length * many)
        training = LocalTraining(lr, batch_size, **SGD, batches=many, annealing=annealing)
        return run(fed, plays, training, length, start, first_round=begun, workers=1)

    alone = DANN(opt_out=1.0, beta=1.0, batch_norm="averaged")
    batches = max(1, len(held[0]) // batch_size)
    before = phase(alone, held[:1], PRETRAINING, batches, 0, joined(net)[None])
    start = before.layout.join(before.tensors["shared"], before.tensors["personal"][:, 0])
    game = replace(method, rounds=rounds, start=PRETRAINING)
    out = phase(game, held, rounds, steps, PRETRAINING, start)
    shared, personal = (out.tensors[part][0].clone() for part in ("shared", "personal"))
    return Adapted(net, out.layout, shared, personal, names, classes, middle, scale)


def _together(x: ArrayLike, y: ArrayLike, user: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    """The three as arrays. Raises SettingsError where they do not belong together."""
    x, y, user = np.asarray(x, float), np.asarray(y), np.asarray(user)
    if x.ndim != 2 or y.shape != x.shape[:1] or user.shape != x.shape[:1]:
        raise SettingsError(
            f"x is {list(x.shape)}, y {list(y.shape)}, user {list(user.shape)}; they must be "
            "[n, d], [n] and [n]"
        )
    _refuse_broken(x, user)
    own = user == 0
    if own.sum() < 2 or own.all():
        raise SettingsError(
            f"user 0 has {own.sum()} of {len(user)} rows; it must have the labelled ones, and "
            "others the rest"
        )
    return x, y, user


def _labels(y: NDArray, own: NDArray) -> tuple[NDArray, NDArray]:
    """The classes of the rows that user 0 ``own``s, and the number of each row's."""
    labels = y.tolist()
    bare = own & np.array([label is None or label != label or label == -1 for label in labels])
    if bare.any():
        at = int(np.flatnonzero(bare)[0])
        raise SettingsError(
            f"row {at} of user 0 has the label {labels[at]!r}, which is none; leave it out"
        )
    classes, label = np.unique(y[own], return_inverse=True)
    if len(classes) < 2:
        raise SettingsError(f"all rows of user 0 have the label {classes[0]!r}; there must be two")
    return classes, label


def _refuse_broken(x: NDArray, user: NDArray | None = None) -> None:
    """Raise SettingsError for the first row of x [n, d] with a number that is not finite."""
    broken = ~np.isfinite(x).all(1)
    if broken.any():
        at = int(broken.argmax())
        whose = "" if user is None else f", of user {user[at]},"
        raise SettingsError(f"x has a number in row {at}{whose} that is not finite")
