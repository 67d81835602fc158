"""All experiments, by the names under which `python -m lgfed_core run` knows them."""

from lgfed_core.errors import SettingsError

from .cgau.audio.run import AUDIO
from .cgau.cifar10.new_clients import NEW_CLIENTS
from .cgau.cifar10.run import CIFAR10 as CGAU_CIFAR10
from .cgau.cifar10.time import TIME
from .everywhere.run import EVERYWHERE
from .experiment import Experiment
from .fade.digits.run import DIGITS
from .fade.impairment.run import IMPAIRMENT
from .fade.income.run import INCOME
from .fade.objects.run import OBJECTS
from .lgfedavg.cifar10.run import CIFAR10
from .lgfedavg.cifar10.scratch import SCRATCH
from .lgfedavg.fairness.run import FAIRNESS
from .lgfedavg.layers.run import LAYERS
from .lgfedavg.mnist.run import MNIST
from .lgfedavg.mood.run import MOOD
from .lgfedavg.representations.run import REPRESENTATIONS
from .lgfedavg.rotated.run import ROTATED
from .lgfedavg.version1.run import VERSION1
from .lgfedavg.vqa.run import QUESTIONS

ALL: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        MNIST,
        CIFAR10,
        SCRATCH,
        VERSION1,
        LAYERS,
        ROTATED,
        QUESTIONS,
        MOOD,
        REPRESENTATIONS,
        FAIRNESS,
        AUDIO,
        CGAU_CIFAR10,
        NEW_CLIENTS,
        TIME,
        DIGITS,
        OBJECTS,
        INCOME,
        IMPAIRMENT,
        EVERYWHERE,
    )
}


def find(name: str) -> Experiment:
    """The experiment called ``name``. Raises SettingsError that lists all of them."""
    if name not in ALL:
        raise SettingsError(f"no experiment is called {name!r}; there are: {', '.join(ALL)}")
    return ALL[name]
