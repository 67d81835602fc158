"""What is measured on a trained model: the paper's metrics, odds and parity, and fresh probes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from lgfed_core import data
from lgfed_core.data import Dataset, Split
from lgfed_core.data.adult import GROUPS
from lgfed_core.engine import Federation, Outcome
from lgfed_core.metrics.fairness import auc, demographic_parity, equalised_odds
from lgfed_core.metrics.probes import KINDS, probe
from lgfed_core.models.adult import AdultNet
from lgfed_core.models.layout import values_of
from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream

Encoder = Callable[[Tensor], Tensor]  # x [n, 93] -> h [n, 32]


@dataclass(frozen=True)
class Seen:
    """What the model of one device says about some rows: probabilities, and the truth."""

    income: NDArray  # [n], P(y = 1)
    protected: NDArray  # [n, g], the adversary's
    y: NDArray  # [n]
    groups: NDArray  # [n, g]


@lru_cache(2)
def rows_of_adult(first: int | None) -> Dataset:
    """Adult, or what comes of its first rows; read once, as every part needs it."""
    return data.load("adult", rows=first)


def scores(devices: Sequence[Seen]) -> dict[str, float]:
    """The paper's three metrics, means over devices, and ours, in percent.

    Equalised odds and demographic parity are of all devices' decisions together: on one device, a
    handful of rows would decide.
    """
    adversary = np.array([auc(d.protected.T, d.groups.T) for d in devices])  # [K, g]
    found = {
        "class_acc": accuracy(devices),
        "class_auc": np.nanmean([auc(d.income, d.y) for d in devices]),  # some have one class
        "adv_auc": np.nanmean(adversary),
        "adv_auc_spread": adversary.mean(1).std(),  # over devices
    }
    decisions = np.concatenate([d.income > 0.5 for d in devices])
    y, groups = (np.concatenate([getattr(d, name) for d in devices]) for name in ("y", "groups"))
    for j, name in enumerate(GROUPS):
        found[f"adv_auc_{name}"] = np.nanmean(adversary[:, j])
        found[f"eo_{name}"] = equalised_odds(decisions, y, groups[:, j])
        found[f"dp_{name}"] = demographic_parity(decisions, groups[:, j])
    return {name: 100 * float(value) for name, value in found.items()}


def accuracy(devices: Sequence[Seen]) -> float:
    """Share of rows whose class is right, mean over devices."""
    return float(np.mean([((d.income > 0.5) == d.y).mean() for d in devices]))


def leaks(encoders: Sequence[Encoder], test: Split, rows: int, seed: int) -> dict[str, float]:
    """AUC of fresh probes, in percent: mean over encoders, by kind and attribute, and the best.

    ``rows`` of the test set are drawn by ``seed``; half of them to fit on, half to judge by.
    """
    order = stream(seed, Purpose.PROBES).permutation(len(test.y))[:rows]
    chosen = test.take(torch.from_numpy(order))
    h = torch.stack([encoder(chosen.x) for encoder in encoders])  # [E, n, 32]
    found = {k: v.mean(0) for k, v in probe(h, chosen.groups, len(order) // 2, seed).items()}  # [g]
    out = {}
    for j, name in enumerate(GROUPS):
        out |= {f"probe_{kind}_{name}": 100 * float(found[kind][j]) for kind in KINDS}
        out[f"probe_best_{name}"] = max(out[f"probe_{kind}_{name}"] for kind in KINDS)
    out["probe_best"] = float(np.mean([out[f"probe_best_{name}"] for name in GROUPS]))
    return out


@torch.no_grad()
def measure(
    fed: Federation, outcome: Outcome, probed: int, probe_rows: int, one_model: bool = False
) -> Outcome:
    """Measure the models of the last round on test rows, dropout off.

    Probes read the encoders of the first ``probed`` devices (of the one model there is, if
    ``one_model``). ``validation_*`` is measured on the devices' validation rows: accuracy, and AUC
    of a logistic probe of the same encoders, fitted to the device's training rows.
    """
    lines, net = [], fed.net.eval()
    for r, (seed, part) in enumerate(zip(fed.seeds, fed.partitions, strict=True)):
        broken = seed in outcome.diverged
        models = [_params(outcome, r, k, broken) for k in range(fed.clients)]
        line = scores(_all(net, models, fed.data.test, part.test))
        some = models[: 1 if one_model else probed]
        encoders = [encoder(net, params) for params in some]
        line |= leaks(encoders, fed.data.test, probe_rows, seed)
        held = _all(net, models, fed.data.train, part.validation)
        line["validation_acc"] = 100 * accuracy(held)
        line["validation_probe"] = _checked(encoders, fed.data.train, part, one_model)
        lines.append(line)
    final = pd.DataFrame(lines, index=pd.Index(fed.seeds, name="seed"))
    return replace(outcome, final=final)


def _params(outcome: Outcome, run: int, device: int, broken: bool) -> dict[str, Tensor]:
    """One device's model; of a ``broken`` run zeros take the place of what is not finite."""
    t = outcome.tensors
    pair = t["shared"][run].cpu(), t["personal"][run, device].cpu()
    return outcome.layout.views(*(v.nan_to_num(0.0, 0.0, 0.0) if broken else v for v in pair))


def _all(net: AdultNet, models: list[dict], split: Split, rows: ClientIndices) -> list[Seen]:
    """Every device's model on its own rows."""
    found = []
    for k, params in enumerate(models):
        mine = split.take(rows.of(k))
        income, protected = functional_call(net, params, (mine.x,), dict(watch=Tensor.detach))
        said = income.softmax(-1)[:, 1], protected.sigmoid(), mine.y, mine.groups
        found.append(Seen(*(tensor.numpy() for tensor in said)))
    return found


def encoder(net: AdultNet, params: dict[str, Tensor]) -> Encoder:
    """The local model of one device."""
    local = values_of(params, "local")
    return lambda x: functional_call(net.local, local, (x,))


def _checked(encoders: list[Encoder], split: Split, part, pooled: bool) -> float:
    """AUC in percent, mean over attributes and encoders, on validation rows alone."""
    from sklearn.linear_model import LogisticRegression

    devices, areas = range(len(part)), []
    for k, encoder in enumerate(encoders):
        mine = devices if pooled else [k]
        fit, judge = (
            split.take(torch.cat([rows.of(i) for i in mine]))
            for rows in (part.train, part.validation)
        )
        a, b = encoder(fit.x), encoder(judge.x)
        mean, std = a.mean(0), a.std(0).clamp(min=1e-6)
        a, b = ((v - mean) / std for v in (a, b))
        for j in range(len(GROUPS)):
            model = LogisticRegression(max_iter=300).fit(a.numpy(), fit.groups[:, j].numpy())
            areas.append(auc(model.decision_function(b.numpy()), judge.groups[:, j].numpy()))
    return 100 * float(np.nanmean(areas))
