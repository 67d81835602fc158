"""The engine: one loop for every method, many lanes, checkpoints, trackers."""

from .federation import CPU as CPU, Federation as Federation
from .loop import Outcome as Outcome, run as run
from .optimiser import LocalTraining as LocalTraining
from .participation import Participation as Participation
