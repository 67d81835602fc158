"""What may not move: partitions to the last row, and three rounds of every method.

Partitions are whole numbers, so their digests are exact. Parameters depend on the processor in the
last bits, so methods run in float64 and are pinned by sums and lengths to five digits. A new case
is printed by its failing test. Whoever moves one on purpose says so in the change log, and prints
all:

    python tests/engine/test_digests.py
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # for cases; pytest has it

from cases import CASES, FALLING

from lgfed_core import partition, run
from lgfed_core.engine.checkpoint import digest
from lgfed_core.partition import feature_clusters
from toy import SGD, in_float64

TRAIN, TEST = np.arange(503) % 10, np.arange(131) % 10


def clusters(proportion: float):
    """Clients from embeddings in well separated heaps, so that k-means has no doubt."""
    rng, y = np.random.default_rng(0), np.arange(240) % 3
    heaps = 20 * rng.normal(size=(12, 5))[np.arange(240) % 12]
    part = feature_clusters.parts(y, np.arange(240) % 7 == 0, 0.1, 4)
    who = feature_clusters.simulate(heaps + rng.normal(size=(240, 5)), y, part, 4, 4)
    return who.shuffled(proportion, 4).partition()


SCHEMES = {
    "label_shards": lambda: partition.label_shards(TRAIN, TEST, 9, 3, 4),
    "classes_per_device": lambda: partition.classes_per_device(TRAIN, TEST, 10, 2, 4),
    "iid": lambda: partition.iid(TRAIN, TEST, 9, 4),
    "dirichlet": lambda: partition.dirichlet(TRAIN, TEST, 9, 0.5, 4),
    "with_validation": lambda: partition.with_validation(partition.iid(TRAIN, TEST, 9, 4), 0.1, 4),
    "clusters": lambda: clusters(0.0),
    "clusters_shuffled": lambda: clusters(0.4),
}
ROWS = {
    "label_shards": "99a72bcacfae76eb",
    "classes_per_device": "0bae32c558714d83",
    "iid": "43f4b896663a04e8",
    "dirichlet": "c3a353a719e0810d",
    "with_validation": "b52eb1af1f355b63",
    "clusters": "bc2da8d9cecd4c6a",
    "clusters_shuffled": "2465b4ed34f998cb",
}


ENDS = {  # sum and length, shared and then personal
    "fedavg": [1.27262411, 2.56584365, 0.0, 0.0],
    "fedavg_uniform": [1.21374104, 2.56425093, 0.0, 0.0],
    "fedavg_private": [-0.164348894, 2.70494443, 0.0, 0.0],
    "qffl": [1.17876467, 2.53436525, 0.0, 0.0],
    "fedprox": [1.27020768, 2.56558492, 0.0, 0.0],
    "lgfedavg": [-0.0439142547, 1.65303573, 12.3683187, 6.22840001],
    "lgfedavg_v1": [-0.0439142547, 1.67620536, -24.7689337, 7.64586599],
    "local": [0.0, 0.0, 15.1321488, 8.41996818],
    "mtl": [0.0, 0.0, 11.2885634, 7.5547178],
    "mtl_released": [0.0, 0.0, 11.7594141, 7.87164526],
    "fair": [5.74869166, 6.71861074, 29.5273324, 36.7936273],
    "fair_reversal": [5.73837361, 6.71839689, 24.6571181, 36.7542548],
    "fair_pretraining": [0.0, 0.0, 87.5265336, 42.4389107],
    "watched": [2.16831811, 11.648682, 0.0, 0.0],
    "fade": [-7.70330799, 2.87998117, 0.0, 0.0],
    "fade_both": [-7.80446959, 2.88260117, 0.0, 0.0],
    "fade_opt_out": [-8.16050972, 2.85551109, 0.0, 0.0],
    "fade_frozen": [4.83027005, 4.49423812, 48.0, 6.92820323],
    "fade_local": [4.58755087, 4.48098575, 32.1639025, 5.43874683],
    "fade_averaged": [12.4219244, 5.18110671, 0.0, 0.0],
    "cgau_baseline": [1.22346922, 2.56731649, 0.0, 0.0],
    "cgau_kept": [1.09974216, 6.89391364, -0.102845063, 0.518794634],
    "cgau_averaged": [1.16330613, 6.89379989, -0.0195832729, 0.128032251],
    "fedper": [1.34838271, 1.97673781, -0.439142547, 5.19429269],
    "fedrep": [1.16696719, 1.97036537, -0.439142547, 5.16700265],
    "fedbabu": [1.32775904, 1.9732888, -0.439142547, 5.13304923],
    "per_fedavg": [1.81836451, 2.58905273, 0.0, 0.0],
    "per_fedavg_exact": [1.83148397, 2.59764082, 0.0, 0.0],
    "ditto": [1.27262411, 2.56584365, 12.1995981, 8.11083573],
    "apfl": [1.27262411, 2.56584365, 21.1588963, 8.30579262],
    "pfedme": [1.23230253, 2.54983997, 13.2072067, 8.22656519],
    "scaffold": [1.0642245, 2.61308624, -3.24147181, 3.25892062],
    "fednova": [1.3294328, 2.5827343, 0.0, 0.0],
    "fedbn": [-9.25343291, 2.92044672, 64.7099573, 7.96977242],
    "fedavgm": [1.40630045, 2.5654187, 0.0, 0.0],
    "fedadam": [1.09762318, 2.54010747, 0.0, 0.0],
    "fedyogi": [1.09723971, 2.54004372, 0.0, 0.0],
}


def rows_of(scheme: str) -> str:
    found = SCHEMES[scheme]()
    kinds = (k for k in (found.train, found.validation, found.test) if k is not None)
    return digest(*(k.of(d) for k in kinds for d in range(len(found))))


def ends_of(case: str, lanes: str) -> list[float]:
    """Sum and length of the shared, then of the personal parameters after three rounds."""
    make, method = CASES[case]
    training = FALLING if case.startswith("fade") else SGD
    with in_float64(), torch.random.fork_rng():
        torch.manual_seed(0)
        t = run(make(), method, training, 3, lanes=lanes, workers=1).tensors
    return [float(f"{f:.9g}") for n in ("shared", "personal") for f in (t[n].sum(), t[n].norm())]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_partition_moves(scheme):
    assert rows_of(scheme) == ROWS[scheme]


@pytest.mark.parametrize("lanes", ["looped", "batched"])
@pytest.mark.parametrize("case", CASES)
def test_no_method_moves(case, lanes):
    found = ends_of(case, lanes)
    assert case in ENDS, f"add to ENDS, if it is right:\n    {case!r}: {found},"
    assert found == pytest.approx(ENDS[case], rel=1e-5, abs=1e-6)


if __name__ == "__main__":
    print("ROWS =", {scheme: rows_of(scheme) for scheme in SCHEMES})
    print("ENDS =", {case: ends_of(case, "looped") for case in CASES})
