"""A run sent elsewhere: asked for and answered in JSON, in a process of its own.

The first line of standard input says what to run, standard output gets the rows, and the process
ends at once when that input is closed: so it never outlives who asked, however that one ended.
Nothing is recorded here; checkpoints lie where they do for any run on this machine (LGFED_RUNS).
"""

import hashlib
import json
import os
import sys
import threading
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from lgfed_core import require
from lgfed_core.engine.processes import MOST
from lgfed_core.errors import LgfedError, SettingsError, in_a_line
from lgfed_core.papers import commands, experiments


@dataclass(frozen=True)
class Errand:
    """What to run, in plain values: seeds that train together, at settings of one experiment."""

    experiment: str
    scale: str
    protocol: str
    changes: dict[str, Any]
    seeds: tuple[int, ...]
    device: str = "auto"  # of the machine that takes it
    workers: int | None = 1
    lanes: str = "auto"
    kept: tuple[str, ...] = ()  # parts whose rows stay as they are

    def __post_init__(self):
        require.at_most(MOST, workers=self.workers)

    def asked(self) -> str:
        """A line of JSON for `answer`, on a machine with the same code."""
        return json.dumps(asdict(self) | {"code": code()})

    def __str__(self) -> str:
        return commands.run(self.experiment, self.protocol, self.changes.items(), self.seeds)


@cache
def code() -> str:
    """A hash of this package's modules: the same on all machines that rows of one table are of."""
    total, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        total.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return total.hexdigest()[:16]


def answer(asked: str) -> str:
    """Run what `Errand.asked` says; its rows as JSON, or the error that was raised."""
    try:
        said = json.loads(asked)
        if (theirs := said.pop("code")) != code():
            raise SettingsError(
                f"this machine has other code ({code()}) than who asks ({theirs}): bring its "
                "lgfed_core to the same commit, and start the worker again"
            )
        errand = Errand(**{name: _tuples(value) for name, value in said.items()})
        changes = {name: _tuples(value) for name, value in errand.changes.items()}
        experiment = experiments.find(errand.experiment)
        cfg = experiment.settings(errand.scale, errand.protocol, **changes)
        how = dict(device=errand.device, workers=errand.workers, lanes=errand.lanes)
        rows, _ = experiment.run(cfg, errand.seeds, record=False, kept=errand.kept, **how)
    except Exception as error:  # whatever an experiment of one's own may raise
        return json.dumps({"error": in_a_line(error)})
    return json.dumps(rows.to_dict("split", index=False))


def rows(answered: str) -> pd.DataFrame:
    """The rows of an `answer`, the last line of what a process has said: an experiment's module may
    print when it is imported. Raises LgfedError with the text of an error that was raised there."""
    last = answered.rstrip("\n").rpartition("\n")[2]
    try:
        said = json.loads(last)
    except ValueError:
        raise LgfedError(f"no rows came back, but {last[:200]!r}") from None
    if "error" in said:
        raise LgfedError(said["error"])
    return pd.DataFrame(said["data"], columns=said["columns"])


def _tuples(value: Any) -> Any:
    """Lists, which JSON makes of tuples, as tuples again."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _end_with_input() -> None:
    while os.read(0, 4096):  # and not by sys.stdin, for whose lock forked workers would wait
        pass
    os._exit(1)  # checkpoints are whole at any instant


if __name__ == "__main__":
    line, out = sys.stdin.readline(), sys.stdout
    sys.stdout = sys.stderr  # whatever a run prints is no part of the answer
    threading.Thread(target=_end_with_input, daemon=True).start()
    out.write(answer(line))
    out.flush()
    os._exit(0)  # without waiting for that thread
