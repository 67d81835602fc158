"""Who is ahead: what each part of a method adds, the best on each task, and later methods."""

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from lgfed_core.evidence import answers, verdict
from lgfed_core.evidence.answers import Told
from lgfed_core.evidence.claims import Claim, Part, paired
from lgfed_core.evidence.verdict import behind
from lgfed_core.papers.differences import Pair

from .settings import METHODS
from .tables import WORDS, of

MARGIN = 1.0  # points: less is level
SUCCESSORS = ("fedper", "fedrep", "fedbabu", "ditto", "apfl", "pfedme", "fedavgm", "fedadam")
MANY = 3  # methods; more are counted, not named
AIMS = {  # metric -> what one wants
    "local_test_acc": "own rows",
    "decile_acc": "the devices served worst",
    "new_test_acc": "a new device",
}


def race(task: str, measure: str, words: str, unit: str, parts: Callable) -> Claim:
    """One method beside others at a ``measure`` of a task, ``words`` for people.

    parts: from what is compared to the comparisons. Variances are shared within a task and measure;
    less than `MARGIN` is level.
    """
    return Claim(
        f"{task} {measure}",
        "everywhere",
        words,
        parts,
        question=f"{WORDS[task]}: {words}",
        unit=unit,
        family=f"{task} {measure}",
        level=MARGIN,
    )


def highest(values: pd.DataFrame) -> pd.DataFrame:
    """By task and aim, the method with the highest mean, and who is level with it: not told to be
    behind by Tukey's range over all methods of the task (`evidence.verdict.behind`)."""
    out: dict[str, dict[str, str]] = {}
    for task, words in WORDS.items():
        for metric, aim in AIMS.items():
            found = {method: of(values, task, method)[metric].dropna() for method in METHODS}
            found = {method: column for method, column in found.items() if len(column)}
            if len(found) > 1:
                out.setdefault(aim, {})[words] = _first(found)
    return pd.DataFrame(out)


def rates(tried: pd.DataFrame) -> pd.DataFrame:
    """AUC for the group from h that each game takes away, both methods at one rate, by task, game
    and learning rate; means over seeds. tried: of `tables.every`."""
    out, leaks = {}, tried["leak_auc"].unstack(["method", "lr"])  # [task and seed, method and lr]
    for task in WORDS:
        for one, other in (("lg_fedavg_adv", "lg_fedavg"), ("fade", "fedavg")):
            there = set(leaks.columns.get_level_values("method"))
            if task in leaks.index and {one, other} <= there:
                gain = (leaks.loc[task][one] - leaks.loc[task][other]).mean().dropna()
                if len(gain):
                    out[WORDS[task], METHODS[one]] = gain
    return pd.DataFrame(out).T.rename_axis(columns="learning rate")


def _first(found: dict[str, pd.Series]) -> str:
    """The highest mean of one task, and who is level with it."""
    best = max(found, key=lambda method: found[method].mean())
    words = f"{METHODS[best]} ({found[best].mean():.1f})"
    runs = pd.DataFrame(found).dropna()  # [n, k], of the seeds that all have
    if len(runs) < 2:
        return f"{words}, one seed"
    late = dict(zip(found, behind(runs), strict=True))
    level = [METHODS[method] for method in found if method != best and not late[method]]
    if len(level) > MANY:
        return f"{words}; level: {len(level)} of {len(found) - 1} others"
    return f"{words}; level: {', '.join(level) or 'nobody'}"


def both(values: pd.DataFrame, metric: str, one: str, other: str) -> list[Pair]:
    """Two methods' values by seed, for each task that has both."""
    pairs = (
        (WORDS[task], *(of(values, task, method)[metric].dropna() for method in (one, other)))
        for task in WORDS
    )
    return [pair for pair in pairs if len(pair[1]) and len(pair[2])]


def ahead_of(values: pd.DataFrame, base: str, methods: Sequence[str]) -> list[Told]:
    """For each task, by how many points each of ``methods`` is ahead of ``base`` on devices' own
    rows, paired by seed, with Holm's correction over them. values: of `tables.chosen`."""
    claims = [
        race(
            task,
            "local_test_acc",
            "accuracy on devices' own rows",
            f"points ahead of {METHODS[base]}",
            partial(_ahead, task, base, methods),
        )
        for task in WORDS
        if any(len(of(values, task, method)) for method in methods)
    ]
    return [*answers.told(claims, values).values()]


def _ahead(task: str, base: str, methods: Sequence[str], values: pd.DataFrame) -> list[Part]:
    first, *others = (of(values, task, method)["local_test_acc"] for method in (base, *methods))
    return [
        paired(METHODS[method], other, first, verdict.greater)
        for method, other in zip(methods, others, strict=True)
        if len(other)
    ]
