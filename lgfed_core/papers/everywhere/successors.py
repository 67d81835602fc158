"""LG-FedAvg beside the methods that came after it: who is ahead on which task, and by how much."""

from collections.abc import Callable

import pandas as pd

from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Part, paired

from .settings import METHODS
from .tables import WORDS, of

SUCCESSORS = ("fedper", "fedrep", "fedbabu", "ditto", "apfl", "pfedme", "fedavgm", "fedadam")
MARGIN = 1.0  # points: less is level
MEASURES = {
    "local_test_acc": "accuracy on devices' own rows",
    "new_test_acc": "accuracy on a new device",
}


def told(
    values: pd.DataFrame, measure: str = "local_test_acc", one: str = "lg_fedavg"
) -> list[Told]:
    """For each task, by how many points each successor is ahead of method ``one``, paired by seed.

    values: of `tables.chosen`. Variances are shared within a task, and Holm's correction is over
    its comparisons; less than `MARGIN` is level.
    """
    claims = [
        Claim(
            f"{task} {measure}",
            "everywhere",
            f"{MEASURES[measure]}, beside {METHODS[one]}",
            _parts(task, measure, one),
            question=f"{words}: {MEASURES[measure]}",
            unit=f"points ahead of {METHODS[one]}",
            family=f"{task} {measure}",
            level=MARGIN,
        )
        for task, words in WORDS.items()
        if any(len(of(values, task, method)) for method in SUCCESSORS)
    ]
    return [*answers.told(claims, values).values()]


def _parts(task: str, measure: str, one: str) -> Callable[[pd.DataFrame], list[Part]]:
    def parts(values: pd.DataFrame) -> list[Part]:
        base = of(values, task, one)[measure]
        others = {METHODS[method]: of(values, task, method)[measure] for method in SUCCESSORS}
        return [
            paired(words, other, base, verdict.greater)
            for words, other in others.items()
            if len(other)
        ]

    return parts
