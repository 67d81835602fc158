"""An experiment: settings, parts that run one after another, and the records that they leave.

A page's experiment is a class of a dozen lines or two; what those of one paper share is a class
between it and `Experiment` (`lgfedavg.phases`, `cgau.federated`).
"""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from lgfed_core import require
from lgfed_core.engine import CPU, Outcome
from lgfed_core.engine.checkpoint import claimed, folder_name
from lgfed_core.engine.processes import checked_workers
from lgfed_core.errors import SettingsError
from lgfed_core.evidence import records as results
from lgfed_core.evidence.rows import DIVERGED, PROTOCOLS, identifying
from lgfed_core.evidence.vocabulary import DEVICES, LANES
from lgfed_core.paths import RUNS

from .parts import Part, Piece, last_round, readable, refuse_missing, saved_at
from .settings import Checked, refuse_slips, refuse_unknown

Device = str | torch.device
MOST_SEEDS = 1000  # of one run


class Experiment:
    """What all experiments have in common; a page's own class says what is special about it.

    It gives the attributes without a default, and `rounds`, `train` and `measured`.
    """

    name: ClassVar[str]  # as `python -m lgfed_core run` and data/results call it
    table: ClassVar[str]  # the table of the paper that it fills, or one of our own
    Settings: ClassVar[type[Checked]]
    scales: ClassVar[dict[str, dict]]  # what each scale changes
    released: ClassVar[dict] = {}  # what the protocol `as_released` changes
    protocols: ClassVar[tuple[str, ...]] = PROTOCOLS[:1]  # both, where one was released
    chooses: ClassVar[frozenset[str]] = frozenset()  # settings that pick cells and change none
    one_value: ClassVar[frozenset[str]] = frozenset()  # of these, in a command (`commands`)
    stem: ClassVar[str] = "{scale}-{protocol}"  # how the name of a folder of checkpoints begins
    shared: ClassVar[frozenset[str] | None] = None  # settings that share one; None: all of chooses
    together: ClassVar[bool] = False  # all seeds at once on a CPU as well (tiny networks)
    usual_lanes: ClassVar[str] = "auto"  # what lanes are if nobody says; "auto": by the device

    def settings(self, scale: str = "paper", protocol: str = "as_described", **changes):
        """Settings of a scale, with single values changed: ``settings("quick", classes=5)``."""
        cfg = self._made(scale, protocol, changes)
        cfg.fits()
        return cfg

    def _made(self, scale: str, protocol: str, changes: dict):
        refuse_slips(self)
        require.one_of("scale", scale, self.scales)
        require.one_of("protocol", protocol, PROTOCOLS)
        refuse_unknown(self, changes)
        base = replace(self.Settings(protocol, scale), **changes)  # each is checked, and then used
        require.one_of("protocol", protocol, self.protocols)
        usual = self.usual(scale, protocol, changes)
        refuse_unknown(self, usual, f", which scale {scale} or {protocol} changes")
        return replace(base, **(usual | changes))

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        """What a scale and a protocol change, and what follows from ``changes``."""
        return (self.released if protocol == "as_released" else {}) | self.scales[scale]

    def rounds(self, cfg) -> Mapping[str, int | None]:
        """The parts, in order, and how many rounds each trains; None: it does not train."""
        raise NotImplementedError

    def parts(self, cfg, seeds: Sequence[int], device: torch.device) -> Iterable[Part]:
        """What `train` yields for these seeds, in order; here: `rounds`, each in its own file."""
        folder = self.folder(cfg, seeds)
        for name, rounds in self.rounds(cfg).items():
            yield Part(name, rounds, saved_at(folder, name) if rounds else None)

    def pieces(self, protocol: str) -> list[Piece]:
        """What can be run of it at paper scale, each to be had alone; here: one for all of it."""
        return [Piece(self.name, protocol, "", cell=(("table", self.table),))]

    def joined(self, pieces: Iterable[Piece]) -> dict[str, Any]:
        """The changed settings under which one run makes all of ``pieces``: tuples are joined, and
        what one of them switches on is on."""
        found: dict[str, Any] = {}
        for name, value in (change for piece in pieces for change in piece.changes):
            if isinstance(value, tuple):
                found[name] = tuple(dict.fromkeys((*found.get(name, ()), *value)))
            else:
                found[name] = found.get(name) or value
        return found

    def remade(self, rows: pd.DataFrame) -> list[str] | None:
        """The commands that make stored ``rows`` again, if these are of settings that no piece has;
        None: those of its pieces (`commands.of_rows`)."""
        return None

    def train(
        self, cfg, seeds: Sequence[int], device: torch.device, folder: Path | None, **engine
    ) -> Iterator[tuple[str, Outcome]]:
        """Run part by part, all ``seeds`` together; without ``folder`` nothing is read or saved.

        engine: ``lanes`` and ``workers`` of `engine.run`.
        """
        raise NotImplementedError

    def measured(self, cfg, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part, for each of its seeds, but for what `records` says of all."""
        raise NotImplementedError

    def progress(self, cfg, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw, where a page draws any; histories: by part, as `run` returns them."""
        return pd.DataFrame()

    def check(
        self,
        cfg,
        seeds: Sequence[int],
        device: Device = "auto",
        lanes: str = "auto",
        workers: int | None = None,
    ) -> torch.device:
        """The device that is meant. Raises SettingsError for what cannot run, before any data."""
        if type(cfg) is not self.Settings:
            raise SettingsError(f"{self.name} takes settings of its own: {self.name}.settings(...)")
        cfg.fits()
        require.at_most(MOST_SEEDS, **{"the number of seeds": len(seeds)})
        wrong = [s for s in seeds if not isinstance(s, int | np.integer) or not 0 <= s < 2**32]
        if wrong or not len(seeds) or len(set(seeds)) < len(seeds):
            raise SettingsError(f"seeds are {list(seeds)}; whole numbers from 0, each once")
        place = place_of(device)
        require.one_of("lanes", lanes, LANES)
        lanes = self.usual_lanes if lanes == "auto" else lanes
        if lanes == "looped" and place.type != "cpu":
            raise SettingsError(f"looped lanes run on a CPU, not on {place.type}; use batched")
        if lanes == "auto":
            lanes = "looped" if place.type == "cpu" else "batched"
        if checked_workers(workers) > 1 and workers is not None and lanes == "batched":
            raise SettingsError(
                f"workers is {workers}; here {self.name} trains batched lanes, in one process: "
                "leave workers out, or use looped lanes on a CPU"
            )
        if not any(True for _ in self.parts(cfg, seeds, place)):
            raise SettingsError(f"{self.name}: these settings leave no part of it to run")
        return place

    def stages(
        self, cfg, seeds: Sequence[int], device: Device = CPU, resume: bool = True, **engine
    ) -> Iterator[tuple[str, Outcome]]:
        """Run part by part, yielding (name, outcome); all ``seeds`` train together.

        A part that is complete is read from its checkpoint instead of run, unless not ``resume``.
        engine: ``lanes`` and ``workers``, as for `run`.
        """
        place = self.check(cfg, seeds, device, **engine)
        if engine.get("lanes", "auto") == "auto":
            engine["lanes"] = self.usual_lanes
        return self.train(cfg, seeds, place, self.folder(cfg, seeds) if resume else None, **engine)

    def records(self, cfg, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part, for each of its seeds, with its scale, place and time.

        A seed that diverged, or of which a number is not finite (which warns), has one row for each
        selection instead, with the metric `DIVERGED` and the round (from 1); the others stay as
        they are.
        Raises ResultsError where `measured` has no number of a seed whose own are all finite.
        """
        lost = dict(outcome.diverged)
        rows = self.measured(cfg, part, readable(outcome, lost))
        refuse_missing(rows, outcome, f"{self.name}, part {part!r}")
        scale = rows.get("scale", cfg.recorded)
        rows = rows.assign(
            protocol=cfg.protocol, scale=scale, seconds=outcome.seconds, **outcome.provenance
        )
        bare = rows[~np.isfinite(rows["value"].astype(float)) & ~rows["seed"].isin(lost)]
        if len(bare):
            warnings.warn(
                f"{self.name}, part {part!r}: seed {bare['seed'].iloc[0]} has no number as "
                f"{bare['metric'].iloc[0]}, and counts as diverged with all its others; a measure "
                "that does not always exist is to be left out of its rows",
                RuntimeWarning,
                stacklevel=2,
            )
        lost = dict.fromkeys(bare["seed"], last_round(outcome)) | lost
        own, main = rows["seed"].isin(lost), rows["table"] == rows["table"].iloc[0]
        told = rows[own & main].drop_duplicates(["seed", "selection", *identifying(rows)])
        told = told.assign(metric=DIVERGED, value=told["seed"].map(lost).astype(float))
        return pd.concat([rows[~own], told], ignore_index=True) if lost else rows

    def plan(self, cfg, seeds: Sequence[int], device: Device = "auto", **engine) -> list[Part]:
        """What `run` will run, in order; reads the heads of checkpoints, and no data."""
        place = self.check(cfg, seeds, device, **engine)
        return [
            replace(part, seeds=part.seeds or tuple(group))
            for group in self.groups(seeds, place)
            for part in self.parts(cfg, group, place)
        ]

    def run(
        self,
        cfg,
        seeds: Sequence[int],
        *,
        record: bool = True,
        resume: bool = True,
        kept: Collection[str] = (),
        **engine,
    ) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
        """Run at ``cfg`` for each seed; rows go to data/results part by part.

        engine: ``device``, "cpu", "cuda", or "auto" (a GPU if there is one), ``lanes`` and
        ``workers``, as for `check`. A GPU takes all seeds at once, a CPU one after the other, which
        is as fast there and leaves complete seeds behind when stopped, unless the experiment takes
        them ``together``.

        kept: parts whose stored rows stay as they are, as these run only because others go on from
        them; they leave no new rows.

        While it lasts it holds the folder of its checkpoints, unless not ``resume``; raises Busy
        where another process does.

        Returns the tidy rows and, by part, the histories (one line per evaluated round and seed).
        """
        place = self.check(cfg, seeds, **engine)
        if record:
            results.writable()
        engine["device"] = place
        found: list[pd.DataFrame] = []
        histories: dict[str, list[pd.DataFrame]] = {}
        for group in self.groups(seeds, place):
            with claimed(self.folder(cfg, group) if resume else None, folder=True):
                for part, outcome in self.stages(cfg, group, resume=resume, **engine):
                    if part not in kept:
                        found.append(self.records(cfg, part, outcome))
                        if record:
                            results.record(self.name, found[-1])
                    histories.setdefault(part, []).append(outcome.history)
        return pd.concat(found, ignore_index=True), {n: pd.concat(h) for n, h in histories.items()}

    def folder(self, cfg, seeds: Sequence[int]) -> Path:
        """Where checkpoints go: changed settings and other seeds never share a folder."""
        free = self.chooses if self.shared is None else self.shared
        usual = self._made(cfg.scale, cfg.protocol, {n: getattr(cfg, n) for n in free})
        return RUNS / self.name / folder_name(self.stem.format(**vars(cfg)), cfg, usual, seeds)

    def groups(self, seeds: Sequence[int], place: torch.device) -> list[list[int]]:
        """The seeds that train together."""
        alone = place.type == "cpu" and not self.together
        return [[seed] for seed in seeds] if alone else [list(seeds)]


def place_of(device: Device) -> torch.device:
    """The device that a name stands for. Raises SettingsError for one that is not here."""
    if isinstance(device, torch.device):
        return device
    require.one_of("device", device, DEVICES)
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingsError("device cuda: PyTorch sees no GPU here; use cpu or auto")
    if device == "cpu" or not torch.cuda.is_available():
        return CPU
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    return torch.device("cuda")
