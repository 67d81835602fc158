"""The experiments, one file per section of a paper.

An experiment offers ``NAME``, ``PROTOCOLS``, ``SCALES``, ``settings(scale, protocol, **changes)``,
``stages(settings, seed)`` (parts as they finish) and ``rows(settings, part, outcome)`` and
``progress(settings, histories)``.
"""

from collections.abc import Iterable
from types import ModuleType

import pandas as pd

from .. import results
from ..errors import SettingsError
from . import lgfedavg_mnist

ALL: dict[str, ModuleType] = {module.NAME: module for module in (lgfedavg_mnist,)}


def find(name: str) -> ModuleType:
    """The experiment called ``name``. Raises SettingsError that lists all of them."""
    if name not in ALL:
        raise SettingsError(f"no experiment is called {name!r}; there are: {', '.join(ALL)}")
    return ALL[name]


def run(
    experiment: ModuleType, cfg, seeds: Iterable[int], *, record: bool = True, **engine
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Run ``experiment`` at ``cfg`` for each seed; rows go to data/results part by part.

    Returns the tidy rows and, by part, the histories (one line per evaluated round and seed).
    """
    found, histories = [], {}
    for seed in seeds:
        for part, outcome in experiment.stages(cfg, seed, **engine):
            new = experiment.rows(cfg, part, outcome).assign(**outcome.provenance)
            if record:
                results.record(experiment.NAME, new)
            found.append(new)
            histories.setdefault(part, []).append(outcome.history)
    return pd.concat(found, ignore_index=True), {n: pd.concat(h) for n, h in histories.items()}
