"""The experiments, one file per section of a paper.

An experiment is a module with

* ``NAME``, ``TABLE``, ``SCALES``, ``Settings`` and ``CHOOSES``: settings that pick cells of the
  paper's table without changing what a cell means, so that their rows may be recorded;
* ``settings(scale, protocol, **changes)``;
* ``stages(settings, seeds, device)``: its parts, (name, outcome), as they finish;
* ``rows(settings, part, outcome)``: tidy rows; ``progress(settings, histories)``: curves;
* ``PROTOCOLS``, where it does not have all of `results.PROTOCOLS`;
* ``TOGETHER = True`` where all seeds are best run at once on a CPU, too (tiny networks).
"""

from collections.abc import Sequence
from types import ModuleType

import pandas as pd
import torch

from lgfed_core.errors import SettingsError, one_of
from lgfed_core.evidence import records as results
from lgfed_core.papers.cgau.audio import run as cgau_audio
from lgfed_core.papers.cgau.cifar10 import new_clients, run as cgau_cifar10, time as cgau_time
from lgfed_core.papers.fade.digits import run as fade_digits
from lgfed_core.papers.lgfedavg.cifar10 import run as lgfedavg_cifar10
from lgfed_core.papers.lgfedavg.fairness import run as lgfedavg_adult
from lgfed_core.papers.lgfedavg.layers import run as lgfedavg_cuts
from lgfed_core.papers.lgfedavg.mnist import run as lgfedavg_mnist
from lgfed_core.papers.lgfedavg.version1 import run as lgfedavg_v1

ALL: dict[str, ModuleType] = {
    m.NAME: m
    for m in (
        lgfedavg_mnist,
        lgfedavg_cifar10,
        lgfedavg_v1,
        lgfedavg_cuts,
        lgfedavg_adult,
        cgau_audio,
        cgau_cifar10,
        new_clients,
        cgau_time,
        fade_digits,
    )
}


def find(name: str) -> ModuleType:
    """The experiment called ``name``. Raises SettingsError that lists all of them."""
    if name not in ALL:
        raise SettingsError(f"no experiment is called {name!r}; there are: {', '.join(ALL)}")
    return ALL[name]


def protocols(experiment: ModuleType) -> tuple[str, ...]:
    """The protocols that ``experiment`` has."""
    return getattr(experiment, "PROTOCOLS", results.PROTOCOLS)


def run(
    experiment: ModuleType,
    cfg,
    seeds: Sequence[int],
    *,
    device: str = "auto",
    record: bool = True,
    **engine,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Run ``experiment`` at ``cfg`` for each seed; rows go to data/results part by part.

    device: "cpu", "cuda", or "auto" (a GPU if there is one). A GPU takes all seeds at once, a CPU
    one after the other, which is as fast there and leaves complete seeds behind when stopped,
    unless the experiment takes them ``TOGETHER``.

    Returns the tidy rows and, by part, the histories (one line per evaluated round and seed).
    """
    found, histories = [], {}
    place = _place(device)
    alone = place.type == "cpu" and not getattr(experiment, "TOGETHER", False)
    groups = [[seed] for seed in seeds] if alone else [list(seeds)]
    for group in groups:
        for part, outcome in experiment.stages(cfg, group, place, **engine):
            new = experiment.rows(cfg, part, outcome)
            if record:
                results.record(experiment.NAME, new)
            found.append(new)
            histories.setdefault(part, []).append(outcome.history)
    return pd.concat(found, ignore_index=True), {n: pd.concat(h) for n, h in histories.items()}


def _place(device: str) -> torch.device:
    one_of("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingsError("device cuda: PyTorch sees no GPU here; use cpu or auto")
    if device == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    return torch.device("cuda")
