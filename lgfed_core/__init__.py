"""lgfed: personalised and fair federated learning, reproduced from three lines of work.

What a method, data or a measure of one's own needs comes from here; the rooms have the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .adaptation import adapt as adapt
    from .data import Dataset as Dataset, Split as Split
    from .engine import (
        Federation as Federation,
        LocalTraining as LocalTraining,
        Participation as Participation,
        run as run,
    )
    from .engine.trackers import Global as Global, Personal as Personal, Tracker as Tracker
    from .methods import (
        FedAvg as FedAvg,
        FedProx as FedProx,
        LGFedAvg as LGFedAvg,
        LocalOnly as LocalOnly,
        Method as Method,
        Step as Step,
        cross_entropy as cross_entropy,
    )
    from .papers.everywhere.compare import compare as compare
    from .partition import ClientIndices as ClientIndices, Partition as Partition

__version__ = "0.1.0"

_FACE = {
    "adaptation": ("adapt",),
    "data": ("Dataset", "Split"),
    "engine": ("Federation", "LocalTraining", "Participation", "run"),
    "engine.trackers": ("Global", "Personal", "Tracker"),
    "methods": (
        *("FedAvg", "FedProx", "LGFedAvg", "LocalOnly"),
        *("Method", "Step", "cross_entropy"),
    ),
    "papers.everywhere.compare": ("compare",),
    "partition": ("ClientIndices", "Partition"),
}
_ROOM = {name: room for room, names in _FACE.items() for name in names}
_ROOMS = (
    *("data", "engine", "errors", "evidence", "methods", "metrics"),
    *("models", "partition", "testing"),
)
__all__ = ["__version__", *_ROOM]


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])


def __getattr__(name: str):
    """Import a name of the face, or a room, when it is first asked for: PyTorch takes seconds."""
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _ROOM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_ROOM[name]}", __name__), name)
