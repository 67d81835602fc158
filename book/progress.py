"""How long notebooks take: in which order to start them, and what is left of a build."""

import json
import sys
import time
from pathlib import Path

SECONDS = {  # at scale quick, each on a core of its own
    "cgau/audio.ipynb": 7,
    "cgau/cifar10.ipynb": 31,
    "cgau/clients.ipynb": 4,
    "cgau/xor.ipynb": 7,
    "everywhere.ipynb": 13,
    "extending.ipynb": 18,
    "fade/digits.ipynb": 22,
    "fade/impairment.ipynb": 17,
    "fade/income.ipynb": 16,
    "fade/objects.ipynb": 20,
    "fade/theory.ipynb": 10,
    "judge.ipynb": 12,
    "lgfedavg/cifar10.ipynb": 39,
    "lgfedavg/communication.ipynb": 16,
    "lgfedavg/fairness.ipynb": 22,
    "lgfedavg/layers.ipynb": 22,
    "lgfedavg/mnist.ipynb": 18,
    "lgfedavg/mood.ipynb": 19,
    "lgfedavg/representations.ipynb": 20,
    "lgfedavg/rotated.ipynb": 16,
    "lgfedavg/theory.ipynb": 15,
    "lgfedavg/version1.ipynb": 22,
    "lgfedavg/vqa.ipynb": 22,
    "machines/cluster.ipynb": 45,
    "machines/flower.ipynb": 90,
    "machines/gpu.ipynb": 14,
    "machines/speed.ipynb": 3,
    "parts.ipynb": 4,
    "reliability.ipynb": 22,
    "scoreboard.ipynb": 21,
}
OTHERS = {"smoke": 20.0, "quick": 30.0, "paper": 10_000.0}
MINUTE = 60


def expected(name: str, scale: str, stamp: Path) -> float:
    """Seconds that a notebook took the last time, or took elsewhere, or a guess."""
    try:
        return float(json.loads(stamp.read_text())["seconds"])
    except (OSError, ValueError, KeyError):
        usual = OTHERS[scale]
        return SECONDS.get(name, usual) if scale == "quick" else usual


def spoken(seconds: float) -> str:
    """A time as people say it: "40 s", "6 min 10 s"; above that to the minute."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds / 10) * 10, MINUTE)
    return f"{minutes} min" + (f" {rest} s" if rest and minutes < 10 else "")


class Watch:
    """What is running and waiting, and how long that may take, going by what is done."""

    def __init__(self, seconds: dict[str, float], jobs: int):
        self.seconds, self.jobs = seconds, jobs
        self.started, self.done = {}, {}
        self.told = 0.0

    def start(self, name: str) -> None:
        self.started[name] = time.monotonic()

    def end(self, name: str) -> float:
        """Seconds that ``name`` took."""
        self.done[name] = time.monotonic() - self.started.pop(name)
        return self.done[name]

    def left(self) -> float:
        """Seconds until all are done, if the others go as those that are done went."""
        usual = sum(self.seconds[name] for name in self.done)
        pace = sum(self.done.values()) / usual if usual else 1.0
        now = time.monotonic()
        running = {n: max(pace * self.seconds[n] - now + t, 1) for n, t in self.started.items()}
        waiting = self.seconds.keys() - self.done.keys() - running.keys()
        total = sum(running.values()) + pace * sum(self.seconds[name] for name in waiting)
        return max([total / self.jobs, *running.values()])

    def state(self) -> str:
        """How far it is: "3 of 14, about 5 min left"."""
        here = f"{len(self.done)} of {len(self.seconds)}"
        return f"{here}, about {spoken(self.left())} left" if self.left() else here

    def tick(self) -> None:
        """On a terminal, once a second: what is running now."""
        if sys.stdout.isatty() and self.started and time.monotonic() - self.told > 1:
            self.told = time.monotonic()
            print(f"\r\033[K  {self.state()}: {', '.join(self.started)}"[:110], end="", flush=True)


def line(text: str) -> None:
    """Print a line, in the place of what `Watch.tick` left on a terminal."""
    print(("\r\033[K" if sys.stdout.isatty() else "") + text, flush=True)
