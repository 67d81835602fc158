"""All experiments, by the names under which `python -m lgfed_core run` knows them.

A page's module is imported as its experiment is first asked for, as all of them take seconds; where
they are is in `PLACES`.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lgfed_core.errors import SettingsError

if TYPE_CHECKING:
    from .experiment import Experiment


class Place(NamedTuple):
    """Where an experiment is: a module of `papers`, and its name in there."""

    module: str
    attribute: str

    @property
    def words(self) -> str:
        """What it is: the first line of the module, which is not imported for it."""
        path = Path(__file__).parent.joinpath(*self.module.split(".")).with_suffix(".py")
        with path.open(encoding="utf-8") as file:
            return file.readline().strip().strip('"')


PLACES = {
    "lgfedavg.mnist": Place("lgfedavg.mnist", "MNIST"),
    "lgfedavg.cifar10": Place("lgfedavg.cifar10", "CIFAR10"),
    "lgfedavg.scratch": Place("lgfedavg.scratch", "SCRATCH"),
    "lgfedavg.version1": Place("lgfedavg.version1.run", "VERSION1"),
    "lgfedavg.layers": Place("lgfedavg.layers", "LAYERS"),
    "lgfedavg.rotated": Place("lgfedavg.rotated.run", "ROTATED"),
    "lgfedavg.vqa": Place("lgfedavg.vqa.run", "QUESTIONS"),
    "lgfedavg.mood": Place("lgfedavg.mood.run", "MOOD"),
    "lgfedavg.representations": Place("lgfedavg.representations.run", "REPRESENTATIONS"),
    "lgfedavg.fairness": Place("lgfedavg.fairness.run", "FAIRNESS"),
    "cgau.audio": Place("cgau.audio.run", "AUDIO"),
    "cgau.cifar10": Place("cgau.cifar10.run", "CIFAR10"),
    "cgau.new_clients": Place("cgau.cifar10.new_clients", "NEW_CLIENTS"),
    "cgau.time": Place("cgau.cifar10.time", "TIME"),
    "fade.digits": Place("fade.digits.run", "DIGITS"),
    "fade.objects": Place("fade.objects.run", "OBJECTS"),
    "fade.income": Place("fade.income.run", "INCOME"),
    "fade.impairment": Place("fade.impairment.run", "IMPAIRMENT"),
    "everywhere": Place("everywhere.run", "EVERYWHERE"),
}


def known(name: str) -> None:
    """Raise a SettingsError that lists all experiments unless one is called ``name``."""
    if name not in PLACES:
        raise SettingsError(f"no experiment is called {name!r}; there are: {', '.join(PLACES)}")


def find(name: str) -> "Experiment":
    """The experiment called ``name``. Raises SettingsError that lists all of them."""
    known(name)
    place = PLACES[name]
    return getattr(import_module(f".{place.module}", __package__), place.attribute)
