"""What is measured on a trained model, and the best that any representation could do.

Whatever a representation is, income is in the end decided by one bit b of it, and a probe that sees
all of it guesses a group at least as well as one that sees b alone, whose AUC is
1/2 + |P(b=1 | group 1) - P(b=1 | group 0)| / 2. So no representation lies above the best bit. With
Lagrange multipliers mu_j for the two gaps, the best bit of the inputs x is

    b(x) = [ 2 P(y=1|x) - 1 > sum_j mu_j (P(g_j=1|x)/P(g_j=1) - P(g_j=0|x)/P(g_j=0)) ]

(Menon & Williamson 2018, "The cost of fairness in binary classification"). Boosted trees stand for
the probabilities, so the computed line lies below the true one: it is reached, not only a bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

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
from lgfed_core.errors import SettingsError
from lgfed_core.metrics.fairness import auc, demographic_parity, equalised_odds
from lgfed_core.metrics.probes import KINDS, probe
from lgfed_core.models.adult import AdultNet
from lgfed_core.papers.part_outcome import Measured
from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream

LEVELS = (50.5, 51.0, 51.5, 52.0, 53.0, 54.0, 55.0, 56.0, 100.0)  # AUC, %; the last binds nobody
_MULTIPLIERS = np.linspace(-0.1, 0.5, 31)
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
) -> Measured:
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
        if part.validation is not None:
            held = _all(net, models, fed.data.train, part.validation)
            line["validation_acc"] = 100 * accuracy(held)
            line["validation_probe"] = _checked(encoders, fed.data.train, part, one_model)
        lines.append(line)
    final = pd.DataFrame(lines, index=pd.Index(fed.seeds, name="seed"))
    of = outcome.history, outcome.seconds, outcome.provenance, outcome.diverged
    return Measured(final, *of)


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
    local = {n.removeprefix("local."): v for n, v in params.items() if n.startswith("local.")}
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


def best_bits(train: Split, test: Split, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
    """The most accurate bit of x whose leak, the mean AUC for race and sex, is at most a level.

    Chosen on ``train`` by held-out probabilities, judged on ``test``. A line per level; columns
    accuracy, leak, race, sex, all in percent. Raises SettingsError for a level below 50.
    """
    if min(levels) < 50:
        raise SettingsError(f"levels are {list(levels)}; an AUC of 50 % is chance, and the least")
    shares, sides = train.groups.double().mean(0).numpy(), []  # [g]
    for split, (income, groups) in zip((train, test), _chances(train, test), strict=True):
        pull = groups / shares - (1 - groups) / (1 - shares)  # [n, g]
        sides.append((split.y.numpy(), split.groups.numpy(), 2 * income - 1, pull))
    mus = np.array([*product(_MULTIPLIERS, repeat=len(GROUPS))])  # [m, g]
    seen = np.array([_judged(mu, *sides[0]) for mu in mus])  # [m, 1 + g]
    leak, lines = seen[:, 1:].mean(1), {}
    for level in levels:
        allowed = np.flatnonzero(leak <= max(level, leak.min()))
        mu = mus[allowed[seen[allowed, 0].argmax()]]
        accuracy, *areas = _judged(mu, *sides[1])
        of_groups = dict(zip(GROUPS, areas, strict=True))
        lines[level] = {"accuracy": accuracy, "leak": np.mean(areas)} | of_groups
    return pd.DataFrame(lines).T.rename_axis("level")


def _chances(train: Split, test: Split) -> list[tuple[NDArray, NDArray]]:
    """P(income) [n] and P(groups) [n, g] of the rows of ``train``, held out, and of ``test``."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from sklearn.model_selection import cross_val_predict

    x, new = train.x.numpy(), test.x.numpy()
    targets = [train.y.numpy(), *train.groups.T.numpy()]
    held, fresh = [], []
    for target in targets:
        trees = HistGradientBoostingClassifier(
            max_iter=60, learning_rate=0.15, max_leaf_nodes=15, early_stopping=False
        )
        held.append(cross_val_predict(trees, x, target, cv=2, method="predict_proba")[:, 1])
        fresh.append(trees.fit(x, target).predict_proba(new)[:, 1])
    return [(found[0], np.stack(found[1:], 1)) for found in (held, fresh)]


def _judged(mu: NDArray, y: NDArray, groups: NDArray, margin: NDArray, pull: NDArray) -> list:
    """Percent: accuracy of the bit with multipliers ``mu`` [g], and its AUC for each group."""
    bit = margin > pull @ mu  # [n]
    gaps = [bit[g == 1].mean() - bit[g == 0].mean() for g in groups.T]
    return [100 * (bit == y).mean(), *(50 + 50 * abs(gap) for gap in gaps)]
