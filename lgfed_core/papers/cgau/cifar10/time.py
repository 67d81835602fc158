"""What a round of CGAU costs beside the baseline's: claim C9 of Rieger et al. 2020, timed apart.

The time of a step depends on shapes, not on what the numbers say: features are random here, in the
dimensions of Figure 2b (2,048 numbers, 2 x 128 units, ten clients, ten steps of 32 rows each). The
methods take turns within a repetition, so that a machine that slows down does so for all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lgfed_core.data.features.stored import Features, features
from lgfed_core.engine import Outcome, run
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.records import select
from lgfed_core.papers.parts import Part

from . import run as cifar10

NAME = "cgau.time"
TABLE = "cgau_time"
METRIC = "ms_per_round"  # milliseconds
UNUSED = ("features", "used", "per_class", "precision", "epochs")  # of pictures, which it has not
SCALES = {
    "smoke": dict(rounds=2, units=8, rows=300),
    "quick": dict(rounds=5),
    "paper": dict(rounds=20),
}


@dataclass(frozen=True)
class Settings(cifar10.Settings):
    """ways: one client after the other as most simulations do ("looped"; on a processor only), or
    all clients in one tensor ("batched"). rows: how many there are, a sixth of them for testing."""

    shuffles: tuple[float, ...] = (0.0,)
    ways: tuple[str, ...] = ("looped", "batched")
    rows: int = 12_000

    CHOICES: ClassVar = dict(ways=("looped", "batched"))

    def fits(self) -> None:
        super().fits()
        for name in UNUSED:
            usual = {getattr(cifar10.Settings, name), cifar10.RELEASED.get(name)}
            if (value := getattr(self, name)) not in usual:
                raise SettingsError(f"{name} is {value!r}; {NAME} has random numbers: leave it out")

    most = property(lambda self: self.rows - self.rows // 6)

    def load(self) -> Features:
        return _random(self.rows)


@lru_cache(maxsize=1)
def _random(rows: int) -> Features:
    rng, y = np.random.default_rng(0), np.arange(rows) % 10
    x = rng.standard_normal((rows, 2048), np.float32)
    return features("random", x, y, y, test=np.arange(rows) < rows // 6, stand_in="random numbers")


class Time(cifar10.Cifar10):
    """Each way and method in turn (``way_method``), once per repetition; nothing is resumed.

    ``final`` has the milliseconds per round. A seed is a repetition; the first comes after a
    warm-up.
    """

    name, table, together = NAME, TABLE, True
    Settings, scales, chooses = Settings, SCALES, frozenset({"methods", "ways"})

    def check(self, cfg, seeds, device="auto", lanes="auto", workers=None):
        if lanes != "auto":
            raise SettingsError(
                f"lanes is {lanes}; {NAME} times both kinds: choose by its settings, ways={lanes}"
            )
        return super().check(cfg, seeds, device, lanes, workers)

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        ways = [way for way in cfg.ways if way == "batched" or device.type == "cpu"]
        for seed in seeds:
            for name in (f"{way}_{method}" for way in ways for method in cfg.methods):
                yield Part(name, cfg.rounds, seeds=(seed,))

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        stored, parts = cfg.load(), list(self.parts(cfg, seeds, device))
        made = {m: self.federation(cfg, stored, [0], m, device) for m in cfg.methods}

        def once(part: str, rounds: int) -> Outcome:
            way, _, name = part.partition("_")
            fed, start = made[name]
            workers = engine.get("workers") if way == "looped" else None
            how = dict(lanes=way, workers=workers, tracker=self.tracker(cfg))
            return run(fed, cfg.method(name), cfg.training, rounds, start, **how)

        for name in dict.fromkeys(part.name for part in parts):
            once(name, 2)
        for part in tqdm(parts, f"{cfg.protocol} repetitions", leave=False):
            found = once(part.name, cfg.rounds)
            final = pd.DataFrame({METRIC: 1000 * found.seconds / cfg.rounds}, index=part.seeds)
            yield part.name, replace(found, final=final.rename_axis("seed"))

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """One row: milliseconds per round, with the columns way and method."""
        way, _, method = part.partition("_")
        found = pd.DataFrame({"seed": outcome.final.index, "value": outcome.final[METRIC]})
        ids = dict(table=TABLE, way=way, method=method, metric=METRIC, selection="last")
        return found.assign(**ids)


TIME = Time()


def ratios(found: pd.DataFrame) -> pd.DataFrame:
    """Time over the baseline's in the same repetition: way, method, seed, ratio.

    found: rows of this experiment, of one protocol and scale. Empty where the baseline has not run.
    """
    each = found.pivot_table("value", ["way", "seed"], "method")
    if "baseline" not in each:
        return pd.DataFrame(columns=["way", "seed", "method", "ratio"])
    each = each.div(each["baseline"], axis=0).drop(columns="baseline").dropna(axis=1, how="all")
    return each.rename_axis(columns="method").stack().rename("ratio").reset_index()


def stored(protocol: str = "as_described") -> pd.DataFrame:
    """Our recorded rows of one protocol; may be empty."""
    return select(NAME, columns=("way", "method"), table=TABLE, scale="paper", protocol=protocol)
