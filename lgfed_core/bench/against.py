"""Who is timed beside us: which frameworks there are, and which of them are at hand."""

from dataclasses import dataclass
from importlib.util import find_spec

from lgfed_core.engine import Federation

from .apart import Apart
from .task import Task


@dataclass(frozen=True)
class Rival:
    """A framework, what it needs and what installs that; with ``ranks``, started once a worker."""

    name: str
    packages: tuple[str, ...]
    install: str
    module: str
    ranks: bool = False

    def missing(self) -> str | None:
        """What is to be installed for it, in words."""
        absent = [package for package in self.packages if find_spec(package) is None]
        if not absent:
            return None
        what = f"{' and '.join(absent)} not installed; python -m pip install {self.install}"
        return f"{self.name} is left out: {what}"

    def seat(self, federation: Federation, task: Task, workers: int) -> Apart:
        """The framework as a contender."""
        return Apart(self.module, federation, task, workers, self.ranks)


RIVALS = {
    "flower": Rival(
        "Flower",
        ("flwr", "ray"),
        "--constraint constraints.txt --editable '.[bench]'",
        "lgfed_core.bench.flower",
    ),
    "pfl": Rival("pfl-research", ("pfl",), "pfl", "lgfed_core.bench.pfl", ranks=True),
}
