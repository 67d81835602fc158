"""The given method as one more of *every method on every task*."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pandas as pd
from torch import nn

from lgfed_core.engine.checkpoint import claimed
from lgfed_core.errors import Busy, SettingsError, in_a_line

from .. import tasks
from ..run import Everywhere
from ..settings import SCALES, Settings
from .given import Given

METHOD = "yours"


class Yours(Everywhere):
    """Runs ``given`` with the settings of `Everywhere`; checkpoints lie in ``place``.

    left_out: what could not run, each with its reason; failed: whether one was an error.
    """

    failed = False

    name = "compare"
    scales: ClassVar = {
        scale: {n: v for n, v in own.items() if n != "methods"} for scale, own in SCALES.items()
    }

    def __init__(self, given: Given, place: Path, say: Callable[[str], None] = print):
        @dataclass(frozen=True)
        class Mine(Settings):
            methods: tuple[str, ...] = (METHOD,)

            CHOICES: ClassVar = dict(methods=(METHOD,))

            def net(self, method: str, task: tasks.Task, seed: int) -> nn.Module:
                return given.net(task, seed)

            def method(self, name: str, net: nn.Module):
                return given.method(net)

        self.Settings, self.given, self.place, self.say = Mine, given, place, say
        self.fingerprint = given.fingerprint()  # once: a run may import more of the user's files
        self.left_out: list[str] = []

    def folder(self, cfg, seeds: Sequence[int]) -> Path:
        return self.place / "runs" / self.fingerprint / super().folder(cfg, seeds).name

    def measure(
        self,
        cfg: Settings,
        seeds: Sequence[int],
        device: str = "auto",
        workers: int | None = None,
        hours: float | None = None,
    ) -> pd.DataFrame:
        """The tidy rows of all parts that can run; the others are named in ``left_out``.

        Raises SettingsError where none can, and Busy while another process runs them.
        """
        place = self.check(cfg, seeds, device, workers=workers)
        groups, found = self.groups(seeds, place), []
        began, total = time.monotonic(), len(cfg.cells) * len(groups)
        end = began + 3600 * (float("inf") if hours is None else hours)
        for task in cfg.tasks:
            own = replace(cfg, tasks=(task,))
            try:
                for group in groups:
                    with claimed(self.folder(own, group), folder=True):
                        for part, out in self.stages(own, group, place, workers=workers):
                            found.append(self.records(own, part, out))
                            done, mine = len(found), " ".join(map(str, group))
                            left = (time.monotonic() - began) / done * (total - done) / 60
                            self.say(
                                f"{part}, seed{'s' * (len(group) > 1)} {mine}: {done} of {total} "
                                f"parts, about {left:.0f} min left"
                            )
                            if time.monotonic() > end:
                                raise TimeoutError
            except TimeoutError:
                self.left_out.append(f"what comes after {part}: the time was up")
                break
            except Busy:
                raise
            except Exception as error:  # whatever the user's code may raise
                self.left_out.append(f"{task}: {in_a_line(error)}")
                self.failed = True
                if len(cfg.tasks) > 1:
                    self.say(f"left out {self.left_out[-1]}")
        if not found:
            raise SettingsError(f"{self.given.name} ran on no task: {'; '.join(self.left_out)}")
        return pd.concat(found, ignore_index=True)
