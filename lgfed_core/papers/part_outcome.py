"""What a part leaves that measures its models itself, in place of an engine's `Outcome`."""

from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True)
class Measured:
    """A line of numbers per run, curves, time and origin.

    final: the index is the seed, runs in the order in which they trained, one column per metric.
    history: lines of round, seed and what was watched. diverged: the round in which a seed left the
    finite numbers; its line then means nothing. Of several runs of a seed, one that did so alone
    has that round in a column of this name, and no other number.
    """

    final: pd.DataFrame
    history: pd.DataFrame
    seconds: float
    provenance: dict[str, str]
    diverged: dict[int, int] = field(default_factory=dict)
