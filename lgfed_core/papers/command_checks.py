"""What is typed of a run, a fill or a report, looked at before anything heavy is imported.

Each raises the error that whoever uses the word would raise seconds later.
"""

from lgfed_core.errors import ResultsError, long_enough, one_of
from lgfed_core.evidence.vocabulary import DEVICES, LANES, PAPERS, PROTOCOLS

from . import experiments

SCALES = ("smoke", "quick", "paper")  # of every experiment


def run(experiment: str, scale: str, protocol: str, device: str, lanes: str) -> None:
    """Raise SettingsError for a word that no run knows."""
    experiments.known(experiment)
    one_of("scale", scale, SCALES)
    one_of("protocol", protocol, (*PROTOCOLS, "both"))
    one_of("device", device, DEVICES)
    one_of("lanes", lanes, LANES)


def fill(hours: float, device: str, only: str = "") -> None:
    """Raise SettingsError for a word that no fill knows, or no length of time."""
    long_enough(hours)
    one_of("device", device, DEVICES)
    if only:
        experiments.known(only)


def paper(name: str | None) -> None:
    """Raise ResultsError unless None or the name of a paper."""
    if name not in (None, *PAPERS):
        raise ResultsError(f"no paper is called {name!r}; there are: {', '.join(PAPERS)}")
