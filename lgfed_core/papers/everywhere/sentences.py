"""What to use when, from the rows; beside each sentence what would make it false."""

from collections.abc import Iterable

import pandas as pd

from lgfed_core.evidence.verdict import NOT_RUN
from lgfed_core.papers.in_words import KINDS, Pair, bullets, kind, less, sentence

from .settings import METHODS, missing
from .tables import MEASURES, WORDS, of
from .tasks import TASKS

MANY = 3  # methods; more are counted, not named
AIMS = {  # metric -> what one wants
    "local_test_acc": "For a device's own rows",
    "decile_acc": "For the devices that are served worst",
    "new_test_acc": "For a new device, of which nothing is known",
}


def findings(values: pd.DataFrame) -> list[str]:
    """What to use when, in order; values: of `tables.chosen`."""
    return [
        _pairs(values, "What is kept at home", "local_test_acc", "lg_fedavg", "fedavg"),
        _pairs(values, "What tuning at home adds", "local_test_acc", "fine_tuned", "fedavg"),
        _sent(values),
        _pairs(
            values,
            "What a start from FedAvg adds",
            "local_test_acc",
            "lg_fedavg_later",
            "lg_fedavg",
        ),
        _pairs(values, "What client rows add", "local_test_acc", "cgau", "fedavg"),
        _pairs(values, "What they add to LG-FedAvg", "local_test_acc", "lg_cgau", "lg_fedavg"),
        *(_highest(values, metric) for metric in AIMS),
        _pairs(values, "What the adversary hides", "leak_auc", "lg_fedavg_adv", "lg_fedavg"),
        _pairs(values, "What the adversary does to odds", "odds_gap", "lg_fedavg_adv", "lg_fedavg"),
        _pairs(values, "What FADE's game hides", "leak_auc", "fade", "fedavg"),
        _pairs(values, "What FADE's game does to odds", "odds_gap", "fade", "fedavg"),
    ]


def said(values: pd.DataFrame) -> str:
    """`findings` as a list in Markdown."""
    return bullets(findings(values))


def _highest(values: pd.DataFrame, metric: str) -> str:
    # False if another method's mean became the highest, or an interval of its difference from the
    # highest came to hold zero, or no longer did. No correction is made for how many are compared.
    lines = []
    for task in TASKS:
        found = {m: of(values, task, m)[metric].dropna() for m in METHODS if not missing(task, m)}
        found = {method: column for method, column in found.items() if len(column)}
        if len(found) > 1:
            lines.append(f"{WORDS[task]}: {_first(found)}")
    return f"**{AIMS[metric]}** ({MEASURES[metric]}), highest mean: {'; '.join(lines) or NOT_RUN}."


def _first(found: dict[str, pd.Series]) -> str:
    """The highest mean of one task, and who is not shown to be behind it."""
    best = max(found, key=lambda method: found[method].mean())
    words = f"{METHODS[best]} ({found[best].mean():.1f})"
    others = [method for method in found if method != best]
    gains = {method: less(found[best], found[method]) for method in others}
    if not others or max(runs for _, runs in gains.values()) < 2:
        return f"{words}, of {len(found)} that have run; one seed alone shows nothing"
    level = [METHODS[m] for m, (gain, runs) in gains.items() if runs < 2 or kind(gain) != KINDS[0]]
    if len(level) > MANY:
        return f"{words}; {len(level)} of {len(others)} others not shown to be behind"
    return f"{words}; not shown to be behind: {', '.join(level) or 'nobody'}"


def _pairs(values: pd.DataFrame, head: str, metric: str, one: str, other: str) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**{head}**: {METHODS[one]} less {METHODS[other]}, {MEASURES[metric]}"
    return sentence(head, _both(values, metric, one, other), digits=1)


def _both(values: pd.DataFrame, metric: str, one: str, other: str) -> Iterable[Pair]:
    for task in TASKS:
        a, b = (of(values, task, method)[metric].dropna() for method in (one, other))
        if len(a) and len(b):
            yield WORDS[task], a, b


def _sent(values: pd.DataFrame) -> str:
    # False if LG-FedAvg shared another part of the network: there is no chance in what is sent.
    # It is not of LG-FedAvg after FedAvg, whose first rounds send all that FedAvg does.
    lines = []
    for name, a, b in _both(values, "megabytes", "lg_fedavg", "fedavg"):
        lines.append(f"{name} {100 * a.mean() / b.mean():.0f} %")
    head = "**What LG-FedAvg sends** from random weights, of what FedAvg does"
    return f"{head}: {', '.join(lines) or NOT_RUN}."
