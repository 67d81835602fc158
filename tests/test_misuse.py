"""Measures and arrays of one's own: shapes, types and ranges that cannot be meant are named."""

import numpy as np
import pytest
import torch

from lgfed_core.data import Dataset, Split
from lgfed_core.errors import LgfedError
from lgfed_core.methods.privacy import Privacy
from lgfed_core.metrics import fairness, frechet, probes
from lgfed_core.partition import feature_clusters

A, G = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
X = np.random.default_rng(0).standard_normal((8, 3))
ROWS = Split(torch.from_numpy(X).float(), torch.arange(8) % 2)
PRIVATE = Privacy(1.0, 1.0)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("one for each", lambda: fairness.auc(A, A[:2])),
        (r"labels are \[0 2\]", lambda: fairness.auc(A, 2 * A)),
        ("shapes are decisions", lambda: fairness.demographic_parity(A, A[:2])),
        ("shapes are decisions", lambda: fairness.demographic_parity(A[:0], A[:0])),
        ("decisions are", lambda: fairness.demographic_parity(7 * A, A)),
        ("shapes are", lambda: fairness.equalised_odds(A, A[:2], A)),
        ("shapes are", lambda: fairness.equalised_odds(A[:0], A[:0], A[:0])),
        ("labels are", lambda: fairness.delta_eo(A, 7 * A, G)),
        ("decisions are", lambda: fairness.delta_eo(A * np.nan, A, G)),
        ("shapes are", lambda: fairness.delta_eo(A, A[:2], G)),
        ("one for each", lambda: fairness.label_leak(A, A[:2])),
        ("rows have 3 and 2 numbers", lambda: frechet.samples(X, X[:, :2])),
        ("not finite", lambda: probes.probe(
            torch.full((1, 8, 3), torch.nan), (torch.arange(8) % 2)[:, None], 4)),
        ("clip is inf", lambda: Privacy(float("inf"), 1.0)),
        ("uploads is -1", lambda: PRIVATE.epsilon(-1, 1e-5)),
        ("delta 2.0", lambda: PRIVATE.epsilon(1, 2.0)),
        ("one for each row", lambda: feature_clusters.parts(A, A[:2], 0.1, 0)),
        ("classes is '2'", lambda: Dataset("mine", ROWS, ROWS, "2")),
        ("a test row", lambda: Dataset("mine", ROWS, Split(ROWS.x[:, :2], ROWS.y), 2)),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_named(said, asked):
    with pytest.raises(LgfedError, match=said):
        asked()
