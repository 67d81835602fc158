"""The given method as one more of *every method on every task*; all others, on data of yours."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pandas as pd
from torch import nn

from lgfed_core import require
from lgfed_core.engine.checkpoint import claimed
from lgfed_core.errors import Busy, SettingsError, in_a_line
from lgfed_core.methods import LocalOnly, Method
from lgfed_core.papers.parts import who

from .. import tasks
from ..methods import METHODS, missing, no_room
from ..run import Everywhere
from ..settings import SCALES, Settings
from .given import Given
from .own_data import OWN, OwnTask

METHOD, TUNED = "yours", "tuned"  # the second comes after the first


def _without(name: str, scales: Mapping[str, dict]) -> dict[str, dict]:
    """What each scale changes, but for one setting."""
    return {scale: {n: v for n, v in own.items() if n != name} for scale, own in scales.items()}


class Compared(Everywhere):
    """Runs with the settings of `Everywhere`, on its tasks or on ``own``; nothing is recorded.

    Checkpoints lie in ``place``, those of another ``fingerprint`` in another folder. left_out: what
    could not run, each with its reason; failed: whether one was an error.
    """

    name = "compare"
    failed = False
    nothing, hint = "no method ran on your data", ""

    def __init__(self, place: Path, fingerprint: str, own: OwnTask | None):
        self.place, self.fingerprint, self.own = place, fingerprint, own
        self.left_out: list[str] = []

    def task(self, name: str, cfg: Settings) -> tasks.Task:
        return self.own if self.own and name == OWN else super().task(name, cfg)

    def folder(self, cfg, seeds: Sequence[int]) -> Path:
        return self.place / "runs" / self.fingerprint / super().folder(cfg, seeds).name

    def words(self, part: str) -> str:
        """What a part is called as it ends."""
        return part

    def shares(self, cfg: Settings) -> Iterable[tuple[str, Settings]]:
        """What fails by itself, each with its name: the tasks."""
        return ((task, replace(cfg, tasks=(task,))) for task in cfg.tasks)

    def measure(
        self,
        cfg: Settings,
        seeds: Sequence[int],
        device: str = "auto",
        workers: int | None = None,
        hours: float = require.YEAR,
    ) -> pd.DataFrame:
        """The tidy rows of all parts that can run; the others are named in ``left_out``.

        Raises SettingsError where none can, and Busy while another process runs them.
        """
        place = self.check(cfg, seeds, device, workers=workers)
        groups, found, shares = self.groups(seeds, place), [], list(self.shares(cfg))
        began, total = time.monotonic(), len(cfg.cells) * len(groups)
        end = began + 3600 * hours
        for name, own in shares:
            if not own.cells:
                self.left_out += [f"{name}: {own.missing(name, m)}" for m in own.methods]
                continue
            try:
                for group in groups:
                    with claimed(self.folder(own, group), folder=True):
                        for part, out in self.stages(own, group, place, workers=workers):
                            found.append(self.records(own, part, out))
                            done = len(found)
                            left = (time.monotonic() - began) / done * (total - done) / 60
                            at = f"{done} of {total} parts, about {left:.0f} min left"
                            print(f"{self.words(part)}, {who(group)}: {at}")
                            if time.monotonic() > end:
                                raise TimeoutError
            except TimeoutError:
                self.left_out.append(f"what comes after {part}: the time was up")
                break
            except Busy:
                raise
            except Exception as error:  # whatever the user's code may raise
                self.left_out.append(f"{name}: {in_a_line(error)}")
                self.failed = True
                if len(shares) > 1:
                    print(f"left out {self.left_out[-1]}")
        if not found:
            raise SettingsError(f"{self.nothing}: {'; '.join(self.left_out)}{self.hint}")
        return pd.concat(found, ignore_index=True)


class Yours(Compared):
    """Runs the method that is ``given``; ``tuned``: each device fine-tunes its model by itself in
    the last rounds, as many as *fine-tuned FedAvg* has."""

    scales: ClassVar = _without("methods", SCALES)

    def __init__(self, given: Given, place: Path, own: OwnTask | None = None, tuned: bool = False):
        runs = TUNED if tuned else METHOD

        @dataclass(frozen=True)
        class Mine(Settings):
            methods: tuple[str, ...] = (runs,)

            CHOICES: ClassVar = dict(methods=(runs,))

            def net(self, method: str, task: tasks.Task, seed: int) -> nn.Module:
                return given.net(task, seed)

            def after(self, method: str) -> str:
                return METHOD if method == TUNED else ""

            def missing(self, task: str, method: str) -> str:
                return missing(task, given.kin)

            def method(self, name: str, net: nn.Module) -> Method:
                return LocalOnly() if name == TUNED else given.method(net)

        self.Settings, self.given, self.runs = Mine, given, runs
        self.called = f"{given.name}, fine-tuned" if tuned else given.name
        self.nothing = f"{self.called} ran on no task"
        self.hint = given.hint
        code = given.fingerprint()  # once: a run may import more of the user's files
        super().__init__(place, f"{code}-{own.fingerprint}" if own else code, own)
        if own:
            self.Settings, self.scales = _on_own(own, Mine, self.scales, given.kin)

    def words(self, part: str) -> str:
        return part.replace(f":{self.runs}:", f":{self.called}:")


class Others(Compared):
    """Runs all methods that fit on ``own``."""

    def __init__(self, place: Path, own: OwnTask):
        super().__init__(place, own.fingerprint, own)
        self.Settings, self.scales = _on_own(own, Settings, SCALES)

    def shares(self, cfg: Settings) -> Iterable[tuple[str, Settings]]:
        """The methods."""
        fit = dict.fromkeys(method for _, method, _ in cfg.cells.values())
        return ((METHODS[method], replace(cfg, methods=(method,))) for method in fit)


def _on_own(
    own: OwnTask, of: type[Settings], scales: dict, kin: str = ""
) -> tuple[type[Settings], dict]:
    """Settings and scales whose one task is ``own``; kin: of `Given`."""

    @dataclass(frozen=True)
    class OnOwn(of):  # type: ignore[valid-type, misc]
        tasks: tuple[str, ...] = (OWN,)

        CHOICES: ClassVar = of.CHOICES | dict(tasks=(OWN,))

        def missing(self, task: str, method: str) -> str:
            return no_room(kin or method, own.grouped, own.mixed)

    return OnOwn, _without("tasks", scales)
