"""The engine: one loop for every method, many lanes, checkpoints, trackers."""

from .federation import CPU as CPU, Federation as Federation
from .loop import Outcome as Outcome, run as run
from .participation import Participation as Participation
from .training import LocalTraining as LocalTraining
