"""The attack on the engine's own uploads: what comes back, and what noise does to it."""

import pytest
import torch

from lgfed_core.data import Dataset, Split
from lgfed_core.methods import FedAvg
from lgfed_core.methods.privacy import Privacy
from lgfed_core.metrics import inversion
from lgfed_core.papers import gradient_inversion


@pytest.fixture(scope="module")
def scene():
    rng = torch.Generator().manual_seed(0)

    def rows(n):
        y = torch.arange(n) % 10
        x = 0.3 * torch.rand(n, 784, generator=rng) + (torch.arange(784) % 10 == y[:, None])
        return Split(
            gradient_inversion.BLACK
            + x / 1.3 * (gradient_inversion.WHITE - gradient_inversion.BLACK),
            y,
        )

    return gradient_inversion.scene(Dataset("bars", rows(300), rows(20), 10), 3, 10, 1)


def test_the_servers_see_what_they_should(scene):
    found = gradient_inversion.attacks(scene, [1], rows=10, steps=20)
    known = {name: inversion.correlation(*both).mean() for name, both in found.items()}
    assert known["FedAvg, one row"] > 0.999
    assert list(known) == [
        *("FedAvg, one row", "FedAvg, a round of 10 rows", "LG-FedAvg, just now"),
        *("LG-FedAvg, 1 round later", "LG-FedAvg, a stranger"),
    ]
    assert known["LG-FedAvg, just now"] > 0.2 + known["LG-FedAvg, a stranger"]
    assert all(said.shape == true.shape == (3, 784) for said, true in found.values())


def test_nothing_of_the_private_layers_is_heard(scene):
    for change in gradient_inversion.overhear(scene, gradient_inversion.lg(scene.net)):
        assert set(change) == {f"fc{n}.{part}" for n in (3, 4, 5) for part in ("weight", "bias")}


def test_noise_hides_the_row(scene):
    loud = FedAvg(upload=[Privacy(1.0, 0.1)])
    changes = gradient_inversion.overhear(scene, loud)
    said = gradient_inversion.read_rows(changes, gradient_inversion.FIRST)
    assert inversion.correlation(said, scene.rows()).abs().max() < 0.3
