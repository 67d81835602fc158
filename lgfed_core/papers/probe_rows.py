"""The rows that probes of h are fitted to and judged on, the same for every device."""

import torch
from numpy.typing import NDArray

from lgfed_core.engine.batched import Engine
from lgfed_core.engine.phase import Phase
from lgfed_core.errors import SettingsError
from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream

FIT, JUDGE = "probe_fit", "probe_judge"  # kinds of rows, beside "test" and so on
OF = {FIT: "validation", JUDGE: "test"}  # of which rows each is drawn


def draw(phase: Phase, most: tuple[int, int]) -> None:
    """Lay out `FIT` and `JUDGE` in ``phase``: at most so many of those that its devices hold
    together, in random order."""
    for which, (name, kind) in enumerate(OF.items()):
        split, per_run = phase.rows[kind]
        some = []
        for seed, rows in zip(phase.seeds, per_run, strict=True):
            held = rows.all.sort().values
            order = stream(seed, Purpose.PROBES, which).permutation(len(held))[: most[which]]
            some.append(ClientIndices.from_lists([held[torch.from_numpy(order)]] * len(rows)))
        phase.rows[name] = split, some


def features(engine: Engine, rows: str) -> NDArray:
    """What each device's own model makes of them, h [R, K, n, d]."""
    found = engine.own_outputs("shared", "personal", rows, features=True)
    return found.cpu().numpy()


def truth(phase: Phase, rows: str, run: int) -> tuple[NDArray, NDArray]:
    """Labels [n] and groups [n]. Raises SettingsError for rows without a group."""
    split, per_run = phase.rows[rows]
    mine = split.take(per_run[run].of(0).to(split.y.device))
    if mine.groups is None:
        raise SettingsError("a probe for the group needs rows with one; this data set has none")
    return mine.y.cpu().numpy(), mine.groups[:, 0].cpu().numpy()
