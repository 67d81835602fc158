"""LG-FedAvg beside the methods that came after it: who is ahead on which task, and by how much."""

from functools import partial

import pandas as pd

from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Part, paired

from .differences import race
from .settings import METHODS
from .tables import WORDS, of

SUCCESSORS = ("fedper", "fedrep", "fedbabu", "ditto", "apfl", "pfedme", "fedavgm", "fedadam")
MEASURE, OTHER = "local_test_acc", "lg_fedavg"


def told(values: pd.DataFrame) -> list[Told]:
    """For each task, by how many points each successor is ahead of LG-FedAvg on devices' own rows,
    paired by seed, with Holm's correction over them. values: of `tables.chosen`.
    """
    claims = [
        race(
            task,
            MEASURE,
            "accuracy on devices' own rows",
            f"points ahead of {METHODS[OTHER]}",
            partial(_parts, task),
        )
        for task in WORDS
        if any(len(of(values, task, method)) for method in SUCCESSORS)
    ]
    return [*answers.told(claims, values).values()]


def _parts(task: str, values: pd.DataFrame) -> list[Part]:
    base = of(values, task, OTHER)[MEASURE]
    others = {METHODS[method]: of(values, task, method)[MEASURE] for method in SUCCESSORS}
    return [
        paired(words, other, base, verdict.greater) for words, other in others.items() if len(other)
    ]
