"""What is measured on trained models: accuracy, delta EO, users apart, and what z tells of sex; and
the same of models trained with all rows in one place."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from lgfed_core.data import Split
from lgfed_core.engine import CPU, Federation, Outcome
from lgfed_core.engine.provenance import provenance
from lgfed_core.errors import LgfedError
from lgfed_core.metrics.fairness import auc, delta_eo, demographic_parity
from lgfed_core.metrics.probes import KINDS, probe
from lgfed_core.models.income import IncomeNet
from lgfed_core.models.layout import values_of
from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream

from ..parts import Each
from . import census
from .census import FEMALE, MALE, PARTS, PLAIN

LARGEST = 1e15  # of z: squares of more, summed, are beyond single precision


@torch.no_grad()
def see(
    net: IncomeNet, params: dict[str, Tensor], split: Split, rows: ClientIndices
) -> tuple[Split, NDArray, NDArray]:
    """All users' ``rows``, one user's after another's, and what the model with values ``params``
    says of them, dropout off: its decisions and D's probability of group 1, [n] both."""
    some = split.take(rows.all)
    income, male = functional_call(net, params, (some.x,), dict(watch=Tensor.detach))
    decisions = income.softmax(-1)[:, 1] > 0.5
    return some, decisions.long().numpy(), male.sigmoid()[:, 0].numpy()


def scores(
    rows: Split, sizes: Sequence[int], decisions: NDArray, guessed: NDArray | None = None
) -> dict[str, float]:
    """Accuracies, AUC of D, parity in percent; delta EO as FADE prints it, a number from 0 to 2.

    acc: of all rows; acc_female, acc_male; of users one by one, who have ``sizes`` of these rows in
    turn, the worst (user_worst), the lowest tenth (user_decile) and the gap between best and worst
    (user_gap). NaN where a sex has no row. decisions, guessed [n]: as of `see`.
    """
    y, group = rows.y.numpy(), rows.groups[:, 0].numpy()
    right = decisions == y
    each = np.split(right, np.cumsum(sizes)[:-1])
    users = np.array([mine.mean() for mine in each if len(mine)])
    by_sex = pd.Series(right).groupby(group).mean()
    found = {
        "acc": right.mean(),
        "acc_female": by_sex.get(FEMALE, float("nan")),
        "acc_male": by_sex.get(MALE, float("nan")),
        "parity": demographic_parity(decisions, group) if len(by_sex) > 1 else float("nan"),
        "user_worst": users.min(),
        "user_decile": np.quantile(users, 0.1),
        "user_gap": users.max() - users.min(),
    }
    if guessed is not None:
        found["adv_auc"] = auc(guessed, group)
    found = {name: 100 * float(value) for name, value in found.items()}
    return found | {"delta_eo": delta_eo(decisions, y, group)}


class Watch(Each):
    """Accuracy (a share) and delta EO on validation rows, every so many rounds."""

    @torch.no_grad()
    def each(self, engine):
        phase = engine.phase
        split, per_run = phase.rows["validation"]
        for r, rows in enumerate(per_run):
            params = phase.layout.views(*phase.models("shared", "personal", r, 0))
            some = rows.all
            said = functional_call(phase.net, params, (split.x[some],)).argmax(-1).cpu()
            y, group = split.y[some].cpu(), split.groups[some, 0].cpu()
            gap = delta_eo(said, y, group)
            yield {"validation_acc": float((said == y).float().mean()), "validation_delta_eo": gap}


def models(outcome: Outcome, runs: int) -> Iterable[dict[str, Tensor]]:
    """The model of each run; of what is not finite zeros take the place."""
    t = outcome.tensors
    for r in range(runs):
        pair = t["shared"][r].cpu(), t["personal"][r, 0].cpu()
        yield outcome.layout.views(*(v.nan_to_num(0.0, 0.0, 0.0) for v in pair))


