"""Settings at random, run at smoke scale: each is refused by a SettingsError or runs to its rows.

    python tests/fuzz_settings.py --minutes 15 [--only fade.digits] [--seed 0] [--plan]

Prints what ended otherwise, then how many were tried, and of how many experiments. With ``--plan``
no data are read and nothing is trained: a setting is refused, or its run can be planned.
`tests/papers/test_settings.py` draws from the same values in that way.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from lgfed_core.errors import DataError, PartitionError, SettingsError
from lgfed_core.papers import experiment as base, experiments
from lgfed_core.papers.settings import USUAL, Kind, _declared, _kinds

LONGEST = 30  # seconds for one of them
NUMBERS = {
    int: (-1, 0, 1, 2, 3, 5, 7, 12),
    float: (float("inf"), float("nan"), -1.0, 0.0, 1e-9, 0.2, 0.5, 0.9, 1.0, 1.5, 30.0, 1e30),
    str: ("", "nothing"),
    bool: (True, False),
}
ODD = (None, "x", 2.5, True, (), ("x",), [1], 2**70, float("-inf"))


def drawn(rng: random.Random, experiment: base.Experiment, name: str) -> Any:
    """A value for a setting: mostly of its type and in its range, often at an edge."""
    cls = experiment.Settings
    kind: Kind = _kinds(cls)[name]
    if rng.random() < 0.05:
        return rng.choice(ODD)
    if kind.optional and rng.random() < 0.2:
        return None
    known = tuple(_declared(cls, "CHOICES").get(name, ()))

    def one(of: type) -> Any:
        if known and rng.random() < 0.9:
            return rng.choice(known)
        allowed = _declared(cls, "RANGES").get(name) or USUAL.get(of)
        numbers = [n for n in NUMBERS[of] if allowed is None or n in allowed]
        return rng.choice(numbers if rng.random() < 0.9 else NUMBERS[of])

    if kind.many:
        return tuple(one(kind.kinds[0]) for _ in range(rng.randrange(4)))
    return tuple(map(one, kind.kinds)) if len(kind.kinds) > 1 else one(kind.kinds[0])


def changes(rng: random.Random, experiment: base.Experiment, most: int = 3) -> dict[str, Any]:
    """A few changed settings."""
    names = [name for name in _kinds(experiment.Settings) if name not in ("scale", "protocol")]
    names = rng.sample(names, rng.randint(1, most))
    return {name: drawn(rng, experiment, name) for name in names}


def tried(
    experiment: base.Experiment, protocol: str, changed: dict[str, Any], plan: bool = False
) -> str:
    """How it ended: "refused", "planned" (with ``plan``), "refused with data", "ran", "too long".

    Raises what else happens.
    """
    try:
        cfg = experiment.settings("smoke", protocol, **changed)
        experiment.plan(cfg, [0], "cpu")
    except SettingsError as error:
        told = str(error)
        assert any(name in told for name in (*changed, "no part", "protocol")), told
        return "refused"
    if plan:
        return "planned"
    rows = histories = None
    signal.alarm(LONGEST)
    try:
        rows, histories = experiment.run(cfg, [0], record=False, device="cpu", workers=None)
    except (SettingsError, PartitionError, DataError):
        assert rows is None
        return "refused with data"
    except TimeoutError:
        return "too long"
    finally:
        signal.alarm(0)
    assert len(rows) and rows["value"].notna().all()
    experiment.progress(cfg, histories)
    return "ran"


def _late(*_):
    raise TimeoutError


def main() -> int:
    """Try for so long; the exit status says whether anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plan", action="store_true")
    asked = parser.parse_args()
    rng, count, found, met = random.Random(asked.seed), Counter(), {}, set()
    names = [name for name in experiments.PLACES if name.startswith(asked.only)]
    end = time.monotonic() + 60 * asked.minutes
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _late)
    with tempfile.TemporaryDirectory() as folder:
        base.RUNS = Path(folder)
        while time.monotonic() < end:
            experiment = experiments.find(rng.choice(names))
            changed = changes(rng, experiment)
            protocol = rng.choice(experiment.protocols)
            try:
                how = tried(experiment, protocol, changed, asked.plan)
            except Exception as error:
                how = "failed"
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(last.filename).name}:{last.lineno}"
                said = f"{type(error).__name__} at {where}: {str(error)[:150]}"
                if (experiment.name, said) not in found:
                    found[experiment.name, said] = changed
                    print(f"{experiment.name} {protocol} {changed}\n    {said}", flush=True)
            count[how] += 1
            met.add(experiment.name)
    print(f"{sum(count.values())} settings of {len(met)} experiments tried: {dict(count)}; "
          f"{len(found)} kinds of failure")  # fmt: skip
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
