"""What to use when, from the rows; beside each sentence what would make it false."""

from collections.abc import Iterable

import pandas as pd

from lgfed_core.evidence.best import behind
from lgfed_core.evidence.verdict import NOT_RUN
from lgfed_core.papers.in_words import NESTED, Pair, bullets, sentence

from .settings import METHODS, missing
from .tables import MEASURES, WORDS, of
from .tasks import TASKS

MANY = 3  # methods; more are counted, not named
AIMS = {  # metric -> what one wants
    "local_test_acc": "For a device's own rows",
    "decile_acc": "For the devices that are served worst",
    "new_test_acc": "For a new device, of which nothing is known",
}


def findings(values: pd.DataFrame, tried: pd.DataFrame | None = None) -> list[str]:
    """What to use when, in order; values: of `tables.chosen`; tried: of `tables.every`, for what
    other learning rates leave of a group."""
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
        _pairs(
            values,
            "What gated layers with client rows add, for twice what is sent",
            "local_test_acc",
            "cgau",
            "fedavg",
        ),
        _pairs(
            values, "What gated layers add to LG-FedAvg", "local_test_acc", "lg_cgau", "lg_fedavg"
        ),
        *(_highest(values, metric) for metric in AIMS),
        _hides(values, tried, "the adversary", "lg_fedavg_adv", "lg_fedavg"),
        _pairs(values, "What the adversary does to odds", "odds_gap", "lg_fedavg_adv", "lg_fedavg"),
        _hides(values, tried, "FADE's game", "fade", "fedavg"),
        _pairs(values, "What FADE's game does to odds", "odds_gap", "fade", "fedavg"),
    ]


def said(values: pd.DataFrame, tried: pd.DataFrame | None = None) -> str:
    """`findings` as a list in Markdown."""
    return bullets(findings(values, tried))


def _highest(values: pd.DataFrame, metric: str) -> str:
    # False if another method's mean became the highest, or one came within reach of it (`behind`),
    # or left it.
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
    runs = pd.DataFrame(found).dropna()  # [n, k], of the seeds that all have
    if len(runs) < 2:
        return f"{words}, of {len(found)} that have run; one seed alone shows nothing"
    late = dict(zip(found, behind(runs), strict=True))
    level = [METHODS[method] for method in found if method != best and not late[method]]
    if len(level) > MANY:
        return f"{words}; {len(level)} of {len(found) - 1} others not shown to be behind"
    return f"{words}; not shown to be behind: {', '.join(level) or 'nobody'}"


def _pairs(values: pd.DataFrame, head: str, metric: str, one: str, other: str) -> str:
    # False if an interval moved to the other side of zero, or came to hold it.
    head = f"**{head}**: {METHODS[one]} less {METHODS[other]}, {MEASURES[metric]}"
    return sentence(head, _both(values, metric, one, other), digits=1)


def _hides(values: pd.DataFrame, tried: pd.DataFrame | None, who: str, one: str, other: str) -> str:
    # False as for `_pairs`; the means are of each rate by itself, and say how much is the rate's.
    words = _pairs(values, f"What {who} hides", "leak_auc", one, other)
    if tried is None or tried.empty:
        return words
    lines, leaks = [], tried["leak_auc"].unstack(["method", "lr"])  # [task and seed, method and lr]
    for task in TASKS:
        if task in leaks.index and {one, other} <= set(leaks.columns.get_level_values("method")):
            gain = (leaks.loc[task][one] - leaks.loc[task][other]).mean().dropna()
            each = ", ".join(f"{more:+.1f} ({lr:g})" for lr, more in gain.items())
            lines += [f"{WORDS[task]} {each}"] * bool(each)
    if not lines:
        return words
    return words + f"\n{NESTED}- both at one rate, rate by rate: {'; '.join(lines)}."


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