def measure(fed: Federation, outcome: Outcome, probed: int = 0) -> Outcome:
    """Test rows, validation rows (``validation_acc``, ``validation_delta_eo``), and probes.

    probed: test rows of which z is probed, half to fit and half to judge; 0 where there is no D,
        which is then left out as well.
    """
    net, lines, z = fed.net.eval(), [], {}
    for r, params in enumerate(models(outcome, len(fed.seeds))):
        part = fed.partitions[r]
        rows, decisions, guessed = see(net, params, fed.data.test, part.test)
        line = scores(rows, part.test.size.tolist(), decisions, guessed if probed else None)
        held, decisions, _ = see(net, params, fed.data.train, part.validation)
        line["validation_acc"] = 100 * float((decisions == held.y.numpy()).mean())
        line["validation_delta_eo"] = delta_eo(decisions, held.y, held.groups[:, 0])
        lines.append(line)
        if probed:
            z.setdefault(fed.seeds[r], []).append((r, params))
    for seed, some in z.items():
        for (r, _), found in zip(some, _leaks(fed, seed, some, probed), strict=True):
            lines[r] |= found
    final = pd.DataFrame(lines, index=pd.Index(fed.seeds, name="seed"))
    last = outcome.history[outcome.history["round"] == outcome.history["round"].max()]
    broke = last["validation_acc"].isna() & last["seed"].isin(outcome.diverged)  # the others go on
    broke = broke.to_numpy()
    over = final["probe_best"].isna().to_numpy() if probed else np.zeros_like(broke)
    if (lost := broke | over).any():  # these have a round in the place of numbers
        final.loc[lost] = float("nan")
        at = final.index.map(outcome.diverged).to_numpy(float)
        at = np.where(broke, at, outcome.history["round"].max())
        final["diverged"] = np.where(lost, at, float("nan"))
    return replace(outcome, final=final, diverged={})


@torch.no_grad()
def _leaks(fed: Federation, seed: int, some: list, probed: int) -> list[dict[str, float]]:
    """AUC in percent of fresh probes of z for sex, of each of a seed's runs; NaN where z overflows.

    The runs of a seed are tested on the same rows, whatever the number of users.
    """
    rows = fed.partitions[some[0][0]].test
    held = rows.all.sort().values
    order = stream(seed, Purpose.PROBES).permutation(len(held))[:probed]
    chosen = fed.data.test.take(held[torch.from_numpy(order)])
    own = (values_of(params, "encoder") for _, params in some)
    z = torch.stack([functional_call(fed.net.encoder, one, (chosen.x,)) for one in own])
    whole = (z.abs() < LARGEST).flatten(1).all(1)
    found = probe(torch.where(whole[:, None, None], z, 0.0), chosen.groups, len(order) // 2, seed)
    out = []
    for e in range(len(some)):  # found: {kind: [E, 1]}
        seen = 100 if whole[e] else float("nan")
        line = {f"probe_{kind}": seen * float(found[kind][e, 0]) for kind in KINDS}
        out.append(line | {"probe_best": max(line.values())})
    return out


def central(cfg, inputs: str, seeds: Sequence[int]) -> Outcome:
    """What a practitioner would try first, all rows in one place: fairlearn on a linear model.

    ``logistic``: no care for fairness. ``thresholds``: other thresholds for each group after
    training (Hardt, Price & Srebro 2016), set on validation rows; needs the group with every
    decision. ``reduction``: reweighted costs until equalised odds hold (Agarwal et al. 2018). All
    are trained, and tested, on the rows of the federated runs of the same seed.

    A line per seed and method, in the order of `PLAIN`; metrics of `scores`. Raises LgfedError
    where fairlearn is not installed.
    """
    try:
        from fairlearn.postprocessing import ThresholdOptimizer
        from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    except ImportError as error:
        raise LgfedError(
            "the central baselines need fairlearn: pip install fairlearn, or leave them out, with "
            f"parts={','.join(part for part in PARTS if part != 'central')}"
        ) from error
    from sklearn.linear_model import LogisticRegression

    began, lines, rows = time.perf_counter(), [], census.census(inputs, cfg.first_rows).train
    x, y, sex = (a.numpy() for a in (rows.x.double(), rows.y, rows.groups[:, 0]))
    for seed in seeds:
        part = census.users(rows, 1, seed, 1, cfg.test, cfg.validation)
        fit, held, left = (some.all.numpy() for some in (part.train, part.validation, part.test))
        plain = LogisticRegression(max_iter=300).fit(x[fit], y[fit])
        said = plain.predict_proba(x[left])[:, 1] > 0.5  # [n]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas and solvers, inside fairlearn
            after = ThresholdOptimizer(
                estimator=plain,
                constraints="equalized_odds",
                prefit=True,
                predict_method="predict_proba",
            ).fit(x[held], y[held], sensitive_features=sex[held])
            moved = after.predict(x[left], sensitive_features=sex[left], random_state=seed)
            costs = ExponentiatedGradient(
                LogisticRegression(max_iter=100), EqualizedOdds(), eps=0.01, max_iter=cfg.sweeps
            ).fit(x[fit], y[fit], sensitive_features=sex[fit])
            fair = costs.predict(x[left], random_state=seed)
        own = rows.take(torch.from_numpy(left)), part.test.size.tolist()
        lines += [scores(*own, np.asarray(decisions)) for decisions in (said, moved, fair)]
    final = pd.DataFrame(lines, index=pd.Index(np.repeat(list(seeds), len(PLAIN)), name="seed"))
    none, seconds = pd.DataFrame(columns=["round", "seed"]), time.perf_counter() - began
    return Outcome(None, {}, none, final, seconds, provenance(CPU))
