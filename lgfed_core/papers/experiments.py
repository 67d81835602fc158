"""All experiments, by the names under which `python -m lgfed_core run` knows them.

A page's module is imported as its experiment is first asked for, as all of them take seconds; what
can be said without is in `PLACES`.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from lgfed_core.errors import SettingsError

if TYPE_CHECKING:
    from .experiment import Experiment


class Place(NamedTuple):
    """Where an experiment is: a module of `papers`, its name in there, the module's first line."""

    module: str
    attribute: str
    words: str


PLACES = {
    "lgfedavg.mnist": Place(
        "lgfedavg.mnist.run",
        "MNIST",
        "LG-FedAvg on MNIST: Table 6 of Liang et al. 2020 (v2, appendix C.2.1).",
    ),
    "lgfedavg.cifar10": Place(
        "lgfedavg.cifar10.run",
        "CIFAR10",
        "LG-FedAvg on CIFAR-10: Tables 1 and 8 of Liang et al. 2020 (v2, section 5.2, "
        "appendix C.2.2).",
    ),
    "lgfedavg.scratch": Place(
        "lgfedavg.cifar10.scratch",
        "SCRATCH",
        "LG-FedAvg on CIFAR-10 without FedAvg before it: how others have run it, and what they "
        "found.",
    ),
    "lgfedavg.version1": Place(
        "lgfedavg.version1.run",
        "VERSION1",
        "Version 1 of LG-FedAvg on MNIST and CIFAR-10: Table 1 of Liang et al. 2019 (section 3.1).",
    ),
    "lgfedavg.layers": Place(
        "lgfedavg.layers.run",
        "LAYERS",
        "Which layers should be shared? LG-FedAvg with every cut, from one FedAvg model; our own "
        "question.",
    ),
    "lgfedavg.rotated": Place(
        "lgfedavg.rotated.run",
        "ROTATED",
        "A newcomer with turned pictures: Table 3 of Liang et al. 2020 (v1 section 3.2, v2 section "
        "5.4).",
    ),
    "lgfedavg.vqa": Place(
        "lgfedavg.vqa.run",
        "QUESTIONS",
        "Questions about pictures: Table 2 and learning curves of Liang et al. (v1 3.1; v2 5.2, "
        "C.2.3).",
    ),
    "lgfedavg.mood": Place(
        "lgfedavg.mood.run",
        "MOOD",
        "Personal mood from what people type: Figure 2d of Liang et al. 2020 (v2, 5.3, appendix "
        "C.3).",
    ),
    "lgfedavg.representations": Place(
        "lgfedavg.representations.run",
        "REPRESENTATIONS",
        "How a local representation is learned: the panels of LG-FedAvg's Figure 1, side by side.",
    ),
    "lgfedavg.fairness": Place(
        "lgfedavg.fairness.run",
        "FAIRNESS",
        "LG-FedAvg on UCI Adult: Table 4 of Liang et al. 2020 (v2, section 5.5; v1, section 3.3).",
    ),
    "cgau.audio": Place(
        "cgau.audio.run",
        "AUDIO",
        "CGAU on audio, cough against everything else: Figure 2a and Table 1 of Rieger et al. "
        "2020.",
    ),
    "cgau.cifar10": Place(
        "cgau.cifar10.run",
        "CIFAR10",
        "CGAU on CIFAR-10: Figure 2b of Rieger et al. 2020, and what its discussion says and asks.",
    ),
    "cgau.new_clients": Place(
        "cgau.cifar10.new_clients",
        "NEW_CLIENTS",
        "CGAU and clients that were never trained: an experiment of ours on CIFAR-10.",
    ),
    "cgau.time": Place(
        "cgau.cifar10.time",
        "TIME",
        "What a round of CGAU costs beside the baseline's: claim C9 of Rieger et al. 2020, timed "
        "apart.",
    ),
    "fade.digits": Place(
        "fade.digits.run",
        "DIGITS",
        "FADE on digits with unbalanced groups: Figure 2 of Hong et al. (KDD 2021), section 5.1.",
    ),
    "fade.objects": Place(
        "fade.objects.run",
        "OBJECTS",
        "FADE on objects with non-i.i.d. users: Table 1 of Hong et al. (KDD 2021), section 5.2.",
    ),
    "fade.income": Place(
        "fade.income.run",
        "INCOME",
        "FADE on UCI Adult: Figure 3a of Hong et al. (KDD 2021), section 6.1.",
    ),
    "fade.impairment": Place(
        "fade.impairment.run",
        "IMPAIRMENT",
        "FADE on impairment: Figure 3b of Hong et al. (KDD 2021), section 6.2, on data that stand "
        "in.",
    ),
    "everywhere": Place(
        "everywhere.run",
        "EVERYWHERE",
        "Every method on every task: the same rows, rounds and local epochs; a sweep of learning "
        "rates.",
    ),
}


class _All(Mapping):
    """Each experiment by its name, imported as it is looked up."""

    def __getitem__(self, name: str) -> "Experiment":
        place = PLACES[name]
        return getattr(import_module(f".{place.module}", __package__), place.attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)

    def __contains__(self, name: object) -> bool:  # the usual one would import it
        return name in PLACES


ALL: Mapping[str, "Experiment"] = _All()


def known(name: str) -> None:
    """Raise a SettingsError that lists all experiments unless one is called ``name``."""
    if name not in PLACES:
        raise SettingsError(f"no experiment is called {name!r}; there are: {', '.join(PLACES)}")


def find(name: str) -> "Experiment":
    """The experiment called ``name``. Raises SettingsError that lists all of them."""
    known(name)
    return ALL[name]
