"""How well the models of a run do: on each device's own rows, on all of them, and averaged.

The arguments ``shared`` and ``personal`` name tensors of parameters of the run, ``rows`` a kind of
rows: "train", "validation", "test", or "pool", the whole test set. That serves one model alone: of
it each device would predict a part, whichever rows that has.
"""

import torch
from torch import Tensor

from lgfed_core.errors import SettingsError

from .batched import Engine
from .outputs import decided
from .phase import Job


def accuracies(
    engine: Engine, shared: str, personal: str, rows: str, only: list[Job] | None = None
) -> Tensor:
    """Accuracy of each device's model on its own ``rows`` -> float [R, K]; NaN where it has none.

    ``only``: (run, device) pairs to test; the others get a negative number. Raises SettingsError
    where no device has such rows, and for "pool" with parameters of each device's own.
    """
    size = _sizes(engine, shared, personal, rows).cpu()
    return engine.correct(shared, personal, rows, only) / size


def mean_accuracy(engine: Engine, shared: str, personal: str, rows: str) -> Tensor:
    """Mean of `accuracies` over the devices that have such rows -> [R]; NaN where none has."""
    return accuracies(engine, shared, personal, rows).nanmean(1)


def pooled_accuracy(engine: Engine, shared: str, personal: str, rows: str) -> Tensor:
    """Accuracy of one model on all ``rows`` together -> [R]; NaN where there are none.

    Raises SettingsError as `accuracies` does.
    """
    size = _sizes(engine, shared, personal, rows).sum(1)
    return engine.correct(shared, personal, rows).sum(1) / size


def _sizes(engine: Engine, shared: str, personal: str, rows: str) -> Tensor:
    """How many ``rows`` each device has [R, K]."""
    phase = engine.phase
    if rows not in phase.rows:
        raise SettingsError(f"no {rows!r} rows to test on; there are {', '.join(phase.rows)}")
    for name in (shared, personal) if rows == "pool" else ():
        own = phase.tensors[name]
        if own.dim() == 3 and own.shape[2]:
            raise SettingsError(
                f"{name!r} has parameters for each device, and the whole test set serves one "
                "model: average them over devices before, or test devices on their own rows"
            )
    return torch.stack([r.size for r in phase.rows[rows][1]])


def ensemble(engine: Engine, shared: str, personal: str) -> dict[str, Tensor]:
    """Accuracy [R] on the whole test set of the devices' averaged outputs, and probabilities."""
    means = engine.mean_outputs(shared, personal, "test")  # [R, 2, n, classes]
    right = (decided(means) == engine.phase.rows["test"][0].y).float().mean(-1).cpu()  # [R, 2]
    ways = ("new_test_acc_outputs", "new_test_acc_probabilities")
    return dict(zip(ways, right.unbind(1), strict=True))
