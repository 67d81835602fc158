"""What a practitioner would try first, all rows in one place: fairlearn on a linear model.

``logistic``: no care for fairness. ``thresholds``: other thresholds for each group after training
(Hardt, Price & Srebro 2016), set on validation rows; needs the group with every decision.
``reduction``: reweighted costs until equalised odds hold (Agarwal et al. 2018). All are trained,
and tested, on the rows of the federated runs of the same seed.
"""

import time
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lgfed_core.engine.provenance import provenance
from lgfed_core.errors import LgfedError
from lgfed_core.papers.part_outcome import Measured

from . import census
from .measures import Seen, scores

PARTS = ("figure", "between", "sweep", "qffl", "central")  # of the experiment
METHODS = ("logistic", "thresholds", "reduction")


def central(cfg, inputs: str, seeds: Sequence[int]) -> Measured:
    """A line per seed and method, in the order of `METHODS`; metrics of `measures.scores`.

    Raises LgfedError where fairlearn is not installed.
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

    began, lines, data = time.perf_counter(), [], census.census(inputs, cfg.first_rows)
    x, y, sex = (a.numpy() for a in (data.train.x.double(), data.train.y, data.train.groups[:, 0]))
    for seed in seeds:
        part = census.users(data.train, 1, seed, 1, cfg.test, cfg.validation)
        fit, held, left = (
            torch.cat([rows.of(k) for k in (0, 1)]).numpy()
            for rows in (part.train, part.validation, part.test)
        )
        users = [np.flatnonzero(sex[left] == g) for g in (census.FEMALE, census.MALE)]
        plain = LogisticRegression(max_iter=300).fit(x[fit], y[fit])
        said = plain.predict_proba(x[left])[:, 1]  # [n]
        seen = Seen(said, np.full(len(left), 0.5), y[left], sex[left], users)
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
        lines += [scores(seen), scores(seen, np.asarray(moved)), scores(seen, np.asarray(fair))]
    final = pd.DataFrame(lines).drop(columns="adv_auc")
    final.index = pd.Index(np.repeat(list(seeds), len(METHODS)), name="seed")
    where = provenance(torch.device("cpu"))
    return Measured(final, pd.DataFrame(), time.perf_counter() - began, where)
